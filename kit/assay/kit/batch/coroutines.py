"""A pool whose jobs are coroutines of this process: so many at a time, the others wait in turn."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.pool.jobs import Done
from assay.kit.queue import FairQueue
from assay.kit.reasons import Reason

_SMOOTHING = 0.2  # weight of the newest in the running mean of how long jobs take
_MAX_RETRY_S = 30.0

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class CoroutineJob:
    """A coroutine that waits for its turn, or runs.

    Attributes:
        done: gets the result; never an exception.
        started_s: when it began, by the monotonic clock.
    """

    lane: object
    size_bytes: int
    run: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Done[Any]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    started_s: float | None = None
    task: asyncio.Task[None] | None = None
    context: Context = field(default_factory=copy_context)


class CoroutinePool:
    """Runs coroutines, fair between calls. Belongs to one event loop."""

    def __init__(self, at_work: int, queue_items: int, queue_bytes: int) -> None:
        self._free = self._at_work = at_work
        self._queue: FairQueue[CoroutineJob] = FairQueue(queue_items, queue_bytes)
        self._mean_s = 0.1

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    def submit(self, jobs: Sequence[CoroutineJob]) -> None:
        """Takes jobs, all or none, and starts those that there is room for.

        Raises:
            QueueFull: they do not fit.
        """
        self._queue.put(jobs)
        self._feed()

    def cancel(self, job: CoroutineJob) -> None:
        """Ends a job."""
        job.done.cancel()
        self._queue.discard(job)
        if job.task is not None:
            job.task.cancel()

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many jobs fit into the queue."""
        await self._queue.wait_to_fit(items, size_bytes)

    def retry_after_s(self) -> float:
        """When there will be room again, roughly."""
        return min(_MAX_RETRY_S, max(0.1, self.queued * self._mean_s / self._at_work))

    def _feed(self) -> None:
        while self._free and (job := self._queue.take_now()) is not None:
            self._free -= 1
            # Not in the context of here, which may be that of a call whose job made room.
            loop = asyncio.get_running_loop()
            job.task = loop.create_task(_work(job), context=job.context)
            job.task.add_done_callback(partial(self._freed, job))

    def _freed(self, job: CoroutineJob, _task: asyncio.Task[None]) -> None:
        job.task = None
        self._free += 1
        if job.started_s is not None:
            self._mean_s += _SMOOTHING * (time.monotonic() - job.started_s - self._mean_s)
        self._feed()


async def _work(job: CoroutineJob) -> None:
    """Runs one coroutine; what it raises becomes the fault of its item."""
    job.started_s = time.monotonic()
    try:
        outcome = await job.run()
    except Unjudgeable as trouble:
        outcome = trouble.fault
    except asyncio.CancelledError as error:
        if job.done.cancelled():
            raise
        outcome = _defect(error)  # of something that it waited for; nobody gave the job up
    except Exception as error:  # noqa: BLE001 - the worker loop
        outcome = _defect(error)
    if not job.done.done():
        job.done.set_result(Done(outcome, job.started_s, time.monotonic() - job.started_s))


def _defect(error: BaseException) -> ItemFault:
    _log.error("the work on an item failed", exc_info=error)
    text = f"a defect of the server: {type(error).__name__}; its log says more"
    return ItemFault(Reason.INTERNAL, text)
