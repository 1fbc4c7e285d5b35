"""A seat: where one worker after the other judges. What the pool asks for, and the local kind.

The pool hands a seat one frame after the other and gets a report on each; how a worker comes into
the seat, and on which machine it is, is the seat's own business. `LocalSeat` has a process of this
machine in it, `assay.reward_server.workers.on_ray` a host somewhere in a cluster, which has a
`LocalSeat` of its own.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.reward_server.workers import frames
from assay.reward_server.workers.link import LinkError, NurseryLink, WorkerLink
from assay.reward_server.workers.worker import WorkerLimits

_TAKE_TIMEOUT_S = 30.0  # a lazy verifier's library is loaded in it
_ATTEMPTS = 3
_GRACE_S = 0.02
_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0

_log = logging.getLogger(__name__)


class End(enum.Enum):
    """How a frame ended in a seat."""

    ANSWERED = "answered"
    """The worker answered; the report has its bytes."""
    EXPIRED = "expired"
    """The time-out passed, and the worker was killed."""
    DIED = "died"
    """The worker died in the middle of it."""
    UNTAKEN = "untaken"
    """No worker lived long enough to take it."""
    LOST = "lost"
    """The machine of the worker was lost: nobody knows how far it came, and it is to blame."""
    ABSENT = "absent"
    """No worker was in the seat, so it never began."""
    STOPPED = "stopped"
    """It was given up by `stop`."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a frame.

    Attributes:
        end: how it ended.
        execution_s: from when a worker had taken it; 0 where none did.
        data: the body of the answer.
    """

    end: End
    execution_s: float = 0.0
    data: bytes = b""


class Seat(Protocol):
    """Where one worker after the other judges. One frame at a time."""

    @property
    def busy(self) -> bool:
        """Whether a worker has taken a frame and judges."""

    @property
    def pid(self) -> int | None:
        """Process id of the worker, for logs and tests; None where it is not of this machine."""

    @property
    def spawned(self) -> int:
        """Workers started in this seat so far."""

    async def fill(self) -> None:
        """Has a worker in the seat, however long it takes."""

    async def run(self, frame: bytes, timeout_s: float) -> Report:
        """Has a worker judge. The time-out covers the execution only."""

    def stop(self) -> None:
        """Gives up the frame that is run. Harmless where none is."""


class Seats(Protocol):
    """All seats of a pool."""

    @property
    def nursery_pid(self) -> int | None:
        """Process id of the nursery of this machine, for logs and tests."""

    async def start(self, wanted: int) -> Sequence[Seat]:
        """The seats, as many as are wanted, ready to be filled.

        Args:
            wanted: 0 for as many as there is room for.

        Raises:
            LinkError: no worker can be started.
        """

    def worker_pids(self) -> list[int]:
        """Process ids of the workers of this machine that live, for logs and tests."""

    async def close(self) -> None:
        """Ends every worker."""


class LocalSeats:
    """Seats of this machine: one nursery, whose workers sit in all of them.

    Args:
        limits: what one worker may use.
        preload: lazy verifiers that are loaded at the start all the same.
    """

    def __init__(self, limits: WorkerLimits, preload: Sequence[str] = ()) -> None:
        self._limits = limits
        self._preload = preload
        self._nursery: NurseryLink | None = None
        self._lock = asyncio.Lock()
        self._backoff_s = _MIN_BACKOFF_S

    @property
    def nursery_pid(self) -> int | None:
        """Process id of the nursery, for logs and tests."""
        return self._nursery.pid if self._nursery else None

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live, for logs and tests."""
        return self._nursery.worker_pids() if self._nursery else []

    async def start(self, wanted: int) -> Sequence[Seat]:
        """Starts the nursery; as in `Seats`."""
        self._nursery = NurseryLink(self._limits, self._preload)
        await self._nursery.start()
        return [LocalSeat(self) for _ in range(max(1, wanted))]

    async def close(self) -> None:
        """Ends the nursery, and with it every worker."""
        if self._nursery is not None:
            await self._nursery.close()

    async def spawn(self) -> WorkerLink:
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
                return worker

    async def _living_nursery(self) -> NurseryLink:
        async with self._lock:
            if self._nursery is not None and self._nursery.alive:
                return self._nursery
            if self._nursery is not None:
                _log.error("the nursery process is gone; starting another")
                await self._nursery.close()
            self._nursery = NurseryLink(self._limits, self._preload)
            await self._nursery.start()
            return self._nursery


class LocalSeat:
    """A seat of this machine.

    Args:
        seats: starts its workers.
    """

    def __init__(self, seats: LocalSeats) -> None:
        self.busy = False
        self.spawned = 0
        self._seats = seats
        self._worker: WorkerLink | None = None
        self._leaving: WorkerLink | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """Process id of the worker, for logs and tests."""
        return self._worker.pid if self._worker is not None else None

    async def fill(self) -> None:
        """Has a living worker in the seat."""
        if self._worker is not None and self._worker.ended.done():
            self._empty()
        if self._worker is None:
            if self._leaving is not None:
                await self._leaving.wait_ended()
                self._leaving = None
            self._worker = await self._seats.spawn()
            self.spawned += 1

    async def run(self, frame: bytes, timeout_s: float) -> Report:
        """Has the worker judge; as in `Seat`."""
        self._stopped = False
        for _ in range(_ATTEMPTS):
            await self.fill()
            if self._stopped or self._worker is None:
                return Report(End.STOPPED)
            if await self._taken(self._worker, frame):
                return await self._executed(self._worker, timeout_s)
            self._empty()
        return Report(End.STOPPED if self._stopped else End.UNTAKEN)

    def stop(self) -> None:
        """Gives up the frame that is run, by killing the worker."""
        self._stopped = True
        if self._worker is not None:
            self._worker.kill()

    async def _taken(self, worker: WorkerLink, frame: bytes) -> bool:
        """Hands the frame over; False if the worker does not take it."""
        worker.send(frame)
        try:
            async with asyncio.timeout(_TAKE_TIMEOUT_S):
                return await worker.receive() == b""
        except (LinkError, TimeoutError):
            return False

    async def _executed(self, worker: WorkerLink, timeout_s: float) -> Report:
        """Waits for the answer; empties the seat if the worker is of no more use."""
        started_s = time.monotonic()
        alarm = _Alarm(timeout_s, worker.kill)
        self.busy = True
        retire, end, data = True, End.ANSWERED, b""
        try:
            data = await worker.receive()
            retire = frames.retires(data)
        except LinkError:
            end = End.EXPIRED if alarm.rang else End.DIED
        finally:
            alarm.cancel()
            self.busy = False
        execution_s = time.monotonic() - started_s
        if retire:
            self._empty()
        return Report(End.STOPPED if self._stopped else end, execution_s, data)

    def _empty(self) -> None:
        """The worker goes, if it has not gone."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            self._leaving = worker


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
