"""A pending item: one item of a call on its way to its result; and the pools that run items."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from assay.kit.faults import ItemFault
from assay.kit.pool.jobs import Done


class PoolJob(Protocol):
    """One item's work, as a pool takes it."""

    @property
    def size_bytes(self) -> int:
        """Its memory, roughly."""

    @property
    def done(self) -> asyncio.Future[Done[Any]]:
        """Gets a `Done`; never an exception."""


class JobPool(Protocol):
    """Runs jobs; what waits for it is bounded."""

    @property
    def queued(self) -> int:
        """Jobs that wait."""

    def submit(self, jobs: Sequence[Any]) -> None:
        """Queues jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """

    def cancel(self, job: Any) -> None:
        """Drops a job that nobody waits for, or ends its execution."""

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many jobs fit into the queue."""

    def retry_after_s(self) -> float:
        """When there will be room again, roughly."""


@dataclass(eq=False, slots=True)
class SharedExecution:
    """A job in a pool, and how many items wait for it.

    Attributes:
        key: that equal items share, and their time-out; None where nothing is shared.
    """

    job: PoolJob
    pool: JobPool
    key: tuple[Hashable, float] | None = None
    waiters: int = 0


@dataclass(eq=False, slots=True)
class PendingItem:
    """One item on its way to its result; a service adds fields of its own.

    Attributes:
        arrived_s: when the request arrived, by the monotonic clock.
        key: shared by equal items; None where nothing may be shared, or before it is known.
        execution: what it waits for; None when it waits for none (any more).
        shared: the execution was begun for another item.
        outcome: set once, when the item is settled: a judgement or an `ItemFault`.
        started_s: when execution began, by the monotonic clock.
        queue_s: seconds from the arrival to the beginning of the execution; 0 for one not begun.
        from_cache: the judgement was computed for another item.
    """

    item_id: str
    arrived_s: float
    size_bytes: int = 0
    timeout_s: float = 0.0
    key: Hashable | None = None
    execution: SharedExecution | None = None
    shared: bool = False
    outcome: Any = None
    started_s: float | None = None
    queue_s: float = 0.0
    execution_s: float = 0.0
    from_cache: bool = False

    def settle(
        self,
        outcome: Any,
        *,
        started_s: float | None = None,
        execution_s: float | None = None,
        from_cache: bool = False,
    ) -> None:
        """Sets the outcome, a judgement or an `ItemFault`; times default to those known, or now."""
        if started_s is None:
            started_s = self.started_s
        if started_s is None or execution_s is None:
            now_s = time.monotonic()
            started_s = now_s if started_s is None else started_s
            execution_s = now_s - started_s if execution_s is None else execution_s
        self.outcome = outcome
        self.started_s = started_s
        self.queue_s = max(0.0, started_s - self.arrived_s)
        self.execution_s = execution_s
        self.from_cache = from_cache

    @property
    def faulted(self) -> bool:
        """Whether it is settled by a fault."""
        return isinstance(self.outcome, ItemFault)


P = TypeVar("P", bound=PendingItem)
