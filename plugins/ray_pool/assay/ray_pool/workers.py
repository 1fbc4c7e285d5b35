"""Workers on a Ray cluster: each slot has a host on some node, and the host has the worker.

The host, a Ray actor, starts on its node the process that a local pool starts, passes frames on,
and replaces a worker that is gone. Limits, isolation and time-outs are enforced on the node.

Covered: the loss of a node, a host or the connection: what ran there runs once more elsewhere, and
the slot gets a host wherever there is room. A node with another version of the service's package,
or that the service refuses, is named and avoided.
Not covered: the head of the cluster (Ray ends a process that cannot reach it for a minute, the
server too) and strangers: whoever reaches the ports of a Ray cluster runs code on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import socket
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from assay.kit import log_format
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameError, FrameReader
from assay.kit.pool.link import Link, LinkError, OnFrame, OnLost
from assay.kit.pool.places import Node, Placement
from assay.ray_pool import cluster
from assay.ray_pool.cluster import Berths, Cluster, HostLost, RayHost

_POLL_S = 5.0
_LINGER_S = 0.02  # a short job's end goes with its beginning, in one call for two
_SILENCE_S = 30.0  # then a host is held for lost, whatever Ray says
_STOP_S = 30.0
_RESTART_S = 120.0
_FIRST_PROBE = 2**63  # no number of a job

_log = logging.getLogger(__name__)


class WorkerHost:
    """An actor on a node: has one worker after the other, and passes frames from and to the pool.

    Args:
        log_json: the form of the logs, which go to Ray's files on the node.
    """

    def __init__(
        self, distribution: str, node: str, settings: str, slot: int, log_json: bool
    ) -> None:
        log_format.set_up_worker(log_json)
        self._distribution = distribution
        self._make_node = (node, settings)
        self._slot = slot
        self._node: Node | None = None
        self._facts: Mapping[str, Any] | None = None
        self._link: Link | None = None
        self._turn = 0
        self._probes: dict[int, asyncio.Future[Frame]] = {}
        self._outbox: list[tuple[float, Frame]] = []
        self._changed = asyncio.Event()
        self._gone = False

    async def start(self, turn: int) -> dict[str, Any]:
        """Starts a worker, which later calls name by `turn`; returns facts on this node."""
        about = {
            "node": cluster.this_node(),
            "name": socket.gethostname(),
            "pid": os.getpid(),
            "version": version(self._distribution),
        }
        try:
            await self._start(turn)
        except LinkError as error:
            return {**about, "trouble": str(error)}
        return {**about, **(self._facts or {})}

    async def _start(self, turn: int) -> None:
        if self._node is None:
            name, settings = self._make_node
            module, _, function = name.partition(":")
            self._node = await getattr(importlib.import_module(module), function)(settings)
            await self._node.workers.start(1)
        if self._link is not None:
            self._link.kill()
            await self._link.close()
        self._turn, self._gone = turn, False
        self._outbox.clear()
        self._link = self._node.workers.link(self._slot, self._on_frame, self._on_lost)
        await self._link.start()
        if self._facts is None:
            self._facts = await self._node.about(self._ask)

    async def send(self, turn: int, data: bytes) -> None:
        """Passes the pool's frames to the worker."""
        if self._link is not None and turn == self._turn:
            for frame in FrameReader().feed(data):
                self._link.send(*frame)

    async def receive(self, turn: int) -> list[tuple[float, bytes]] | None:
        """Frames of the worker, each with its age in seconds; None once it is gone.

        Returns an empty list after a while without any, as a sign of life.
        """
        try:
            async with asyncio.timeout(_POLL_S):
                while turn == self._turn and not self._outbox and not self._gone:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while self._only_begun():
                    self._changed.clear()
                    await self._changed.wait()
        if turn != self._turn or not self._outbox:
            return None
        now_s = time.monotonic()
        batch = [(now_s - came_s, frames.pack(*frame)) for came_s, frame in self._outbox]
        self._outbox.clear()
        return batch

    async def kill(self, turn: int) -> None:
        """Kills the worker."""
        if self._link is not None and turn == self._turn:
            self._link.kill()

    def _only_begun(self) -> bool:
        return not self._gone and all(f.kind == frames.STARTED for _, f in self._outbox)

    async def _ask(self, kind: bytes, body: bytes) -> Frame:
        if self._link is None:
            raise LinkError("there is no worker")
        number = _FIRST_PROBE + len(self._probes)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._probes[number] = answer
        self._link.send(kind, number, frames.pack_job(body))
        return await answer

    def _on_frame(self, frame: Frame, age_s: float) -> None:
        del age_s
        probe = self._probes.get(frame.number)
        if probe is None:
            self._outbox.append((time.monotonic(), frame))
            self._changed.set()
        elif frame.kind in frames.ANSWERS and not probe.done():
            probe.set_result(frame)

    def _on_lost(self) -> None:
        self._gone = True
        self._changed.set()
        for probe in self._probes.values():
            if not probe.done():
                probe.set_exception(LinkError("the worker died while it was tested"))


