"""What runs programs, as an interface: a box takes one run at a time; a pump moves its bytes.

Each back end makes boxes (`assay.sandbox.backend`). One thread drives everything: it starts runs,
then calls `Pump.step` until what it waits for has come. Two boxes on one pump let a tester and a
candidate run side by side.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from assay.sandbox.domain import EndKind, RunRecord, RunRequest


class Running(Protocol):
    """A run that has been started."""

    frames: deque[bytes]
    """Frames received over the channel, oldest first, for the judge to take.

    Bytes of the candidate: not to be trusted.
    """

    @property
    def record(self) -> RunRecord | None:
        """How it ended.

        None while it runs. Set only when every process of it is dead and its output is drained.
        """

    def send(self, frame: bytes) -> None:
        """Sends a frame over the channel. Never blocks; no error if the run has ended."""

    def kill(self, end: EndKind | None = None, detail: str = "") -> None:
        """Kills every process of it.

        The record then says `end` (None: whatever happened by itself). May be called twice.
        """

    def watched(self) -> Sequence[int]:
        """File descriptors to wait on for reading."""

    def deadline_s(self) -> float:
        """When `on_time` wants to be called next, on time.monotonic(); infinity for never."""

    def on_ready(self, descriptor: int) -> None:
        """A watched descriptor is readable or closed."""

    def on_time(self, now_s: float) -> None:
        """The deadline has passed."""


class Box(Protocol):
    """Runs one program at a time, isolated."""

    level: str
    """How programs are isolated, e.g. "namespaces", kebab-case."""

    def start(self, request: RunRequest) -> Running:
        """Starts a run.

        Raises:
            SandboxFault: the box is broken and could not be rebuilt (WORKER_DIED), or the request
            cannot be carried out.
        """

    def close(self) -> None:
        """Kills what runs and frees everything."""


class Boxes(Protocol):
    """The boxes of one slot, made when they are first needed."""

    def candidate(self, source: str = "") -> Box:
        """The box for the candidate; `source`, all its text, tells which modules it is to have."""

    def tester(self) -> Box:
        """A second box, for test code."""

    def close(self) -> None:
        """Closes every box."""


class Pump:
    """Waits for many runs at once and lets each handle what is its own."""

    def __init__(self) -> None:
        self._running: list[Running] = []
        self._others: dict[int, Callable[[], None]] = {}

    def add(self, running: Running) -> None:
        """Watches a run until it has ended."""
        self._running.append(running)

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Calls `handler` whenever another descriptor is readable, e.g. the link to the server."""
        self._others[descriptor] = handler

    def unwatch(self, descriptor: int) -> None:
        """Calls no handler for it any more."""
        self._others.pop(descriptor, None)

    def step(self, timeout_s: float | None = None) -> None:
        """Waits until something happened or the time has passed, handles it, and returns."""
        now_s = time.monotonic()
        until_s = min((run.deadline_s() for run in self._running), default=float("inf"))
        if timeout_s is not None:
            until_s = min(until_s, now_s + timeout_s)
        poll = select.poll()
        owners: dict[int, Running | None] = dict.fromkeys(self._others)
        for run in self._running:
            owners.update(dict.fromkeys(run.watched(), run))
        for descriptor in owners:
            poll.register(descriptor, select.POLLIN)
        wait_ms = None if until_s == float("inf") else max(0.0, (until_s - now_s) * 1e3)
        for descriptor, _ in poll.poll(wait_ms):
            owner = owners[descriptor]
            if owner is None:
                handler = self._others.get(descriptor)
                if handler is not None:
                    handler()
                continue
            try:
                owner.on_ready(descriptor)
            except BaseException:
                self._running.remove(owner)
                raise
        now_s = time.monotonic()
        for run in self._running:
            if run.record is None and run.deadline_s() <= now_s:
                run.on_time(now_s)
        self._running = [run for run in self._running if run.record is None]

    def finish(self, running: Running) -> RunRecord:
        """Steps until a run has ended; the run must have been added."""
        while running.record is None:
            self.step()
        return running.record
