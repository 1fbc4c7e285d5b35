"""Workers on a Ray cluster: each seat has a host on some node, and the host a seat of its own.

The host, a Ray actor, starts a nursery on its node and keeps one worker of it, as the server does
on its own machine: the worker is the same process under the same limits, is killed at the time-out
by its host, and is replaced in milliseconds. Ray places hosts and says when one is lost.

Covered: a node, a host or the way to it that is lost: the item is judged once more in another
place, and the seat gets a host wherever there is room, at once or when a node joins; a node with
another version of this package is refused.
Not covered: the head of the cluster (a process that cannot reach it for a minute is ended by Ray,
this server too) and strangers: whoever reaches the ports of a Ray cluster runs what he wants there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any

from assay.reward_server.workers.link import LinkError
from assay.reward_server.workers.seat import End, LocalSeats, Report, Seat
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc import log_format, ray_cluster
from assay.rpc.ray_cluster import Berths, Cluster, Host, HostLost

_DISTRIBUTION = "assay-reward-server"
_START_S = 60.0
_SLACK_S = 120.0  # a lazy verifier's library is loaded in it, more than once if workers die
_STOP_S = 30.0
_BEAT_S = 5.0
_SILENCE_S = 30.0  # then a host is held for lost, whatever Ray says
_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0

_log = logging.getLogger(__name__)


class WorkerHost:
    """What runs on a node: one seat, which the server asks for from afar.

    Args:
        limits: memory_bytes, items and growth_bytes of `WorkerLimits`.
        preload: lazy verifiers that are loaded at the start all the same.
        log_json: the form of the logs, which go to Ray's files on the node.
    """

    def __init__(
        self, limits: tuple[int, int, int], preload: Sequence[str], log_json: bool
    ) -> None:
        log_format.set_up_worker(log_json)
        self._seats = LocalSeats(WorkerLimits(*limits), tuple(preload))
        self._seat: Seat | None = None
        self._serial = 0

    async def start(self) -> dict[str, Any]:
        """Has a worker ready; says who this is, or what the trouble is."""
        about = {
            "node": ray_cluster.this_node(),
            "name": socket.gethostname(),
            "pid": os.getpid(),
            "version": version(_DISTRIBUTION),
        }
        try:
            (self._seat,) = await self._seats.start(1)
        except LinkError as error:
            return {**about, "trouble": str(error)}
        await self._seat.fill()
        return about

    async def run(
        self, serial: int, frame: bytes, timeout_s: float
    ) -> tuple[str, float, bytes, int]:
        """Has the worker judge: how it ended, execution_s, the answer, workers started so far."""
        if self._seat is None:
            raise RuntimeError("the host is not started")
        self._serial = serial
        report = await self._seat.run(frame, timeout_s)
        return report.end.value, report.execution_s, report.data, self._seat.spawned

    async def stop(self, serial: int) -> None:
        """Gives up a frame, unless it is done."""
        if self._seat is not None and serial == self._serial:
            self._seat.stop()

    async def watch(self) -> None:
        """Answers after a while, for the server to hear that the host is there."""
        await asyncio.sleep(_BEAT_S)


class RaySeats:
    """Seats on a cluster.

    Args:
        address: of the cluster; see `ray_cluster.connect`.
        limits: what one worker may use.
        preload: lazy verifiers that are loaded at the start all the same.
    """

    def __init__(self, address: str, limits: WorkerLimits, preload: Sequence[str] = ()) -> None:
        self._address = address
        self._made_with = (
            (limits.memory_bytes, limits.items, limits.growth_bytes),
            tuple(preload),
            bool(log_format.worker_flags()),
        )
        self._cluster: Cluster | None = None
        self._berths: Berths
        self._seats: list[RaySeat] = []

    @property
    def nursery_pid(self) -> int | None:
        """None: each is on its host's node."""
        return None

    def worker_pids(self) -> list[int]:
        """None: they are on other machines."""
        return []

    async def start(self, wanted: int) -> Sequence[Seat]:
        """Connects, and waits until one seat at least is filled.

        Args:
            wanted: 0 for one for each CPU that the cluster has now.

        Raises:
            ConfigError: Ray is not installed.
            StartupError: no cluster answers.
            LinkError: no node has room, or none is of use.
        """
        cluster = await ray_cluster.connect(self._address, f"{_DISTRIBUTION}[ray]")
        self._cluster = cluster
        self._berths = Berths(cluster, "a worker")
        count = wanted or max(1, await cluster.cpus())
        self._seats = [RaySeat(self.place) for _ in range(count)]
        filling = [asyncio.create_task(seat.fill()) for seat in self._seats]
        try:
            await self._berths.first_of(filling, _START_S)
        except HostLost as error:
            raise LinkError(str(error)) from error
        finally:
            for task in filling:
                task.cancel()
        return self._seats

    async def close(self) -> None:
        """Ends every host."""
        await asyncio.gather(*(seat.close() for seat in self._seats))
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None

    async def place(self) -> Host:
        """A host that is up, however long that takes.

        Raises:
            HostLost: it was lost before, or its node is of no use.
        """
        host, _ = await self._berths.place(_DISTRIBUTION, WorkerHost, *self._made_with)
        return host


