"""The engines, as they are declared."""

from __future__ import annotations

from assay.trainer.settings.method import Engine

HF = Engine("hf", "assay.trainer.engines.hf:make_hf")
PAGED = Engine(
    "paged",
    "assay.trainer.engines.paged:make_paged",
    takes={"beside": "torch's random state is set beside the training"},
)
VLLM = Engine("vllm", "assay.trainer.engines.vllm:make_vllm", correction="token-truncate")
