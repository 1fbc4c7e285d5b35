"""The worker pool: slots with one killable process each, fed from one fair queue.

What it promises:
 1. A job's time-out covers its execution only. It starts when a worker has taken the job, never in
    the queue; when it passes, the worker is killed, the job ends with the fault ITEM_TIMEOUT, and a
    fresh worker takes the slot.
 2. A worker that dies in the middle of a job costs that job a fault, WORKER_DIED. It is not tried
    again: what killed it may be the item, and a poison item must not be fed to one worker after the
    other. A worker that dies before it has taken the job costs nothing: the job goes to a fresh
    one.
 3. A job that nobody waits for any more is removed from the queue, or its worker is killed.
 4. When the nursery dies it is started again; its workers die with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.reward_server import border
from assay.reward_server.domain import Fault, Outcome, VerifierSpec
from assay.reward_server.workers import frames
from assay.reward_server.workers.link import LinkError, NurseryLink, WorkerLink
from assay.reward_server.workers.queue import Done, FairQueue, Job
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc.calls import request_id_var

_TAKE_TIMEOUT_S = 30.0  # a lazy verifier's library is loaded in it
_ATTEMPTS = 3
_GRACE_S = 0.02
_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0
_SMOOTHING = 0.05

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How many workers, and how much waits for them.

    Attributes:
        workers: processes that judge at the same time; at least 1.
        queue_items: jobs that may wait.
        queue_bytes: bytes that the waiting jobs may hold.
        limits: what one worker may use.
        preload: lazy verifiers that are loaded at the start all the same.
    """

    workers: int
    queue_items: int
    queue_bytes: int
    limits: WorkerLimits
    preload: tuple[str, ...] = ()


