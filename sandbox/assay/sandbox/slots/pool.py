"""The pool: slots with one warden each, fed from one fair queue.

What it promises:
 1. Every job ends with exactly one result. A job's limits begin when a warden begins it; its time
    in the queue counts for nothing but the call's deadline.
 2. A warden is handed one job ahead of the one that it runs, so that it never waits for us; when
    another slot is idle, a job that was handed ahead is asked back and goes there.
 3. A warden that dies in the middle of a job costs that job a fault, WORKER_DIED; it is not tried
    again, because the job may be what killed it. Jobs that had not begun go to another warden. A
    fresh warden takes the slot, after a pause that grows while they keep dying. A machine that is
    lost with its warden is no doing of the job: that is run once more elsewhere.
 4. A job that nobody waits for any more leaves the queue, or is killed; a warden that does not let
    go of it in time is killed itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from assay.sandbox.slots import frames
from assay.sandbox.slots.frames import Frame, FrameError
from assay.sandbox.slots.jobs import Done, Fault, Job, JobQueue
from assay.sandbox.slots.link import Link, LinkError, Wardens

_AHEAD = 2
_ATTEMPTS = 3
_MOST_REPEATS = 1
_LET_GO_S = 10.0
_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0
_HEALTHY_S = 5.0
_SMOOTHING = 0.05

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How many slots, and how much waits for them.

    Attributes:
        slots: programs that run at the same time; 0 for as many as there is room for.
        queue_items: jobs that may wait.
        queue_bytes: bytes that the waiting jobs may hold.
    """

    slots: int
    queue_items: int
    queue_bytes: int


