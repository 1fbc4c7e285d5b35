"""Declarations of the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Backend

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _check_vllm(config: Config) -> str:
    vllm = config.rollout.vllm
    if vllm.mode == "colocate":
        if vllm.tensor_parallel_size > 1:
            return (
                f"rollout.vllm.tensor_parallel_size = {vllm.tensor_parallel_size} needs vLLM's own "
                "processes, which would step apart from the trainer's: start a server with "
                '--tensor-parallel-size and set rollout.vllm.mode = "server"'
            )
        return ""
    if not vllm.server_url:
        return 'rollout.vllm.mode = "server" needs rollout.vllm.server_url'
    if vllm.transfer == "folder" and not vllm.folder:
        return (
            'rollout.vllm.transfer = "folder" needs rollout.vllm.folder, which the server sees '
            "under the same path"
        )
    return ""


HF = Backend("hf", "assay.trainer.engines.hf:make_hf")
PAGED = Backend(
    "paged",
    "assay.trainer.engines.paged:make_paged",
    takes={"beside": "torch's random state is set beside the training"},
)
VLLM = Backend(
    "vllm",
    "assay.trainer.engines.vllm:make_vllm",
    correction="token-truncate",
    check=_check_vllm,
)