class RayWorkers:
    """The workers of a pool on a cluster."""

    patient = True

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._cluster: Cluster | None = None
        self._berths: Berths
        self._hosts: dict[int, RayHost] = {}
        self._turn = 0

    async def start(self, wanted: int) -> int:
        """Connects; 0 slots are one for each CPU that the cluster has now.

        Raises:
            ConfigError: Ray is not installed.
            StartupError: no cluster answers.
        """
        placement = self._placement
        self._cluster = await cluster.connect(placement.address)
        self._berths = Berths(self._cluster, placement.what)
        return wanted or max(1, await self._cluster.cpus())

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """Waits until one is up; the others come as nodes have room."""
        try:
            await self._berths.first_of(coming, self._placement.start_s)
        except HostLost as error:
            raise LinkError(str(error)) from error

    def link(self, slot: int, on_frame: OnFrame, on_lost: OnLost) -> Link:
        """As in `Workers`."""
        return RayLink(self, slot, on_frame, on_lost)

    async def close(self) -> None:
        """Ends every host and leaves the cluster."""
        for slot in list(self._hosts):
            self.drop(slot)
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None

    async def up(self, slot: int) -> tuple[RayHost, int]:
        """Waits for a host with a fresh worker; returns it with the worker's number.

        Raises:
            LinkError: it was lost before, or its node is of no use.
        """
        self._turn += 1
        turn = self._turn
        try:
            if slot in self._hosts:
                await self._restart(slot, turn)
            else:
                self._hosts[slot] = await self._place(slot, turn)
        except HostLost as error:
            raise LinkError(str(error)) from error
        return self._hosts[slot], turn

    def drop(self, slot: int) -> None:
        """Ends the host of a slot; the next worker gets another."""
        host = self._hosts.pop(slot, None)
        if host is not None:
            host.end()

    async def _place(self, slot: int, turn: int) -> RayHost:
        placement, log_json = self._placement, bool(log_format.worker_flags())
        host, about = await self._berths.place(
            placement.distribution,
            WorkerHost,
            *(placement.distribution, placement.node, placement.settings, slot, log_json),
            start=(turn,),
        )
        if trouble := placement.accept(about):
            raise self._berths.refuse(host, about, trouble)
        return host

    async def _restart(self, slot: int, turn: int) -> None:
        try:
            about = await self._hosts[slot].ask("start", turn, timeout_s=_RESTART_S)
            if trouble := about.get("trouble"):
                raise HostLost(str(trouble))
        except BaseException:
            self.drop(slot)
            raise


class RayLink:
    """One worker on a cluster."""

    pid = None

    def __init__(self, workers: RayWorkers, slot: int, on_frame: OnFrame, on_lost: OnLost) -> None:
        self.machine_lost = False
        self._workers = workers
        self._slot = slot
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._host: RayHost | None = None
        self._turn = 0
        self._killed = False
        self._outgoing = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._sender: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Waits for a node that has room, and for the worker there.

        Raises:
            LinkError: it did not come up.
        """
        self._host, self._turn = await self._workers.up(self._slot)
        self._go(self._receive(self._host))

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as the worker's loss."""
        self._outgoing += frames.pack(kind, number, payload)
        if self._host is not None and (self._sender is None or self._sender.done()):
            self._sender = self._go(self._send(self._host))

    def kill(self) -> None:
        """Has the host kill the worker; its loss follows."""
        if not self._killed and self._host is not None:
            self._killed = True
            self._go(self._kill(self._host))

    async def close(self) -> None:
        """Drops the worker; the host stays for the next one."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _go(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(self, host: RayHost) -> None:
        try:
            while self._outgoing:
                data, self._outgoing = self._outgoing, b""
                await host.ask("send", self._turn, data)
        except HostLost:
            # Whatever the reason: a frame is missing, so this host is of no more use.
            host.end()

    async def _kill(self, host: RayHost) -> None:
        try:
            await host.ask("kill", self._turn, timeout_s=_STOP_S)
        except HostLost:
            host.end()

    async def _receive(self, host: RayHost) -> None:
        reader = FrameReader()
        try:
            while (
                batch := await host.ask("receive", self._turn, timeout_s=_SILENCE_S)
            ) is not None:
                for age_s, data in batch:
                    for frame in reader.feed(data):
                        self._on_frame(frame, age_s)
        except HostLost as error:
            self.machine_lost = not self._killed
            _log.error("the host of a worker is lost: %s", error)
            self._workers.drop(self._slot)
        except FrameError as error:
            _log.error("what a worker says cannot be read: %s", error)
            self._workers.drop(self._slot)
        self._on_lost()