class Pool:
    """Runs jobs in worker processes. Belongs to one event loop."""

    def __init__(self, config: PoolConfig) -> None:
        self._config = config
        self._queue = FairQueue(config.queue_items, config.queue_bytes)
        self._nursery: NurseryLink | None = None
        self._nursery_lock = asyncio.Lock()
        self._backoff_s = _MIN_BACKOFF_S
        self._slots: list[asyncio.Task[None]] = []
        self._running: dict[Job, WorkerLink] = {}
        self._mean_execution_s = 0.01
        self._spawned = 0

    async def start(self) -> None:
        """Starts the nursery and the workers.

        Raises:
            LinkError: the nursery does not come up.
        """
        self._nursery = NurseryLink(self._config.limits, self._config.preload)
        await self._nursery.start()
        self._slots = [asyncio.create_task(self._slot()) for _ in range(self._config.workers)]

    async def close(self) -> None:
        """Ends every process. Jobs that are not done end with the fault DRAINING."""
        for job in [*self._running, *self._queue.clear()]:
            job.finish(_never(Fault("DRAINING", "the server stopped before the item was judged")))
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        if self._nursery is not None:
            await self._nursery.close()

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    @property
    def busy(self) -> int:
        """Workers that judge an item at this moment."""
        return len(self._running)

    @property
    def restarts(self) -> int:
        """Workers started so far in place of another."""
        return max(0, self._spawned - self._config.workers)

    @property
    def nursery_pid(self) -> int | None:
        """Process id of the nursery, for logs and tests."""
        return self._nursery.pid if self._nursery else None

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live, for logs and tests."""
        return self._nursery.worker_pids() if self._nursery else []

    def running_pids(self) -> list[int]:
        """Process ids of the workers that judge an item at this moment, for logs and tests."""
        return [worker.pid for worker in self._running.values() if worker.pid is not None]

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
        wait_s = len(self._queue) * self._mean_execution_s / self._config.workers
        return min(5.0, max(0.1, wait_s))

    async def _slot(self) -> None:
        """The worker loop: one job after the other on one worker after the other."""
        worker: WorkerLink | None = None
        while True:
            if worker is None:
                worker = await self._spawn()
            job = await self._queue.take()
            request_id_var.set(job.request_id)  # for what is logged here meanwhile
            try:
                worker = await self._run(worker, job)
            except Exception:  # noqa: BLE001 - the worker loop
                # A defect of ours must not take the slot away from the jobs that
                # follow.
                _log.exception("the worker pool failed on a job")
                job.finish(_never(Fault("INTERNAL", "the worker pool failed on this item")))
                if worker is not None:
                    worker.kill()
                worker = None

    async def _run(self, worker: WorkerLink | None, job: Job) -> WorkerLink | None:
        """Runs a job; returns the worker if it can take another."""
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
            return worker
        for _ in range(_ATTEMPTS):
            if worker is not None and worker.ended.done():
                worker.kill()
                worker = None
            if worker is None:
                worker = await self._spawn()
            if job.done.done():
                return worker
            if await self._taken(worker, job, frame):
                return worker if await self._execute(worker, job) else None
            worker.kill()
            worker = None
        job.finish(_never(Fault("WORKER_DIED", "no worker lived long enough to take the item")))
        return None

    async def _taken(self, worker: WorkerLink, job: Job, frame: bytes) -> bool:
        """Hands the job over; False if the worker does not take it."""
        worker.send(frame)
        job.stop = worker.kill
        try:
            async with asyncio.timeout(_TAKE_TIMEOUT_S):
                return await worker.receive() == b""
        except (LinkError, TimeoutError):
            return False
        finally:
            job.stop = None

    async def _execute(self, worker: WorkerLink, job: Job) -> bool:
        """Waits for the judgement; False if the worker is of no more use."""
        started_s = time.monotonic()
        alarm = _Alarm(job.timeout_s, worker.kill)
        job.stop = worker.kill
        self._running[job] = worker
        retire = True
        try:
            outcome, retire = _answer(job.spec, await worker.receive())
        except LinkError:
            outcome = _lost_worker(job, expired=alarm.rang)
        except frames.FrameError as error:
            outcome = Fault("VERIFIER_FAILED", f"the worker's answer cannot be read: {error}")
        finally:
            alarm.cancel()
            job.stop = None
            del self._running[job]
        execution_s = time.monotonic() - started_s
        self._mean_execution_s += _SMOOTHING * (execution_s - self._mean_execution_s)
        job.finish(Done(outcome, started_s, execution_s))
        if retire:
            worker.kill()
            await worker.wait_ended()
        return not retire

    async def _spawn(self) -> WorkerLink:
        """A fresh worker, however long it takes; waiting items have their call's deadline."""
        while True:
            try:
                nursery = await self._living_nursery()
                worker = await nursery.spawn()
            except (LinkError, OSError) as error:
                _log.error(
                    "no worker can be started (%s); next attempt in %.1f s", error, self._backoff_s
                )
                await asyncio.sleep(self._backoff_s)
                self._backoff_s = min(_MAX_BACKOFF_S, 2 * self._backoff_s)
            else:
                self._backoff_s = _MIN_BACKOFF_S
                self._spawned += 1
                return worker

    async def _living_nursery(self) -> NurseryLink:
        async with self._nursery_lock:
            if self._nursery is not None and self._nursery.alive:
                return self._nursery
            if self._nursery is not None:
                _log.error("the nursery process is gone; starting another")
                await self._nursery.close()
            self._nursery = NurseryLink(self._config.limits, self._config.preload)
            await self._nursery.start()
            return self._nursery


class _Alarm:
    """Kills after a time-out.

    It rings twice and kills the second time: when the loop itself has paused past the time-out, the
    answer may lie in the socket already, and gets one round of the loop to be read.
    """

    def __init__(self, timeout_s: float, kill: Callable[[], None]) -> None:
        self.rang = False
        self._kill = kill
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(timeout_s, self._ring)

    def cancel(self) -> None:
        """Does not ring any more."""
        self._timer.cancel()

    def _ring(self) -> None:
        if self.rang:
            self._kill()
            return
        self.rang = True
        self._timer = self._loop.call_later(_GRACE_S, self._ring)


def _answer(spec: VerifierSpec, data: bytes) -> tuple[Outcome, bool]:
    """The outcome that a worker sent, checked, and whether the worker retires."""
    body = frames.unpack(data)
    outcome = border.checked(spec, frames.outcome_from_json(body))
    return outcome, body.get("retire") is True


def _lost_worker(job: Job, *, expired: bool) -> Fault:
    facts = {"verifier": job.spec.name}
    if expired:
        return Fault("ITEM_TIMEOUT", f"not judged within {job.timeout_s:g} s of execution", facts)
    return Fault("WORKER_DIED", "the process that judged the item died", facts)


def _never(fault: Fault) -> Done:
    """The result of a job that never began."""
    return Done(fault, None, 0.0)
