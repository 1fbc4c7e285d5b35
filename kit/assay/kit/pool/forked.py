"""Workers that a fork server forks, as the pool sees them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
from collections.abc import Sequence
from typing import Any

from assay.kit.pool.fork_server import MESSAGE
from assay.kit.pool.link import (
    Link,
    LinkError,
    LinkLimits,
    OnFrame,
    OnLost,
    SocketLink,
    environment_of_a_worker,
    spawn,
    wait_or_kill,
)
from assay.kit.pool.worker import WorkerLimits

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5.0
_MODULE = "assay.kit.pool.fork_server"

_log = logging.getLogger(__name__)


class ForkedWorkers:
    """Workers of this machine, forked by one fork server, which is started again when it dies.

    Args:
        work: "module:function"; the function makes a `worker.Work` of the settings.
    """

    patient = False

    def __init__(
        self, work: str, settings: str, limits: WorkerLimits, link_limits: LinkLimits
    ) -> None:
        self._arguments = (
            *("--work", work, "--settings", settings),
            *("--memory-bytes", str(limits.memory_bytes)),
            *("--jobs", str(limits.jobs), "--growth-bytes", str(limits.growth_bytes)),
        )
        self._link_limits = link_limits
        self._server: _ServerLink | None = None
        self._lock = asyncio.Lock()

    @property
    def server_pid(self) -> int | None:
        """For logs and tests."""
        return self._server.pid if self._server else None

    async def start(self, wanted: int) -> int:
        """Starts the fork server."""
        await self.living()
        return max(1, wanted)

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """As in `Workers`."""
        await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)

    def link(self, slot: int, on_frame: OnFrame, on_lost: OnLost) -> Link:
        """As in `Workers`."""
        del slot
        return ForkedLink(self, self._link_limits, on_frame, on_lost)

    async def close(self) -> None:
        """Ends the fork server, and with it every worker."""
        if self._server is not None:
            await self._server.close()

    async def living(self) -> _ServerLink:
        """The fork server, started again if it is gone.

        Raises:
            LinkError: it does not come up.
        """
        async with self._lock:
            if self._server is not None and self._server.alive:
                return self._server
            if self._server is not None:
                _log.error("the fork server is gone; starting another")
                await self._server.close()
            self._server = _ServerLink(self._arguments)
            await self._server.start()
            return self._server


class ForkedLink(SocketLink):
    """One forked worker."""

    def __init__(
        self, workers: ForkedWorkers, limits: LinkLimits, on_frame: OnFrame, on_lost: OnLost
    ) -> None:
        super().__init__("a worker", limits, on_frame, on_lost)
        self._workers = workers
        self._server: _ServerLink | None = None
        self._id = 0
        self._ended = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """For logs and tests."""
        return self.ready.get("pid")

    def reaped(self) -> None:
        """Notes that the process has ended; its last frames may still have to be read."""
        self._ended.set()

    async def _launch(self, theirs: socket.socket) -> None:
        self._server = await self._workers.living()
        self._id = self._server.fork(theirs, self)

    def _kill_process(self) -> None:
        if self._server is not None and not self._ended.is_set():
            self._server.kill(self._id)

    async def _end_process(self) -> None:
        # It may be at work, and hears nothing until it is done.
        self._kill_process()
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.stop_s):
                    await self._ended.wait()


class _ServerLink:
    def __init__(self, arguments: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        self._arguments = arguments
        self._loop = loop
        self._ready: asyncio.Future[None] = loop.create_future()
        self._workers: dict[int, ForkedLink] = {}  # whose processes are not reaped yet
        self._buffer = b""
        self._next_id = 1
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._control is not None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Waits until the process has loaded its work; LinkError where it does not."""
        ours, theirs = socket.socketpair()
        fixed = ("--control-fd", str(theirs.fileno()), "--parent", str(os.getpid()))
        try:
            with theirs:
                environment = environment_of_a_worker()
                self._process = spawn(_MODULE, (*fixed, *self._arguments), environment, theirs)
        except OSError as error:
            ours.close()
            raise LinkError(f"the fork server cannot be started: {error}") from error
        ours.setblocking(False)
        self._control = ours
        self._loop.add_reader(ours, self._on_control)
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await asyncio.shield(self._ready)
        except (LinkError, TimeoutError) as error:
            await self.close()
            raise LinkError("the fork server did not load its work") from error
        except BaseException:
            await self.close()
            raise

    def fork(self, theirs: socket.socket, link: ForkedLink) -> int:
        """Forks a worker on this end of a socket pair; its id."""
        worker_id, self._next_id = self._next_id, self._next_id + 1
        self._workers[worker_id] = link
        self._send(b"S", worker_id, theirs.fileno())
        return worker_id

    def kill(self, worker_id: int) -> None:
        self._send(b"K", worker_id, None)

    async def close(self) -> None:
        self._lost()
        if self._process is not None:
            await wait_or_kill(self._process, _STOP_TIMEOUT_S)

    def _send(self, action: bytes, worker_id: int, fd: int | None) -> None:
        if self._control is None:
            return
        try:
            data = MESSAGE.pack(action, worker_id)
            socket.send_fds(self._control, [data], [] if fd is None else [fd])
        except OSError:
            # It is gone, or so stuck that its socket is full: either way it is of no more use.
            self._lost()

    def _on_control(self) -> None:
        if self._control is None:
            return
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self._buffer += data
        while len(self._buffer) >= MESSAGE.size:
            record, self._buffer = self._buffer[: MESSAGE.size], self._buffer[MESSAGE.size :]
            kind, worker_id = MESSAGE.unpack(record)
            if kind == b"R":
                if not self._ready.done():
                    self._ready.set_result(None)
            elif worker_id in self._workers:
                self._workers.pop(worker_id).reaped()

    def _lost(self) -> None:
        """Closes its socket, at which it kills its workers and ends, if it lives."""
        if self._control is None:
            return
        self._loop.remove_reader(self._control)
        self._control.close()
        self._control = None
        if not self._ready.done():
            self._ready.set_exception(LinkError("it ended while it was starting"))
            self._ready.exception()
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.reaped()
            worker.kill()
