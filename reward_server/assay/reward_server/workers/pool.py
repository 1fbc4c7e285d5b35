"""The worker pool: seats with one killable worker each, fed from one fair queue.

What it promises:
 1. A job's time-out covers its execution only. It starts when a worker has taken the job, never in
    the queue; when it passes, the worker is killed, the job ends with the fault ITEM_TIMEOUT, and a
    fresh worker takes the seat.
 2. A worker that dies in the middle of a job costs that job a fault, WORKER_DIED. It is not tried
    again: what killed it may be the item, and a poison item must not be fed to one worker after the
    other. A worker that dies before it has taken the job costs nothing: the job goes to a fresh
    one. A machine that is lost with its workers is no doing of the item: that is judged once more
    elsewhere.
 3. A job that nobody waits for any more is removed from the queue, or its worker is killed.
 4. When the nursery dies it is started again; its workers die with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from assay.reward_server import border
from assay.reward_server.domain import Fault, Outcome
from assay.reward_server.workers import frames
from assay.reward_server.workers.queue import Done, FairQueue, Job
from assay.reward_server.workers.seat import End, Report, Seat, Seats
from assay.rpc.calls import request_id_var

_SMOOTHING = 0.05
_MOST_LOSSES = 2  # the item is judged once more, and no oftener

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How many workers, and how much waits for them.

    Attributes:
        workers: how many judge at the same time; 0 for as many as the seats have room for.
        queue_items: jobs that may wait.
        queue_bytes: bytes that the waiting jobs may hold.
    """

    workers: int
    queue_items: int
    queue_bytes: int


class Pool:
    """Runs jobs in workers. Belongs to one event loop.

    Args:
        config: how many, and how much waits for them.
        seats: where the workers are.
    """

    def __init__(self, config: PoolConfig, seats: Seats) -> None:
        self._config = config
        self._source = seats
        self._queue = FairQueue(config.queue_items, config.queue_bytes)
        self._seats: Sequence[Seat] = ()
        self._slots: list[asyncio.Task[None]] = []
        self._running: dict[Job, Seat] = {}
        self._mean_execution_s = 0.01

    async def start(self) -> None:
        """Starts the workers.

        Raises:
            LinkError: none can be started.
        """
        self._seats = await self._source.start(self._config.workers)
        self._slots = [asyncio.create_task(self._slot(seat)) for seat in self._seats]

    async def close(self) -> None:
        """Ends every worker. Jobs that are not done end with the fault DRAINING."""
        for job in [*self._running, *self._queue.clear()]:
            job.finish(_never(Fault("DRAINING", "the server stopped before the item was judged")))
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        await self._source.close()

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    @property
    def busy(self) -> int:
        """Workers that judge an item at this moment."""
        return sum(seat.busy for seat in self._seats)

    @property
    def restarts(self) -> int:
        """Workers started so far in place of another."""
        return sum(max(0, seat.spawned - 1) for seat in self._seats)

    @property
    def nursery_pid(self) -> int | None:
        """Process id of the nursery of this machine, for logs and tests."""
        return self._source.nursery_pid

    def worker_pids(self) -> list[int]:
        """Process ids of the workers of this machine that live, for logs and tests."""
        return self._source.worker_pids()

    def running_pids(self) -> list[int]:
        """Process ids of those that judge an item at this moment, for logs and tests."""
        return [seat.pid for seat in self._seats if seat.busy and seat.pid is not None]

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """
        self._queue.put(jobs)

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many jobs fit into the queue."""
        await self._queue.wait_to_fit(items, size_bytes)

    def cancel(self, job: Job) -> None:
        """Drops a job that nobody waits for: from the queue, or by killing its worker."""
        job.done.cancel()
        if not self._queue.discard(job) and job.stop is not None:
            job.stop()

    def retry_after_s(self) -> float:
        """When there will be room again, roughly."""
        wait_s = len(self._queue) * self._mean_execution_s / max(1, len(self._seats))
        return min(5.0, max(0.1, wait_s))

    async def _slot(self, seat: Seat) -> None:
        """The worker loop: one job after the other in one seat."""
        while True:
            await seat.fill()
            job = await self._queue.take()
            request_id_var.set(job.request_id)  # for what is logged here meanwhile
            if job.done.done():
                continue
            self._running[job] = seat
            job.stop = seat.stop
            try:
                await self._run(seat, job)
            except Exception:  # noqa: BLE001 - the worker loop
                # A defect of ours must not take the seat away from the jobs that
                # follow.
                _log.exception("the worker pool failed on a job")
                job.finish(_never(Fault("INTERNAL", "the worker pool failed on this item")))
                seat.stop()
            finally:
                job.stop = None
                del self._running[job]

    async def _run(self, seat: Seat, job: Job) -> None:
        """Runs a job."""
        body = {
            "verifier": job.spec.name,
            "item": frames.item_to_json(job.item),
            "timeout_s": job.timeout_s,
            "request_id": job.request_id,
        }
        try:
            frame = frames.pack(body, frames.MAX_JOB_BYTES)
        except frames.FrameError:
            job.finish(_never(Fault("ITEM_TOO_LARGE", "the item is too large for a worker")))
            return
        report = await seat.run(frame, job.timeout_s)
        job.losses += report.end is End.LOST
        lost = report.end is End.LOST and job.losses < _MOST_LOSSES
        if lost or report.end is End.ABSENT:
            if not job.done.done():
                self._queue.put_back(job)
            return
        outcome = _outcome(job, report)
        if report.end in (End.UNTAKEN, End.LOST, End.STOPPED):
            job.finish(Done(outcome, None, 0.0))
            return
        self._mean_execution_s += _SMOOTHING * (report.execution_s - self._mean_execution_s)
        started_s = time.monotonic() - report.execution_s
        job.finish(Done(outcome, started_s, report.execution_s))


def _outcome(job: Job, report: Report) -> Outcome:
    """The judgement that a report holds, checked, or what kept it from being one."""
    facts = {"verifier": job.spec.name}
    if report.end is End.ANSWERED:
        try:
            answer = frames.unpack(report.data)
            return border.checked(job.spec, frames.outcome_from_json(answer))
        except frames.FrameError as error:
            return Fault("VERIFIER_FAILED", f"the worker's answer cannot be read: {error}")
    if report.end is End.EXPIRED:
        return Fault("ITEM_TIMEOUT", f"not judged within {job.timeout_s:g} s of execution", facts)
    return Fault("WORKER_DIED", _WHAT_DIED[report.end], facts)


_WHAT_DIED = {
    End.DIED: "the process that judged the item died",
    End.UNTAKEN: "no worker lived long enough to take the item",
    End.LOST: "the machine that judged the item was lost, and so was the one that tried it again",
    End.STOPPED: "the item was given up",
}


def _never(fault: Fault) -> Done:
    """The result of a job that never began."""
    return Done(fault, None, 0.0)
