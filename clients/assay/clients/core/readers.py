"""Threads that read streams, each kept for the next one: to start one costs as much as a call."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

_IDLE_S = 30.0


class Readers:
    """As many threads as streams are read at once. The end of the process waits for none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def submit(self, read: Callable[[], None]) -> None:
        """Runs `read`, which raises nothing, in a thread at once."""
        with self._lock:
            starts = self._idle == 0
            self._idle -= not starts
        self._tasks.put(read)
        if starts:
            threading.Thread(target=self._work, name="assay-stream", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                read = self._tasks.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return
                continue
            read()
            del read
            with self._lock:
                self._idle += 1
