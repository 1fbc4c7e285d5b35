"""An extension of vLLM's worker that loads weights over those that it has.

A server is started with `--worker-extension-cls assay.trainer.engines.vllm_worker.PolicyWeights`.
It imports neither vLLM nor anything of Assay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch


def load(worker: Any, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Loads all weights, under the names of a checkpoint, into the model of vLLM's worker."""
    rest = iter(weights)
    worker.model_runner.reload_weights(weights_iterator=rest)
    for _ in rest:  # what is gathered from several processes must be gathered in all
        pass
    refresh_tied_head(worker.model_runner.get_model())


def refresh_tied_head(model: Any) -> None:
    """Gives a head that is tied to the embeddings their weight.

    vLLM's reload packs each layer as it is loaded, and a tied head is never loaded: on CPU it keeps
    the old one.
    """
    head, inner = getattr(model, "lm_head", None), getattr(model, "model", None)
    embed = getattr(inner, "embed_tokens", None)
    tied = getattr(getattr(model, "config", None), "tie_word_embeddings", False)
    if head is None or embed is None or not tied or head is embed:
        return
    head.weight = embed.weight
    head.quant_method.process_weights_after_loading(head)


class PolicyWeights:
    """Methods added to vLLM's worker."""

    def load_policy_weights(self, path: str) -> str:
        """Loads the .safetensors files of a folder; returns the number of tensors."""
        files = sorted(Path(path).glob("*.safetensors"))
        if not files:
            raise FileNotFoundError(
                f"no .safetensors in {path}: does this machine see that folder?"
            )
        count = 0

        def read() -> Iterator[tuple[str, torch.Tensor]]:
            nonlocal count
            from safetensors import safe_open  # noqa: PLC0415  # where a folder is read

            for file in files:
                with safe_open(file, framework="pt") as tensors:
                    for name in tensors.keys():  # noqa: SIM118  # no mapping
                        count += 1
                        yield name, tensors.get_tensor(name)

        load(self, read())
        return str(count)
