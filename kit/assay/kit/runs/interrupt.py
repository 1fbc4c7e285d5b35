"""Ctrl-C and SIGTERM during a run: the step in progress ends, and a checkpoint is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """In its `with` block the first signal is noted; the second acts as without the block.

    `on_first` is called with the first signal's name; it must be quick.
    """

    def __init__(self, on_first: Callable[[str], None]) -> None:
        self._on_first = on_first
        self._previous: dict[signal.Signals, Any] = {}
        self.requested = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.requested = True
        self._restore()
        self._on_first(signal.Signals(number).name)
