"""Requests that come from other threads while an engine draws: what follows a tool's answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from assay.trainer.engines.types import Request

Id = tuple[int, ...]
"""Names an open request; where rows wait, the smaller goes first."""
Asked = Iterable[tuple[Id, Request]]
Late = Callable[[], Asked]
"""Gives requests that are due now, in the engine's thread; may raise."""


class Arrivals:
    """What a `Sampler.serve` still waits for beside its engine.

    Attributes:
        outstanding: how many were announced by `expect` and not taken yet.
    """

    def __init__(self) -> None:
        self.outstanding = 0
        self._ready: deque[Late] = deque()
        self._lock = threading.Lock()
        self._wake: Callable[[], None] = _nobody

    def expect(self, future: Future[Any], late: Late) -> None:
        """In the engine's thread: `late` is called there once the future is done."""
        self.outstanding += 1
        future.add_done_callback(lambda _done: self._put(late))

    def taken(self) -> Iterator[tuple[Id, Request]]:
        """In the engine's thread: the requests that are due by now."""
        while True:
            with self._lock:
                if not self._ready:
                    return
                late = self._ready.popleft()
            self.outstanding -= 1
            yield from late()

    def wakes(self, wake: Callable[[], None]) -> None:
        """`wake` is called, in any thread, when something is due and nothing was before."""
        self._wake = wake

    def _put(self, late: Late) -> None:
        with self._lock:
            first = not self._ready
            self._ready.append(late)
        if first:
            self._wake()


def _nobody() -> None:
    """Wakes nobody: `serve` has not begun, or is over."""
