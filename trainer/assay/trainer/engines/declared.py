"""The engines, as they are declared."""

from __future__ import annotations

from assay.trainer.settings.method import Engine

HF = Engine("hf", "assay.trainer.core.build:make_hf")
PAGED = Engine(
    "paged",
    "assay.trainer.core.build:make_paged",
    takes={
        "beside": "torch's random state is set beside the training",
        "two-policies": "the loop of one policy holds the memory for both",
    },
)
VLLM = Engine(
    "vllm",
    "assay.trainer.core.build:make_vllm",
    takes={
        "windows": "all prompts have one limit, as TRL asks vLLM",
        "beside": "TRL moves the weights between two batches",
        "two-policies": "TRL holds one engine",
    },
)
