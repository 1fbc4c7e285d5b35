"""Wardens on a Ray cluster: each slot has a host on some node, and the host has the warden.

The host, a Ray actor, surveys its node (its walls, its languages), starts a warden there as the
front does on its own machine, has every language prove itself, and passes frames on. Ray places
hosts and says when one is lost.

Covered: a node below the floor, or without a language that is served, or with another version of
this package, is refused and named; a node, a host or the way to it that is lost: what ran there is
run once more in another place, and the slot gets a host wherever there is room, at once or when a
node joins.
Not covered: the head of the cluster (a process that cannot reach it for a minute is ended by Ray,
this server too) and strangers: whoever reaches the ports of a Ray cluster runs what he wants there.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from assay.rpc import log_format, ray_cluster
from assay.rpc.ray_cluster import Berths, Cluster, Host, HostLost
from assay.sandbox.config import RunnerConfig
from assay.sandbox.languages import Missing
from assay.sandbox.site import Site
from assay.sandbox.slots import frames
from assay.sandbox.slots.frames import Frame, FrameError, FrameReader
from assay.sandbox.slots.link import Link, LinkError, WardenLink

_DISTRIBUTION = "assay-sandbox"
_POLL_S = 5.0
_LINGER_S = 0.02  # a short program's end goes with its beginning, in one call for two
_SILENCE_S = 30.0  # then a host is held for lost, whatever Ray says
_SURVEY_S = 360.0  # what speeds compilations up is made in it, once for each node
_FIRST_PROBE = 2**63  # no number of a job

_log = logging.getLogger(__name__)


class WardenHost:
    """What runs on a node: one warden, whose frames the front sends and receives from afar.

    Args:
        config: `RunnerConfig.to_json` of the service.
        slot: its number, unique in the service.
        log_json: the form of the logs, which go to Ray's files on the node.
    """

    def __init__(self, config: str, slot: int, log_json: bool) -> None:
        log_format.set_up_worker(log_json)
        self._config = RunnerConfig.from_json(config)
        self._config_json = config
        self._slot = slot
        self._link: WardenLink | None = None
        self._probes: dict[int, asyncio.Future[str]] = {}
        self._outbox: list[tuple[float, Frame]] = []
        self._changed = asyncio.Event()
        self._gone = False

    async def start(self) -> dict[str, Any]:
        """Has a warden ready; says who this is and what the node gives, or what the trouble is."""
        about = {
            "node": ray_cluster.this_node(),
            "name": socket.gethostname(),
            "pid": os.getpid(),
            "version": version(_DISTRIBUTION),
        }
        try:
            site = await _survey(self._config_json)
            settings = dataclasses.replace(site.settings(self._config), slot=self._slot)
            self._link = WardenLink(settings, self._on_frame, self._on_lost)
            await self._link.start()
            site = await self._proved(site, self._link)
        except LinkError as error:
            return {**about, "trouble": str(error)}
        return {**about, "site": site.to_json(), "level": self._link.level}

    async def send(self, data: bytes) -> None:
        """Frames of the front, for the warden."""
        if self._link is not None:
            for frame in FrameReader().feed(data):
                self._link.send(*frame)

    async def receive(self) -> list[tuple[float, bytes]] | None:
        """Frames of the warden, each with its age in seconds; None: it is gone.

        Empty if none come for a while, so that the front hears of this host.
        """
        try:
            async with asyncio.timeout(_POLL_S):
                while not self._outbox and not self._gone:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while self._only_begun():
                    self._changed.clear()
                    await self._changed.wait()
        if not self._outbox:
            return None
        now_s = time.monotonic()
        batch = [(now_s - came_s, frames.pack(*frame)) for came_s, frame in self._outbox]
        self._outbox.clear()
        return batch

    def _only_begun(self) -> bool:
        """Whether all there is to say is that jobs have begun."""
        return not self._gone and all(f.kind == frames.STARTED for _, f in self._outbox)

    async def _proved(self, site: Site, link: WardenLink) -> Site:
        """The site, less the languages that do not pass their self-test here."""
        loop = asyncio.get_running_loop()
        failed = []
        for number, name in enumerate(sorted(site.toolchains.found), _FIRST_PROBE):
            answer = self._probes[number] = loop.create_future()
            link.send(frames.PROBE, number, name.encode())
            if why := await answer:
                _log.error("%s is not served: %s", name, why)
                failed.append(Missing(name, why))
        return dataclasses.replace(site, toolchains=site.toolchains.without(failed))

    def _on_frame(self, frame: Frame, age_s: float) -> None:
        del age_s
        probe = self._probes.get(frame.number)
        if probe is None:
            self._outbox.append((time.monotonic(), frame))
            self._changed.set()
        elif frame.kind != frames.STARTED and not probe.done():
            why = frame.payload.decode(errors="replace")
            probe.set_result(why if frame.kind == frames.DONE else why or "it cannot be tested")

    def _on_lost(self) -> None:
        self._gone = True
        self._changed.set()
        for probe in self._probes.values():
            if not probe.done():
                probe.set_result("the warden died while it was tested")


class RayWardens:
    """Wardens on a cluster.

    Args:
        config: how programs are run; what it says of the machine holds for each node.
    """

    patient = True

    def __init__(self, config: RunnerConfig) -> None:
        self._config = config
        self._made_with = config.to_json()
        self._cluster: Cluster | None = None
        self._berths: Berths
        self._site: Site | None = None

    @property
    def site(self) -> Site:
        """What the first node gives; a node that does not serve its languages too is refused."""
        if self._site is None:
            raise RuntimeError("no node is known yet")
        return self._site

    async def start(self, wanted: int) -> int:
        """Connects; 0 slots are one for each CPU that the cluster has now.

        Raises:
            ConfigError: Ray is not installed.
            StartupError: no cluster answers.
        """
        self._cluster = await ray_cluster.connect(self._config.ray_address, f"{_DISTRIBUTION}[ray]")
        self._berths = Berths(self._cluster, "a warden")
        return wanted or max(1, await self._cluster.cpus())

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """Waits until one is up: the others come as nodes have room, and may come much later."""
        try:
            await self._berths.first_of(coming, _SURVEY_S)
        except HostLost as error:
            raise LinkError(str(error)) from error

    def link(
        self, slot: int, on_frame: Callable[[Frame, float], None], on_lost: Callable[[], None]
    ) -> Link:
        """As in `Wardens`."""
        return RayLink(self, slot, on_frame, on_lost)

    async def close(self) -> None:
        """Leaves the cluster."""
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None

    async def place(self, slot: int) -> tuple[Host, str]:
        """A host whose warden is ready, however long that takes, and its level.

        Raises:
            LinkError: it was lost before, or its node is of no use.
        """
        log_json = bool(log_format.worker_flags())
        try:
            host, about = await self._berths.place(
                _DISTRIBUTION, WardenHost, self._made_with, slot, log_json
            )
            site = Site.from_json(about["site"])
            if self._site is None:
                self._site = site
            lacks = set(self._site.toolchains.found) - set(site.toolchains.found)
            if lacks:
                raise self._berths.refuse(host, about, "it does not serve " + ", ".join(lacks))
        except HostLost as error:
            raise LinkError(str(error)) from error
        return host, str(about["level"])


class RayLink:
    """One warden on a cluster; as `Link`.

    Args:
        wardens: places its host.
        slot: its number.
        on_frame: called with every frame of a job.
        on_lost: called once when the warden or its machine is gone.
    """

    pid = None

    def __init__(
        self,
        wardens: RayWardens,
        slot: int,
        on_frame: Callable[[Frame, float], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.level = ""
        self.machine_lost = False
        self._wardens = wardens
        self._slot = slot
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._host: Host | None = None
        self._killed = False
        self._receiver: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Waits for a node that has room, and for the warden there.

        Raises:
            LinkError: it did not come up.
        """
        self._host, self.level = await self._wardens.place(self._slot)
        self._receiver = asyncio.create_task(self._receive(self._host))

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as the warden's loss."""
        if self._host is not None:
            sending = asyncio.create_task(
                self._send(self._host, frames.pack(kind, number, payload))
            )
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    def kill(self) -> None:
        """Kills the host, and with it the warden; its loss follows."""
        self._killed = True
        if self._host is not None:
            self._host.end()

    async def close(self) -> None:
        """Kills the host and waits until we know."""
        self.kill()
        if self._receiver is not None:
            await asyncio.gather(self._receiver, *self._sending, return_exceptions=True)

    async def _send(self, host: Host, data: bytes) -> None:
        try:
            await host.ask("send", data)
        except HostLost:
            # Whatever the reason: a frame is missing, so this warden is of no more use.
            host.end()

    async def _receive(self, host: Host) -> None:
        reader = FrameReader()
        try:
            while (batch := await host.ask("receive", timeout_s=_SILENCE_S)) is not None:
                for age_s, data in batch:
                    for frame in reader.feed(data):
                        self._on_frame(frame, age_s)
        except HostLost as error:
            if not self._killed:
                self.machine_lost = True
                _log.error("the host of a warden is lost: %s", error)
        except FrameError as error:
            _log.error("what a warden says cannot be read: %s", error)
        host.end()
        self._on_lost()


async def _survey(config: str) -> Site:
    """What this node gives. In a process of its own: this one has Ray's threads.

    Raises:
        LinkError: the node is of no use; the text says why.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "assay.sandbox.site", config),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SURVEY_S):
            out, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise LinkError(f"the node was not surveyed within {_SURVEY_S:g} s") from error
    found = json.loads(out.decode() or "{}")
    if "site" not in found:
        raise LinkError(found.get("trouble") or "the node cannot be surveyed; see Ray's logs there")
    return Site.from_json(found["site"])
