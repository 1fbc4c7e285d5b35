"""Threads that read streams, each kept for the next one: to start one costs as much as a call."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

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


class CallAside:
    """A gRPC call that another thread makes and reads, for the thread that signals interrupt.

    gRPC's locks are Python's. A KeyboardInterrupt within one leaves it locked, and with it the
    channel, for good. Who waits here waits at a queue, which an interrupt leaves whole.

    Args:
        begin: makes the call.
        read: its responses.
    """

    def __init__(
        self, readers: Readers, begin: Callable[[], Any], read: Callable[[Any], Iterable[Any]]
    ) -> None:
        self._readers = readers
        self._made: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._entries: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._ended = False
        readers.submit(partial(self._work, begin, read))

    def __iter__(self) -> Iterator[Any]:
        while True:
            is_response, entry = self._entries.get()
            if is_response:
                yield entry
                continue
            self._ended = True
            if entry is not None:
                raise entry
            return

    def cancel(self) -> None:
        """Cancels the call unless it has ended; returns at once."""
        if not self._ended:
            self._readers.submit(self._cancel)

    def _work(self, begin: Callable[[], Any], read: Callable[[Any], Iterable[Any]]) -> None:
        call = end = None
        try:
            try:
                call = begin()
            finally:
                self._made.put(call)
            for response in read(call):
                self._entries.put((True, response))
        except BaseException as error:  # noqa: BLE001  # who waits gets it
            end = error
        self._entries.put((False, end))

    def _cancel(self) -> None:
        call = self._made.get()
        if call is not None:
            call.cancel()
