"""The interface between back ends and judging: a box takes one run at a time, a pump drives runs.

One thread starts runs and calls `Pump.step` until they have ended. Two boxes on one pump let a
tester and a candidate run side by side. Back ends make boxes (`assay.sandbox.backend`).
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from assay.sandbox.domain import EndKind, RunRecord, RunRequest


class Running(Protocol):
    """A run in progress."""

    frames: deque[bytes]
    """Frames received over the channel, oldest first; the judge takes them. Untrusted bytes."""

    @property
    def record(self) -> RunRecord | None:
        """None while it runs; set once its processes are dead and its output is drained."""

    def send(self, frame: bytes) -> None:
        """Sends a frame over the channel. Never blocks; no error if the run has ended."""

    def kill(self, end: EndKind | None = None, detail: str = "") -> None:
        """Kills every process; the record then says `end` (None: its own end). Idempotent."""

    def watched(self) -> Sequence[int]:
        """File descriptors to poll for reading."""

    def deadline_s(self) -> float:
        """When `on_time` is to be called next, on time.monotonic(); infinity for never."""

    def on_ready(self, descriptor: int) -> None:
        """Handles a watched descriptor that is readable or closed."""

    def on_time(self, now_s: float) -> None:
        """Handles a passed deadline."""


class Box(Protocol):
    """Runs one program at a time, isolated."""

    level: str
    """The isolation level, kebab-case, e.g. "namespaces"."""

    def start(self, request: RunRequest) -> Running:
        """Starts a run.

        Raises:
            SandboxFault: WORKER_DIED, the box could not be rebuilt; or the request cannot be
                carried out.
        """

    def close(self) -> None:
        """Kills what runs and frees everything."""


class Boxes(Protocol):
    """The boxes of one slot, made when first needed."""

    def candidate(self, source: str = "") -> Box:
        """The candidate's box; `source`, all its text, decides which modules are preloaded."""

    def tester(self) -> Box:
        """A second box, for test code."""

    def close(self) -> None:
        """Closes every box."""


class Pump:
    """Polls the descriptors of many runs, and calls their handlers."""

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
        """Stops watching it."""
        self._others.pop(descriptor, None)

    def step(self, timeout_s: float | None = None) -> None:
        """Waits for one event or the timeout, and handles what came."""
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
        """Steps until an added run has ended."""
        while running.record is None:
            self.step()
        return running.record
