"""A bounded queue that is fair between calls, for services that hand jobs to workers.

Each call has a lane of its own; lanes take turns, so a call of a thousand slow jobs delays a call
of three by at most what is running already. A call enters with all of its jobs or none. Belongs to
one event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar


class QueueFull(Exception):
    """The jobs do not fit; none was taken."""


class Queued(Protocol):
    """A job that can wait: hashable by identity."""

    @property
    def lane(self) -> object:
        """The call that it came with."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, roughly."""


J = TypeVar("J", bound=Queued)


class FairQueue(Generic[J]):
    """Jobs by lane, lanes in turn.

    Args:
        max_items: jobs that may wait.
        max_bytes: bytes that the waiting jobs may hold.
    """

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        self._lanes: OrderedDict[object, OrderedDict[J, None]] = OrderedDict()
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

    def put(self, jobs: Sequence[J]) -> None:
        """Adds jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """
        if not self.fits(len(jobs), sum(job.size_bytes for job in jobs)):
            raise QueueFull
        for job in jobs:
            self._lanes.setdefault(job.lane, OrderedDict())[job] = None
            self._added(job)

    def put_back(self, job: J) -> None:
        """Adds a job that was taken, as the next of its lane and of all, whether it fits or not."""
        jobs = self._lanes.setdefault(job.lane, OrderedDict())
        jobs[job] = None
        jobs.move_to_end(job, last=False)
        self._lanes.move_to_end(job.lane, last=False)
        self._added(job)

    def take_now(self) -> J | None:
        """The next job of the lane whose turn it is; None when nothing waits."""
        if not self._lanes:
            return None
        lane, jobs = next(iter(self._lanes.items()))
        job, _ = jobs.popitem(last=False)
        if jobs:
            self._lanes.move_to_end(lane)
        else:
            del self._lanes[lane]
        self._removed(job)
        return job

    async def take(self) -> J:
        """The next job of the lane whose turn it is; waits for one."""
        while (job := self.take_now()) is None:
            self._filled.clear()
            await self._filled.wait()
        return job

    def discard(self, job: J) -> bool:
        """Removes a job that still waits; False if it does not."""
        jobs = self._lanes.get(job.lane)
        if jobs is None or job not in jobs:
            return False
        del jobs[job]
        if not jobs:
            del self._lanes[job.lane]
        self._removed(job)
        return True

    def clear(self) -> list[J]:
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

    def _added(self, job: J) -> None:
        self._items += 1
        self._bytes += job.size_bytes
        self._filled.set()

    def _removed(self, job: J) -> None:
        self._items -= 1
        self._bytes -= job.size_bytes
        self._drained.set()
