"""The pool: worker slots with one killable worker each, fed from one fair queue.

1. Every job ends with exactly one outcome. Its time-out begins when a worker begins the job; when
   it passes, the worker is killed and the job ends with `End.EXPIRED`.
2. A worker is handed jobs ahead of the one that it runs, up to the pool's depth. When another
   slot is idle, a job that was handed ahead is asked back and goes there.
3. A worker that dies in the middle of a job costs that job a fault, `End.DIED`, without a second
   try: the job may be what killed it. Jobs that had not begun go to another worker, three times at
   most (`End.UNTAKEN`). A job whose machine is lost with its workers runs once more elsewhere, and
   no oftener (`End.LOST`).
4. A job that nobody waits for leaves the queue, or its worker gives it up or is killed.
5. A fresh worker takes the slot of one that is gone: at once, unless it was lost before it began
   a job; then after a pause that grows.
6. A pool that closes ends what is not done with `End.DRAINING`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from assay.kit.faults import ItemFault
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameError
from assay.kit.pool.jobs import A, Codec, Done, End, Job, Q
from assay.kit.pool.link import Link, LinkError, Workers
from assay.kit.queue import FairQueue

_ATTEMPTS = 3
_MOST_REPEATS = 1
_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0
_SMOOTHING = 0.05
_IDLE = "its worker was lost without having begun a job"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Slots, and how much waits for them.

    Attributes:
        slots: workers that work at the same time; 0 for as many as there is room for.
        depth: jobs that a worker holds, the running one included. More than one needs workers that
            listen while they work.
        let_go_s: how long a worker may take to give up a job; 0 for workers that do not listen
            while they work, which are killed at once.

    Raises:
        ValueError: depth and let_go_s contradict one another.
    """

    slots: int
    queue_items: int
    queue_bytes: int
    depth: int = 1
    let_go_s: float = 0.0

    def __post_init__(self) -> None:
        if self.depth < 1 or (self.depth > 1 and not self.let_go_s):
            raise ValueError("a depth above 1 needs workers that let go of a job: set let_go_s")


class _Slot(Generic[Q, A]):
    def __init__(self, number: int) -> None:
        self.number = number
        self.link: Link | None = None
        self.jobs: dict[int, Job[Q, A]] = {}  # in the order in which the worker takes them
        self.worked = False  # it has begun a job, or was killed by us: its end is nothing odd
        self.lost = asyncio.Event()
        self.filled = asyncio.Event()  # once, for the first worker