class _Slot:
    """One slot: its warden, while it has one, and the jobs that were handed to it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.link: Link | None = None
        self.jobs: dict[int, Job] = {}  # in the order in which the warden takes them
        self.lost = asyncio.Event()
        self.filled = asyncio.Event()  # once, for the first warden


class Pool:
    """Runs jobs in wardens. Belongs to one event loop.

    Args:
        config: how many slots, and how much waits for them.
        wardens: where the wardens are.

    Attributes:
        restarts: wardens started so far in place of one that died.
    """

    def __init__(self, config: PoolConfig, wardens: Wardens) -> None:
        self._config = config
        self._wardens = wardens
        self._queue = JobQueue(config.queue_items, config.queue_bytes)
        self._numbers = itertools.count(1)
        self._slots: list[_Slot] = []
        self._turn: dict[_Slot, None] = {}  # slots with a warden, the longest unused first
        self._keepers: list[asyncio.Task[None]] = []
        self._mean_execution_s = 0.01
        self._closing = False
        self.restarts = 0

    async def start(self) -> None:
        """Starts the wardens.

        Raises:
            LinkError: they do not come up.
        """
        count = await self._wardens.start(self._config.slots)
        self._slots = [_Slot(number) for number in range(count)]
        try:
            if self._wardens.patient:
                await self._start_keepers()
            else:
                await self._start_all()
        except BaseException:
            await self.close()
            raise

    async def _start_all(self) -> None:
        """Starts every warden, then their keepers."""
        started = await asyncio.gather(
            *(self._start_warden(slot) for slot in self._slots), return_exceptions=True
        )
        failures = [outcome for outcome in started if isinstance(outcome, BaseException)]
        if failures:
            raise failures[0]
        self._keepers = [asyncio.create_task(self._keep(slot)) for slot in self._slots]

    async def _start_keepers(self) -> None:
        """Starts the keepers, and waits until one has a warden."""
        for slot in self._slots:
            slot.lost.set()
        self._keepers = [asyncio.create_task(self._keep(slot)) for slot in self._slots]
        coming = [asyncio.create_task(slot.filled.wait()) for slot in self._slots]
        try:
            await self._wardens.wait_for_one(coming)
        finally:
            for task in coming:
                task.cancel()

    async def close(self) -> None:
        """Ends every process. Jobs that are not done end with the fault DRAINING."""
        self._closing = True
        waiting = [*(job for slot in self._slots for job in slot.jobs.values())]
        for job in [*waiting, *self._queue.clear()]:
            job.finish(Done(Fault("DRAINING", "the server stopped before the job was done")))
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        links = [slot.link for slot in self._slots if slot.link is not None]
        for slot in self._slots:
            slot.link = None
        await asyncio.gather(*(link.close() for link in links))
        await self._wardens.close()

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self._queue)

    def warden_pids(self) -> list[int]:
        """Process ids of the wardens that live, for logs and tests."""
        links = [slot.link for slot in self._slots if slot.link is not None]
        return [link.pid for link in links if link.pid is not None]

    def job(self, lane: object, kind: bytes, payload: bytes) -> Job:
        """A new job, not submitted yet."""
        done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        return Job(lane, kind, payload, done, next(self._numbers))

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queues jobs, all or none.

        Raises:
            QueueFull: they do not fit.
        """
        self._queue.put(jobs)
        self._feed()

    async def wait_to_fit(self, items: int, size_bytes: int) -> None:
        """Waits until so many jobs fit into the queue."""
        await self._queue.wait_to_fit(items, size_bytes)

    def cancel(self, job: Job) -> None:
        """Drops a job that nobody waits for: from the queue, or by having it killed."""
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
        """Hands out what waits: first to idle slots, then one ahead to each; then evens out."""
        for ahead in range(_AHEAD):
            for slot in [slot for slot in self._turn if len(slot.jobs) <= ahead]:
                if len(slot.jobs) > ahead:
                    continue
                job = self._next()
                if job is None:
                    self._even_out()
                    return
                self._hand(slot, job)

    def _next(self) -> Job | None:
        """The next job that somebody still waits for."""
        while (job := self._queue.take_now()) is not None:
            if not job.done.done():
                return job
        return None

    def _hand(self, slot: _Slot, job: Job) -> None:
        if slot.link is None:
            return
        job.asked_back = False
        slot.jobs[job.number] = job
        slot.link.send(job.kind, job.number, job.payload)
        # Whoever gets a job goes to the end of the turn: its box has time to make itself ready.
        self._turn.pop(slot, None)
        self._turn[slot] = None

    def _even_out(self) -> None:
        """While slots are idle, asks back jobs that wait behind a running one elsewhere."""
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

    def _give_up(self, slot: _Slot, job: Job) -> None:
        """Has the warden give a job up; kills the warden if it does not."""
        link = slot.link
        if job.given_up or link is None:
            return
        job.given_up = True
        link.send(frames.CANCEL, job.number)

        def look() -> None:
            if slot.link is link and slot.jobs.get(job.number) is job:
                _log.error("warden %s does not give a job up; it is killed", link.pid)
                link.kill()

        asyncio.get_running_loop().call_later(_LET_GO_S, look)

    def _on_frame(self, slot: _Slot, frame: Frame, age_s: float) -> None:
        job = slot.jobs.get(frame.number)
        if job is None:
            return
        came_s = time.monotonic() - age_s
        if frame.kind == frames.STARTED:
            job.started_s = came_s
            return
        del slot.jobs[frame.number]
        if frame.kind == frames.UNSTARTED:
            self._back(job)
        else:
            execution_s = max(0.0, came_s - (job.started_s or came_s))
            self._mean_execution_s += _SMOOTHING * (execution_s - self._mean_execution_s)
            job.finish(Done(_outcome(frame), job.started_s, execution_s))
        self._feed()

    def _back(self, job: Job) -> None:
        """A job that had not begun goes to the head of the queue, if somebody waits for it."""
        if job.done.done():
            return
        if self._closing:
            job.finish(Done(Fault("DRAINING", "the server stopped before the job was done")))
            return
        self._queue.put_back(job)

    def _on_lost(self, slot: _Slot) -> None:
        """The warden of a slot is gone, and what it was handed comes back or is lost."""
        self._turn.pop(slot, None)
        jobs, slot.jobs = slot.jobs, {}
        machine_lost = slot.link is not None and slot.link.machine_lost
        for job in reversed(jobs.values()):
            job.attempts += 1
            if machine_lost and job.started_s is not None and job.losses < _MOST_REPEATS:
                job.losses += 1
                job.started_s = None
                self._back(job)
            elif job.started_s is not None:
                fault = Fault("WORKER_DIED", "the process that ran the program for us died")
                execution_s = time.monotonic() - job.started_s
                job.finish(Done(fault, job.started_s, execution_s))
            elif job.attempts >= _ATTEMPTS:
                text = "no worker lived long enough to begin the job"
                job.finish(Done(Fault("WORKER_DIED", text)))
            else:
                self._back(job)
        slot.lost.set()
        self._feed()

    async def _start_warden(self, slot: _Slot) -> None:
        slot.lost.clear()
        link = self._wardens.link(
            slot.number,
            lambda frame, age_s: self._on_frame(slot, frame, age_s),
            lambda: self._on_lost(slot),
        )
        await link.start()
        slot.link = link
        self.restarts += slot.filled.is_set()
        slot.filled.set()
        self._turn[slot] = None
        self._feed()

    async def _keep(self, slot: _Slot) -> None:
        """Keeps a warden in the slot, one after the other."""
        backoff_s = _MIN_BACKOFF_S
        since_s = time.monotonic()
        while True:
            await slot.lost.wait()
            lost, slot.link = slot.link, None
            if lost is not None:
                _log.error("warden %s of slot %d is gone; starting another", lost.pid, slot.number)
                lost.kill()
                await lost.close()
            if time.monotonic() - since_s > _HEALTHY_S:
                backoff_s = _MIN_BACKOFF_S
            await asyncio.sleep(backoff_s)
            backoff_s = min(_MAX_BACKOFF_S, 2 * backoff_s)
            since_s = time.monotonic()
            try:
                await self._start_warden(slot)
            except (LinkError, OSError) as error:
                slot.lost.set()
                _log.error("slot %d: %s; next attempt in %.1f s", slot.number, error, backoff_s)


def _outcome(frame: Frame) -> bytes | Fault:
    if frame.kind == frames.DONE:
        return frame.payload
    try:
        reason, message, facts = frames.read_fault(frame.payload)
    except FrameError as error:
        return Fault("INTERNAL", f"the warden's answer cannot be read: {error}")
    return Fault(reason, message, facts)