class RaySeat:
    """A seat on a cluster: one host after the other, wherever there is room. For one event loop.

    Args:
        place: gives a host that is up.
    """

    def __init__(self, place: Callable[[], Awaitable[Host]]) -> None:
        self.busy = False
        self.spawned = 0
        self._place = place
        self._host: Host | None = None
        self._here = 0  # workers that this host has started
        self._filled = asyncio.Event()
        self._serial = 0
        self._stopped = False
        self._stopping: set[asyncio.Task[None]] = set()
        self._keeper = asyncio.create_task(self._keep())

    @property
    def pid(self) -> int | None:
        """None: it is of another machine."""
        return None

    async def fill(self) -> None:
        """Waits for a host, which may be waiting for a node."""
        await self._filled.wait()

    async def run(self, frame: bytes, timeout_s: float) -> Report:
        """Has the host's worker judge; as in `Seat`."""
        self._stopped = False
        host = self._host
        if host is None:
            return Report(End.ABSENT)
        self._serial += 1
        self.busy = True
        try:
            end, execution_s, data, workers = await host.ask(
                "run", self._serial, frame, timeout_s, timeout_s=timeout_s + _SLACK_S
            )
        except HostLost as error:
            _log.error("the host of a worker is lost: %s", error)
            self._drop(host)
            return Report(End.STOPPED if self._stopped else End.LOST)
        finally:
            self.busy = False
        self.spawned += workers - self._here
        self._here = workers
        return Report(End(end), float(execution_s), bytes(data))

    def stop(self) -> None:
        """Gives up the frame that is run."""
        self._stopped = True
        if self.busy and self._host is not None:
            telling = asyncio.create_task(_tell(self._host, self._serial))
            self._stopping.add(telling)
            telling.add_done_callback(self._stopping.discard)

    async def close(self) -> None:
        """Ends the host; no other comes."""
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        if self._host is not None:
            self._drop(self._host)

    async def _keep(self) -> None:
        """Keeps a host in the seat, one after the other."""
        backoff_s = _MIN_BACKOFF_S
        while True:
            try:
                host = await self._place()
            except HostLost as error:
                _log.error("no host of a worker: %s; next attempt in %.1f s", error, backoff_s)
                await asyncio.sleep(backoff_s)
                backoff_s = min(_MAX_BACKOFF_S, 2 * backoff_s)
                continue
            backoff_s = _MIN_BACKOFF_S
            self._host, self._here = host, 1
            self.spawned += 1
            self._filled.set()
            try:
                while True:
                    await host.ask("watch", timeout_s=_SILENCE_S)
            except HostLost as error:
                _log.warning("the host of a worker is gone (%s); another is placed", error)
            self._drop(host)

    def _drop(self, host: Host) -> None:
        host.end()
        if self._host is host:
            self._host = None
            self._filled.clear()


async def _tell(host: Host, serial: int) -> None:
    # One that is lost shows in what was asked of it before.
    with contextlib.suppress(HostLost):
        await host.ask("stop", serial, timeout_s=_STOP_S)