class WorkerPool(Generic[Q, A]):
    """Runs jobs in workers. Belongs to one event loop.

    Args:
    Attributes:
        restarts: workers started so far in place of another.
    """

    def __init__(self, config: PoolConfig, workers: Workers, codec: Codec[Q, A]) -> None:
        self._config = config
        self._workers = workers
        self._codec = codec
        self._queue: FairQueue[Job[Q, A]] = FairQueue(config.queue_items, config.queue_bytes)
        self._numbers = itertools.count(1)
        self._slots: list[_Slot[Q, A]] = []
        # Slots with a worker that takes jobs, the longest unused first.
        self._turn: dict[_Slot[Q, A], None] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._mean_execution_s = 0.01
        self._closing = False
        self.restarts = 0

    async def start(self) -> None:
        """Starts the workers.

        Raises:
            LinkError: they do not come up.
        """
        count = await self._workers.start(self._config.slots)
        self._slots = [_Slot(number) for number in range(count)]
        try:
            if self._workers.patient:
                await self._start_keepers()
            else:
                await self._start_all()
        except BaseException:
            await self.close()
            raise

    async def _start_all(self) -> None:
        started = await asyncio.gather(
            *(self._start_worker(slot) for slot in self._slots), return_exceptions=True
        )
        failures = [outcome for outcome in started if isinstance(outcome, BaseException)]
        if failures:
            raise failures[0]
        self._keepers = [asyncio.create_task(self._keep(slot)) for slot in self._slots]

    async def _start_keepers(self) -> None:
        for slot in self._slots:
            slot.worked = True
            slot.lost.set()
        self._keepers = [asyncio.create_task(self._keep(slot)) for slot in self._slots]
        coming = [asyncio.create_task(slot.filled.wait()) for slot in self._slots]
        try:
            await self._workers.wait_for_one(coming)
        finally:
            for task in coming:
                task.cancel()

    async def close(self) -> None:
        """Ends every process; jobs that are not done end with `End.DRAINING`."""
        self._closing = True
        waiting = [*(job for slot in self._slots for job in slot.jobs.values())]
        for job in [*waiting, *self._queue.clear()]:
            self._fail(job, End.DRAINING)
        for keeper in self._keepers:
            keeper.cancel()
        try:
            await asyncio.gather(*self._keepers, return_exceptions=True)
        finally:  # also where the close is cancelled: no process is left behind
            links = [slot.link for slot in self._slots if slot.link is not None]
            for slot in self._slots:
                slot.link = None
            try:
                await asyncio.gather(*(link.close() for link in links))
            finally:
                await self._workers.close()

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    @property
    def idle(self) -> int:
        """Workers that would begin a job at once."""
        return 0 if len(self._queue) else sum(not slot.jobs for slot in self._turn)

    @property
    def busy(self) -> int:
        """Workers that run a job now."""
        return sum(map(_is_busy, self._slots))

    def worker_pids(self) -> list[int]:
        """Of this machine's living workers, for logs and tests."""
        links = [slot.link for slot in self._slots if slot.link is not None]
        return [link.pid for link in links if link.pid is not None]

    def running_pids(self) -> list[int]:
        """Of those that run a job now, for logs and tests."""
        links = [slot.link for slot in self._slots if slot.link is not None and _is_busy(slot)]
        return [link.pid for link in links if link.pid is not None]

    def job(
        self, lane: object, task: Q, *, size_bytes: int, timeout_s: float = math.inf
    ) -> Job[Q, A]:
        """A new job, not submitted; `Job` explains the arguments."""
        done: asyncio.Future[Done[A]] = asyncio.get_running_loop().create_future()
        return Job(lane, task, size_bytes, done, timeout_s, next(self._numbers))

    def submit(self, jobs: Sequence[Job[Q, A]]) -> None:
        """Queues jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """
        self._queue.put(jobs)
        self._feed()

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many jobs fit into the queue."""
        await self._queue.wait_to_fit(items, size_bytes)

    def cancel(self, job: Job[Q, A]) -> None:
        """Drops a job that nobody waits for, from the queue or from its worker."""
        job.done.cancel()
        if self._queue.discard(job):
            return
        for slot in self._slots:
            if job.number in slot.jobs:
                self._give_up(slot, job)

    def retry_after_s(self) -> float:
        """When there will be room again, roughly."""
        wait_s = len(self._queue) * self._mean_execution_s / max(1, len(self._slots))
        return min(5.0, max(0.1, wait_s))

    def _feed(self) -> None:
        """Hands out what waits: first to idle slots, then ahead to each; then evens out."""
        for ahead in range(self._config.depth):
            for slot in [slot for slot in self._turn if len(slot.jobs) <= ahead]:
                if len(slot.jobs) <= ahead and not self._hand_next(slot):
                    self._even_out()
                    return

    def _hand_next(self, slot: _Slot[Q, A]) -> bool:
        while (job := self._queue.take_now()) is not None:
            if not job.done.done() and self._hand(slot, job):
                return True
        return False

    def _hand(self, slot: _Slot[Q, A], job: Job[Q, A]) -> bool:
        """Hands a job to a worker; False, with the job finished, where it cannot be sent."""
        if slot.link is None:
            raise RuntimeError("a slot whose turn it is has a worker")
        try:
            kind, body = self._codec.encode(job.task)
            payload = frames.pack_job(body, timeout_s=job.timeout_s, request_id=job.request_id)
            slot.link.send(kind, job.number, payload)
        except FrameError as error:
            self._fail(job, End.UNSENDABLE, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a defect of ours costs this job only
            _log.exception("the pool failed on a job")
            self._fail(job, End.FAILED, type(error).__name__)
            return False
        job.asked_back = False
        slot.jobs[job.number] = job
        # Whoever gets a job goes to the end of the turn: the worker has time to make itself ready.
        self._turn.pop(slot, None)
        self._turn[slot] = None
        return True

    def _even_out(self) -> None:
        """While slots are idle, asks back jobs that wait behind a running one elsewhere."""
        if self._config.depth == 1:
            return
        idle = sum(not slot.jobs for slot in self._turn)
        coming = sum(
            job.asked_back and job.started_s is None
            for slot in self._turn
            for job in slot.jobs.values()
        )
        for slot in self._turn:
            if coming >= idle:
                return
            if len(slot.jobs) > 1:
                last = next(reversed(slot.jobs.values()))
                if not last.asked_back and last.started_s is None and slot.link is not None:
                    last.asked_back = True
                    slot.link.send(frames.GIVE_BACK, last.number)
                    coming += 1

    def _give_up(self, slot: _Slot[Q, A], job: Job[Q, A]) -> None:
        link = slot.link
        if job.given_up or link is None:
            return
        job.given_up = True
        if not self._config.let_go_s:
            self._kill(slot)
            return
        link.send(frames.CANCEL, job.number)

        def look() -> None:
            if slot.link is link and slot.jobs.get(job.number) is job:
                _log.error("worker %s does not let a job go; it is killed", link.pid)
                self._kill(slot)

        asyncio.get_running_loop().call_later(self._config.let_go_s, look)

    def _kill(self, slot: _Slot[Q, A]) -> None:
        self._turn.pop(slot, None)
        slot.worked = True
        if slot.link is not None:
            slot.link.kill()

    def _on_frame(self, slot: _Slot[Q, A], frame: Frame, age_s: float) -> None:
        if frame.kind == frames.LAST:
            self._turn.pop(slot, None)
            return
        job = slot.jobs.get(frame.number)
        if job is None:
            return
        came_s = time.monotonic() - age_s
        if frame.kind == frames.STARTED:
            job.started_s = came_s
            slot.worked = True
            return
        del slot.jobs[frame.number]
        if frame.kind == frames.UNSTARTED:
            self._back(job)
        else:
            self._finish(slot, job, frame, came_s)
        self._feed()

    def _finish(self, slot: _Slot[Q, A], job: Job[Q, A], frame: Frame, came_s: float) -> None:
        execution_s = max(0.0, came_s - (job.started_s or came_s))
        self._mean_execution_s += _SMOOTHING * (execution_s - self._mean_execution_s)
        if frame.kind == frames.EXPIRED:
            self._turn.pop(slot, None)
            self._fail(job, End.EXPIRED, execution_s=execution_s)
        elif frame.kind == frames.EXHAUSTED:
            self._fail(job, End.EXHAUSTED, execution_s=execution_s)
        else:
            try:
                outcome: A | ItemFault
                if frame.kind == frames.FAULT:
                    outcome = ItemFault(*frames.read_fault(frame.payload))
                else:
                    outcome = self._codec.decode(job.task, frame.payload)
            except FrameError as error:
                self._fail(job, End.UNREADABLE, str(error), execution_s)
                self._kill(slot)
            except Exception as error:  # noqa: BLE001 - a defect of ours costs this job only
                _log.exception("the pool failed on the answer of a job")
                self._fail(job, End.FAILED, type(error).__name__, execution_s)
            else:
                job.finish(Done(outcome, job.started_s, execution_s))

    def _fail(self, job: Job[Q, A], end: End, detail: str = "", execution_s: float = 0.0) -> None:
        if not job.done.done():
            job.finish(Done(self._codec.fault(job, end, detail), job.started_s, execution_s))

    def _back(self, job: Job[Q, A]) -> None:
        """A job that had not begun goes to the head of the queue, if somebody waits for it."""
        if job.done.done():
            return
        if self._closing:
            self._fail(job, End.DRAINING)
            return
        self._queue.put_back(job)

    def _on_lost(self, slot: _Slot[Q, A]) -> None:
        self._turn.pop(slot, None)
        jobs, slot.jobs = slot.jobs, {}
        machine_lost = slot.link is not None and slot.link.machine_lost
        for job in reversed(jobs.values()):
            if job.started_s is None:
                job.attempts += 1
                if job.attempts < _ATTEMPTS:
                    self._back(job)
                else:
                    self._fail(job, End.UNTAKEN)
            elif machine_lost and job.losses < _MOST_REPEATS:
                job.losses += 1
                job.started_s = None
                self._back(job)
            else:
                end = End.LOST if machine_lost else End.DIED
                self._fail(job, end, execution_s=time.monotonic() - job.started_s)
        slot.lost.set()
        self._feed()

    async def _start_worker(self, slot: _Slot[Q, A]) -> None:
        slot.lost.clear()
        slot.worked = False
        link = self._workers.link(
            slot.number,
            lambda frame, age_s: self._on_frame(slot, frame, age_s),
            lambda: self._on_lost(slot),
        )
        await link.start()
        slot.link = link
        self.restarts += slot.filled.is_set()
        slot.filled.set()
        if not slot.lost.is_set():
            self._turn[slot] = None
        self._feed()

    async def _keep(self, slot: _Slot[Q, A]) -> None:
        backoff_s = _MIN_BACKOFF_S
        why = _IDLE
        while True:
            await slot.lost.wait()
            lost, slot.link = slot.link, None
            if lost is not None:
                lost.kill()
                await lost.close()
            if slot.worked:
                backoff_s = _MIN_BACKOFF_S
            else:
                _log.error("slot %d: %s; next attempt in %.1f s", slot.number, why, backoff_s)
                await asyncio.sleep(backoff_s)
                backoff_s = min(_MAX_BACKOFF_S, 2 * backoff_s)
            try:
                why = _IDLE
                await self._start_worker(slot)
            except (LinkError, OSError) as error:
                why = str(error)
                slot.lost.set()


def _is_busy(slot: _Slot[Q, A]) -> bool:
    return any(job.started_s is not None for job in slot.jobs.values())
