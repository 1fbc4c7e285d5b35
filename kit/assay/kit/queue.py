"""A bounded queue that is fair between tenants and between calls. Belongs to one event loop.

Each call has a lane. Tenants take turns, and the lanes of a tenant do, so a call of a thousand slow
jobs delays a call of three by at most what is running already, and a hundred such calls of one
tenant delay another tenant no more than one does. A call enters with all of its jobs or none.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from assay.kit.calls import tenant_var


class QueueFull(Exception):
    """The jobs do not fit; none was taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The place of one call; made in the call, whose tenant it takes."""

    tenant: str = field(default_factory=tenant_var.get)


class Queued(Protocol):
    """A job that can wait: hashable by identity."""

    @property
    def lane(self) -> object:
        """The call that it came with; one that is no `Lane` is of the tenant without a name."""

    @property
    def size_bytes(self) -> int:
        """Its memory, roughly."""


J = TypeVar("J", bound=Queued)
_Lanes: TypeAlias = OrderedDict[object, OrderedDict[J, None]]


class FairQueue(Generic[J]):
    """Jobs by lane and lanes by tenant; tenants take turns, and the lanes of each."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self.max_items = max_items
        self.max_bytes = max_bytes
        self._tenants: OrderedDict[str, _Lanes[J]] = OrderedDict()
        self._items = 0
        self._bytes = 0
        self._drained = asyncio.Event()

    def __len__(self) -> int:
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
            lanes = self._tenants.setdefault(_tenant_of(job), OrderedDict())
            lanes.setdefault(job.lane, OrderedDict())[job] = None
            self._added(job)

    def put_back(self, job: J) -> None:
        """Adds a job that was taken, as the next of its lane and of all, whether it fits or not."""
        tenant = _tenant_of(job)
        lanes = self._tenants.setdefault(tenant, OrderedDict())
        jobs = lanes.setdefault(job.lane, OrderedDict())
        jobs[job] = None
        jobs.move_to_end(job, last=False)
        lanes.move_to_end(job.lane, last=False)
        self._tenants.move_to_end(tenant, last=False)
        self._added(job)

    def take_now(self) -> J | None:
        """The next job of the lane whose turn it is; None when nothing waits."""
        if not self._tenants:
            return None
        tenant, lanes = next(iter(self._tenants.items()))
        lane, jobs = next(iter(lanes.items()))
        job, _ = jobs.popitem(last=False)
        lanes.move_to_end(lane)
        self._tenants.move_to_end(tenant)
        self._removed(job)
        return job

    def discard(self, job: J) -> bool:
        """Removes a waiting job; False if it does not wait."""
        lanes = self._tenants.get(_tenant_of(job))
        jobs = None if lanes is None else lanes.get(job.lane)
        if jobs is None or job not in jobs:
            return False
        del jobs[job]
        self._removed(job)
        return True

    def clear(self) -> list[J]:
        """Removes and returns all waiting jobs."""
        waiting = [
            job for lanes in self._tenants.values() for jobs in lanes.values() for job in jobs
        ]
        for job in waiting:
            self.discard(job)
        return waiting

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many more jobs fit; another call may then fill the room first."""
        while not self.fits(items, size_bytes):
            self._drained.clear()
            await self._drained.wait()

    def _added(self, job: J) -> None:
        self._items += 1
        self._bytes += job.size_bytes

    def _removed(self, job: J) -> None:
        tenant = _tenant_of(job)
        lanes = self._tenants[tenant]
        if not lanes[job.lane]:
            del lanes[job.lane]
        if not lanes:
            del self._tenants[tenant]
        self._items -= 1
        self._bytes -= job.size_bytes
        self._drained.set()


def _tenant_of(job: Queued) -> str:
    return job.lane.tenant if isinstance(job.lane, Lane) else ""
