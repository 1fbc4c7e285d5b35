"""The engines, as they are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.trainer.settings.method import Engine

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _vllm(config: Config) -> dict[str, Any]:
    vllm = config.rollout.vllm
    settings: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": vllm.mode,
        "vllm_gpu_memory_utilization": vllm.gpu_memory_utilization,
        "vllm_tensor_parallel_size": vllm.tensor_parallel_size,
        "vllm_importance_sampling_correction": False,  # a part of our loss
    }
    if vllm.server_url:
        settings["vllm_server_base_url"] = vllm.server_url
    if vllm.max_model_length:
        settings["vllm_max_model_length"] = vllm.max_model_length
    return settings


HF = Engine("hf", "assay.trainer.core.build:make_hf")
PAGED = Engine(
    "paged",
    "assay.trainer.core.build:make_paged",
    trl=lambda _config: {"use_transformers_continuous_batching": True},
    takes={
        "beside": "torch's random state is set beside the training",
        "two-policies": "the loop of one policy holds the memory for both",
    },
)
VLLM = Engine(
    "vllm",
    "assay.trainer.core.build:make_vllm",
    trl=_vllm,
    correction="token-truncate",
    takes={
        "windows": "all prompts have one limit, as TRL asks vLLM",
        "beside": "TRL moves the weights between two batches",
        "two-policies": "TRL holds one engine",
    },
)
