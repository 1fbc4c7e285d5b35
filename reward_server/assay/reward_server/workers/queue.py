"""The bounded queue in front of the workers, fair between calls.

Each call has a lane of its own; lanes take turns, so a call of a thousand slow items delays a call
of three by at most what is running already. A call enters with all of its jobs or none.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from assay.reward_server.domain import Item, Outcome, VerifierSpec


class QueueFull(Exception):
    """The jobs do not fit; none was taken."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job.

    Attributes:
        outcome: a judgement or a fault.
        started_s: when execution began, by the event loop's monotonic clock; None if it never did.
        execution_s: how long it took.
    """

    outcome: Outcome
    started_s: float | None
    execution_s: float


@dataclass(eq=False, slots=True)
class Job:
    """One item for a worker.

    Attributes:
        lane: the call that it came with.
        spec: the verifier that judges.
        item: what to judge.
        timeout_s: limit of the execution.
        size_bytes: what it takes in memory, roughly.
        done: gets the result; never an exception.
        stop: kills the worker that runs the job; None while no worker does.
    """

    lane: object
    spec: VerifierSpec
    item: Item
    timeout_s: float
    size_bytes: int
    done: asyncio.Future[Done]
    stop: Callable[[], None] | None = field(default=None)

    def finish(self, done: Done) -> None:
        """Sets the result, unless nobody waits for it any more."""
        if not self.done.done():
            self.done.set_result(done)


class FairQueue:
    """Jobs by lane, lanes in turn. Belongs to one event loop."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        self._lanes: OrderedDict[object, OrderedDict[Job, None]] = OrderedDict()
        self._items = 0
        self._bytes = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    def __len__(self) -> int:
        """Jobs that wait."""
        return self._items

    def fits(self, items: int, size_bytes: int) -> bool:
        """Whether so many more jobs fit."""
        return self._items + items <= self.max_items and self._bytes + size_bytes <= self.max_bytes

    def put(self, jobs: Sequence[Job]) -> None:
        """Adds jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """
        size_bytes = sum(job.size_bytes for job in jobs)
        if not self.fits(len(jobs), size_bytes):
            raise QueueFull
        for job in jobs:
            self._lanes.setdefault(job.lane, OrderedDict())[job] = None
        self._items += len(jobs)
        self._bytes += size_bytes
        if jobs:
            self._filled.set()

    async def take(self) -> Job:
        """The next job of the lane whose turn it is; waits for one."""
        while not self._lanes:
            self._filled.clear()
            await self._filled.wait()
        lane, jobs = next(iter(self._lanes.items()))
        job, _ = jobs.popitem(last=False)
        if jobs:
            self._lanes.move_to_end(lane)
        else:
            del self._lanes[lane]
        self._removed(job)
        return job

    def discard(self, job: Job) -> bool:
        """Removes a job that still waits; False if it does not."""
        jobs = self._lanes.get(job.lane)
        if jobs is None or job not in jobs:
            return False
        del jobs[job]
        if not jobs:
            del self._lanes[job.lane]
        self._removed(job)
        return True

    def clear(self) -> list[Job]:
        """Removes and returns all jobs that wait."""
        jobs = [job for lane in self._lanes.values() for job in lane]
        for job in jobs:
            self.discard(job)
        return jobs

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many more jobs fit; another call may be faster to fill the room."""
        while not self.fits(items, size_bytes):
            self._drained.clear()
            await self._drained.wait()

    def _removed(self, job: Job) -> None:
        self._items -= 1
        self._bytes -= job.size_bytes
        self._drained.set()
