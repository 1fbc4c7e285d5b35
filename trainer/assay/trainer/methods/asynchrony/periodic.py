"""A step that is trained on part by part, while the rest of it is drawn and judged.

Periodic asynchrony (arXiv 2511.18871; of the paper its abstract): all of a step's responses are of
one policy, and micro-batches go through forward and backward as soon as they are whole, portion by
portion in the order of the draws.

What the loss is divided by, its tokens or its responses, is known when all is in. Until then the
gradients are those of a mean over a provisional count; at the end they are multiplied by the ratio
of the two. Beside that, rows are packed within their portion and not within the step. Where neither
makes a difference (rows of one length, a count of tokens that is a power of two) the result is that
of the synchronous step to the bit, else to float rounding.
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
    """What a step may hold at most, as `objective.count` counts it.

    Tokens are rounded up to a power of two: to divide by that loses no bit.
    """
    tokens = config.samples_per_step * config.rollout.max_new_tokens
    return {
        "window_tokens": float(1 << (tokens - 1).bit_length()),
        "window_rows": float(config.samples_per_step),
        "window_positive": 1.0,
        "window_value_tokens": 1.0,
    }


class Iteration:
    """The micro-batches of one step, in order, each as soon as its portion is there.

    Args:
        parts: portions of whole groups, in the order of their draws.
        assemble: the tensors of a portion, with log-probabilities and advantages.
        config: of the run.
        packing: of a portion's rows into micro-batches.
        device: where the loss is.

    Attributes:
        left: rows that are still to come.
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
        """The next micro-batch, with provisional counts; waits for it."""
        if not self._ready:
            batch = self._assemble(next(self._parts))
            self._batches.append({name: batch[name] for name in _WANTED})
            for rows_N in self._packing.passes(batch):
                self._ready.append({**cut(batch, rows_N), **self._given})
        micro = self._ready.popleft()
        counts = objective.count(micro)
        self.tokens += counts.tokens
        self.rows += counts.rows
        self.left -= len(micro["rewards"])
        return micro

    def seen(self) -> Batch:
        """Of all rows, what is observed of a whole step: (B, T) padded with 0 where of tokens."""
        width = max(batch["loss_mask"].shape[1] for batch in self._batches)
        return {name: _joined([b[name] for b in self._batches], width) for name in _WANTED}

    def settled(self, loss: torch.Tensor, weights: Iterable[torch.nn.Parameter]) -> torch.Tensor:
        """A micro-batch has gone through backward; after the last one gradients are the mean's.

        Args:
            loss: of the micro-batch, by the provisional counts.
            weights: whose gradients these are.

        Returns:
            What to report for the micro-batch, so that the reports add up to the step's loss.
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
