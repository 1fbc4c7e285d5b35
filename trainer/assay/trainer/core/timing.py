"""One process's times of a step, and its device's memory."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from assay.trainer.engines.engine import Engine

_GIB = 2**30


class Timing:
    """Seconds by name, tokens that updates learnt from, and the peak of a device's memory.

    A CUDA device is synchronised at the beginning and end of what is timed. `flops_token`, the
    floating-point operations of an update for each token, and `peak_tflops` are 0 where unknown.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        flops_token: float = 0.0,
        peak_tflops: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._device = device
        self._flops_token = flops_token
        self._peak_flops = peak_tflops * 1e12
        self._clock = clock
        self._seconds: dict[str, float] = defaultdict(float)
        self._tokens = torch.zeros((), device=device)
        self._spans: list[tuple[str, float, float]] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Adds the seconds of the block to those of a name."""
        self._settle()
        began, at = self._clock(), time.time()
        try:
            yield
        finally:
            self._settle()
            self._seconds[name] += self._clock() - began
            self.spanned(name.removesuffix("_s"), at, time.time())

    def spanned(self, name: str, start: float, end: float) -> None:
        """Notes when something was done, in seconds since 1970; parts of one in a row are one."""
        if self._spans and self._spans[-1][0] == name:
            start = self._spans.pop()[1]
        self._spans.append((name, start, end))

    def spans(self) -> list[tuple[str, float, float]]:
        """What was noted since the last call."""
        found, self._spans = self._spans, []
        return found

    def count(self, tokens: torch.Tensor) -> None:
        """Adds an update's tokens, prompts and responses, without padding."""
        self._tokens = self._tokens + tokens

    def taken(self, engine: Engine | None = None) -> dict[str, float]:
        """The numbers since the last call, under the names of records.metric_table.

        With an `engine`, also its seconds of weight sync and its preemptions.
        """
        told = {name: round(seconds, 4) for name, seconds in self._seconds.items()}
        if engine is not None and round(engine.sync_s, 4):
            told["weight_sync_s"] = round(engine.sync_s, 4)
            engine.sync_s = 0.0
        if engine is not None and engine.preemptions is not None:
            told["preemptions"] = engine.preemptions
            engine.preemptions = 0
        update_s, tokens = self._seconds.get("update_s", 0.0), float(self._tokens)
        if update_s > 0 and tokens:
            told["update_tokens_per_s"] = round(tokens / update_s, 2)
            if self._peak_flops and self._flops_token:
                told["mfu"] = tokens * self._flops_token / (update_s * self._peak_flops)
        if self._device.type == "cuda":
            told["peak_memory_gib"] = torch.cuda.max_memory_allocated(self._device) / _GIB
            torch.cuda.reset_peak_memory_stats(self._device)
        self._seconds.clear()
        self._tokens = torch.zeros_like(self._tokens)
        return told

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def flops_of(model: torch.nn.Module) -> float:
    """Floating-point operations of an update for each token, by its linear layers.

    6 for each weight: 2 forward, 4 backward; 4 for a frozen one, which has no gradient. Attention's
    own operations, which grow with the length, are left out.
    """
    return sum(
        (6.0 if module.weight.requires_grad else 4.0) * module.weight.numel()
        for module in model.modules()
        if isinstance(module, torch.nn.Linear)
    )
