"""A step that trains part by part while the rest of it is drawn and judged.

Periodic asynchrony (arXiv 2511.18871; of the paper its abstract): one policy draws a step's
responses; full micro-batches go through forward and backward, portion by portion in the order of
the draws.

The loss's divisor, tokens or responses, is known at the end. Until then a provisional count divides
it; at the end the gradients are multiplied by the ratio. Rows are packed within their portion.
Where neither matters (rows of one length, a power of two of tokens) the result equals the
synchronous step's to the bit, else to float rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch

from assay.trainer.algos.packing import Packing, cut
from assay.trainer.core import objective
from assay.trainer.core.batch import Batch
from assay.trainer.rollouts.types import KnownGroup
from assay.trainer.settings.config import Config

_WANTED = ("advantages", "loss_mask", "rewards")


def provisional(config: Config) -> dict[str, float]:
    """Upper bounds of what `objective.count` counts in a step.

    Tokens are rounded up to a power of two, so that the division is exact.
    """
    tokens = config.samples_per_step * config.rollout.max_new_tokens
    return {
        "window_tokens": float(1 << (tokens - 1).bit_length()),
        "window_rows": float(config.samples_per_step),
        "window_positive": 1.0,
        "window_value_tokens": 1.0,
    }


class Iteration:
    """The micro-batches of one step in order, each as soon as its portion is there.

    Args:
        parts: portions of whole groups, in the order of their draws.
        assemble: a portion's tensors, with log-probabilities and advantages.
        packing: of a portion's rows into micro-batches.
        device: where the loss is.

    Attributes:
        left: rows still to come.
        tokens: in the loss, so far.
        rows: responses with such tokens, so far.
    """

    def __init__(
        self,
        parts: Iterator[list[KnownGroup]],
        assemble: Callable[[list[KnownGroup]], Batch],
        config: Config,
        packing: Packing,
        device: torch.device,
    ) -> None:
        self._parts = parts
        self._assemble = assemble
        self._packing = packing
        self._by_tokens = config.method.loss.aggregation == "token-mean"
        self._given = {
            name: torch.tensor(value, device=device) for name, value in provisional(config).items()
        }
        self._ready: deque[Batch] = deque()
        self._batches: list[Batch] = []
        self._loss = torch.zeros((), device=device)
        self._told = torch.zeros((), device=device)
        self.left = config.samples_per_step
        self.tokens = torch.zeros((), device=device)
        self.rows = torch.zeros((), device=device)

    def following(self) -> Batch:
        """Waits for the next micro-batch, with provisional counts."""
        if not self._ready:
            batch = self._assemble(next(self._parts))
            before = sum(len(seen["rewards"]) for seen in self._batches)
            self._batches.append({name: batch[name] for name in _WANTED})
            batch["row"] = before + torch.arange(len(batch["rewards"]), device=self._loss.device)
            for rows_N in self._packing.passes(batch):
                self._ready.append({**cut(batch, rows_N), **self._given})
        micro = self._ready.popleft()
        counts = objective.count(micro)
        self.tokens += counts.tokens
        self.rows += counts.rows
        self.left -= len(micro["rewards"])
        return micro

    def seen(self) -> Batch:
        """What is observed of a whole step, for all rows; tokens are (B, T), padded with 0."""
        width = max(batch["loss_mask"].shape[1] for batch in self._batches)
        return {name: _joined([b[name] for b in self._batches], width) for name in _WANTED}

    def settled(self, loss: torch.Tensor, weights: Iterable[torch.nn.Parameter]) -> torch.Tensor:
        """To be called after a micro-batch's backward; the last call scales the gradients.

        Args:
            loss: of the micro-batch, by the provisional counts.
            weights: whose gradients these are.

        Returns:
            What to report; the reports add up to the step's loss.
        """
        self._loss = self._loss + loss
        if self.left:
            self._told = self._told + loss
            return loss
        given, counted = (
            (self._given["window_tokens"], self.tokens)
            if self._by_tokens
            else (self._given["window_rows"], self.rows)
        )
        factor = float(given) / max(1.0, float(counted))
        if factor != 1:
            for weight in weights:
                if weight.grad is not None:
                    weight.grad.mul_(factor)
        return self._loss * factor - self._told


def _joined(parts: Sequence[torch.Tensor], width: int) -> torch.Tensor:
    if parts[0].dim() == 1:
        return torch.cat(list(parts))
    return torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])
