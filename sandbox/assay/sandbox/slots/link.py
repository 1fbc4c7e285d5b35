"""The front's end of one warden: a process and a socket, no policy."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from assay.rpc.log_format import worker_flags
from assay.sandbox.settings import WardenSettings
from assay.sandbox.site import Site
from assay.sandbox.slots import frames
from assay.sandbox.slots.frames import Frame, FrameError, FrameReader

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0
# What a warden may see of our environment: where tools are. Secrets stay here.
_PASSED_ON = (
    *("PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "PYTHONPATH"),
    *("JAVA_HOME", "GOROOT", "RUSTUP_HOME", "CARGO_HOME", "DOCKER_HOST", "DOCKER_CERT_PATH"),
    *("DOCKER_TLS_VERIFY",),
)


class LinkError(Exception):
    """A warden did not come up."""


class Link(Protocol):
    """One warden, as the front sees it, wherever it is."""

    @property
    def level(self) -> str:
        """How it isolates programs, e.g. "namespaces"; empty before it is ready."""

    @property
    def pid(self) -> int | None:
        """Process id, for logs and tests; None where it is not of this machine."""

    @property
    def machine_lost(self) -> bool:
        """Whether its machine was lost, which no program is to blame for."""

    async def start(self) -> None:
        """Starts it and waits until it is ready.

        Raises:
            LinkError: it did not come up.
        """

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as its loss."""

    def kill(self) -> None:
        """Kills it; its loss follows."""

    async def close(self) -> None:
        """Lets it kill what it runs and end, or makes it; waits for it."""


class Wardens(Protocol):
    """Where the wardens of a pool are."""

    @property
    def patient(self) -> bool:
        """Whether a slot may be without a warden for long; else each must start at once."""

    @property
    def site(self) -> Site:
        """What the machine gives that they are on; of several the one that was first."""

    async def start(self, wanted: int) -> int:
        """Makes ready for wardens; says for how many slots.

        Args:
            wanted: 0 for as many as there is room for.

        Raises:
            LinkError: none can be started.
        """

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """Waits until one warden is up. Asked for only where we are patient.

        Args:
            coming: tasks that each end with one.

        Raises:
            LinkError: none comes up.
        """

    def link(
        self, slot: int, on_frame: Callable[[Frame, float], None], on_lost: Callable[[], None]
    ) -> Link:
        """A warden for a slot, not started yet; arguments as for `WardenLink`."""

    async def close(self) -> None:
        """Lets go of what `start` took. Every link is closed before."""


class LocalWardens:
    """Wardens of this machine.

    Args:
        site: what was found on it.
        settings: what every warden is told; each gets its own slot's number.
    """

    patient = False

    def __init__(self, site: Site, settings: WardenSettings) -> None:
        self.site = site
        self._settings = settings

    async def start(self, wanted: int) -> int:
        """As in `Wardens`; nothing is to be done."""
        return max(1, wanted)

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """As in `Wardens`."""
        await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)

    def link(
        self, slot: int, on_frame: Callable[[Frame, float], None], on_lost: Callable[[], None]
    ) -> Link:
        """As in `Wardens`."""
        return WardenLink(dataclasses.replace(self._settings, slot=slot), on_frame, on_lost)

    async def close(self) -> None:
        """As in `Wardens`; nothing is to be done."""


class WardenLink(asyncio.Protocol):
    """One warden process, as the front sees it.

    Args:
        settings: what it is told.
        on_frame: called with every frame but the first, READY, and its age in seconds.
        on_lost: called once when the connection has ended.
    """

    def __init__(
        self,
        settings: WardenSettings,
        on_frame: Callable[[Frame, float], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.level = ""
        self.machine_lost = False
        self._settings = settings
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lost = False

    @property
    def pid(self) -> int | None:
        """Process id, for logs and tests."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Starts the process and waits until it is ready.

        Raises:
            LinkError: it ended or did not answer; its own words are on stderr.
        """
        ours, theirs = socket.socketpair()
        command = [
            *(sys.executable, "-P", "-m", "assay.sandbox.warden"),
            *("--link-fd", str(theirs.fileno()), "--settings", self._settings.to_json()),
            *worker_flags(),
        ]
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        try:
            # A plain Popen execs at once (vfork), so the threads of gRPC in this process do not
            # matter.
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module, and returns at once
                command,
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=environment,
                pass_fds=(theirs.fileno(),),
            )
        except OSError as error:
            ours.close()
            raise LinkError(f"cannot start a warden process: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            self.kill()
            raise
        except (LinkError, TimeoutError) as error:
            await self.close()
            text = str(error) or "it was not ready in time"
            raise LinkError(f"a warden process did not come up: {text}") from error

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as its loss."""
        if self._transport is not None:
            self._transport.write(frames.pack(kind, number, payload))

    def kill(self) -> None:
        """Kills the process; the loss of its connection follows."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Lets the process kill what it runs and end, or makes it; waits for it."""
        if self._transport is not None:
            self._transport.abort()
        process = self._process
        if process is None:
            return
        try:
            await asyncio.to_thread(process.wait, _STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is on the loop."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes of the warden."""
        try:
            received = self._reader.feed(data)
        except FrameError:
            self.kill()
            return
        for frame in received:
            if frame.kind == frames.READY:
                self._become_ready(frame)
            elif not self._lost:
                self._on_frame(frame, 0.0)

    def _become_ready(self, frame: Frame) -> None:
        self.level = str(json.loads(frame.payload)["level"])
        if not self._ready.done():
            self._ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The warden is gone, or we let it go."""
        self._transport = None
        if self._lost:
            return
        self._lost = True
        if not self._ready.done():
            self._ready.set_exception(LinkError("it ended while it was starting"))
            with contextlib.suppress(LinkError):
                self._ready.exception()
            return
        self._on_lost()
