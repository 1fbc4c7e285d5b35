"""The server's side of the nursery and of its workers: sockets and process ids, no policy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from assay.reward_server.workers import frames
from assay.reward_server.workers.nursery import REPLY, REQUEST
from assay.reward_server.workers.worker import WorkerLimits
from assay.rpc.log_format import worker_flags

_START_TIMEOUT_S = 60.0
_FORK_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0
_OUR_VARIABLES = "ASSAY_"  # some hold secrets, and a worker needs none of them


class LinkError(Exception):
    """The nursery or a worker did not come up, or is gone."""


class WorkerLink:
    """One worker process, as the server sees it."""

    def __init__(self, worker_id: int, kill: Callable[[WorkerLink], None]) -> None:
        self.id = worker_id
        self.pid: int | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._kill = kill
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def attach(self, end: socket.socket) -> None:
        """Takes the server's end of the socket pair and waits until the worker is there.

        Raises:
            LinkError: it does not come up.
        """
        self._reader, self._writer = await asyncio.open_connection(sock=end)
        try:
            async with asyncio.timeout(_FORK_TIMEOUT_S):
                await self.receive()
        except TimeoutError as error:
            raise LinkError("a worker did not start in time") from error

    def send(self, frame: bytes) -> None:
        """Sends a frame; a broken connection shows when receiving."""
        if self._writer is not None:
            self._writer.write(frame)

    async def receive(self) -> bytes:
        """The body of the next frame; empty for "started".

        Raises:
            LinkError: the worker is gone, or sends a frame beyond the limit.
        """
        if self._reader is None:
            raise LinkError("the worker is not attached")
        try:
            header = await self._reader.readexactly(frames.HEADER.size)
            (size,) = frames.HEADER.unpack(header)
            if size > frames.MAX_DONE_BYTES:
                raise LinkError("a worker sent a frame beyond the limit")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise LinkError("the worker is gone") from error

    def kill(self) -> None:
        """Kills the process, if it lives, and drops the connection. Harmless when repeated."""
        self._kill(self)
        if self._writer is not None:
            self._writer.transport.abort()

    async def wait_ended(self) -> None:
        """Waits until the nursery has reaped the process, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await asyncio.shield(self.ended)


class NurseryLink:
    """One nursery process, as the server sees it."""

    def __init__(self, limits: WorkerLimits, preload: Sequence[str] = ()) -> None:
        loop = asyncio.get_running_loop()
        self._limits = limits
        self._preload = preload
        self._loop = loop
        self._ready: asyncio.Future[None] = loop.create_future()
        self._workers: dict[int, WorkerLink] = {}  # processes not reaped yet
        self._connected: set[WorkerLink] = set()  # connections not dropped yet
        self._buffer = b""
        self._next_id = 1
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.started_s = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether the control socket is open at both ends."""
        return self._control is not None

    @property
    def pid(self) -> int | None:
        """Process id, for logs and tests."""
        return self._process.pid if self._process else None

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live, for logs and tests."""
        return [w.pid for w in self._workers.values() if w.pid is not None]

    async def start(self) -> None:
        """Starts the process and waits until it has loaded the verifiers.

        Raises:
            LinkError: it ended or did not answer; its own words are on stderr.
        """
        ours, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OUR_VARIABLES)}
        command = [
            *(sys.executable, "-P", "-m", "assay.reward_server.workers.nursery"),
            *("--control-fd", str(theirs.fileno()), "--parent", str(os.getpid())),
            *("--memory-bytes", str(self._limits.memory_bytes)),
            *("--items", str(self._limits.items), "--growth-bytes", str(self._limits.growth_bytes)),
            *("--preload", ",".join(self._preload)),
            *worker_flags(),
        ]
        try:
            # A plain Popen execs at once (vfork), so the threads of gRPC in this process do not
            # matter. It must be called from the loop's own thread, whose end is the nursery's end
            # (PR_SET_PDEATHSIG follows the thread).
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module, and returns at once
                command,
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=environment,
                pass_fds=(theirs.fileno(),),
            )
        except OSError as error:
            ours.close()
            raise LinkError(f"cannot start the nursery process: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self._control = ours
        self._loop.add_reader(ours, self._on_control)
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                await asyncio.shield(self._ready)
        except (LinkError, TimeoutError) as error:
            await self.close()
            raise LinkError("the nursery process did not load the verifiers") from error

    async def spawn(self) -> WorkerLink:
        """A new worker, ready for its first job.

        Raises:
            LinkError: it does not come up, or the nursery is gone.
        """
        ours, theirs = socket.socketpair()
        worker = WorkerLink(self._next_id, self._kill)
        self._next_id += 1
        self._workers[worker.id] = worker
        self._connected.add(worker)
        with theirs:
            ours.setblocking(False)
            self._send(b"S", worker.id, theirs.fileno())
        try:
            await worker.attach(ours)
        except BaseException:
            worker.kill()
            ours.close()
            raise
        return worker

    async def close(self) -> None:
        """Ends the nursery, and with it every worker."""
        self._lost()
        process = self._process
        if process is None:
            return
        try:
            await asyncio.to_thread(process.wait, _STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    def _kill(self, worker: WorkerLink) -> None:
        self._connected.discard(worker)
        if not worker.ended.done():
            self._send(b"K", worker.id, None)

    def _send(self, action: bytes, worker_id: int, fd: int | None) -> None:
        data = REQUEST.pack(action, worker_id)
        if self._control is None:
            return
        try:
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
        while len(self._buffer) >= REPLY.size:
            record, self._buffer = self._buffer[: REPLY.size], self._buffer[REPLY.size :]
            self._on_reply(*REPLY.unpack(record))

    def _on_reply(self, kind: bytes, worker_id: int, value: int) -> None:
        if kind == b"R":
            if not self._ready.done():
                self._ready.set_result(None)
        elif kind == b"P":
            if worker_id in self._workers:
                self._workers[worker_id].pid = value
        elif worker_id in self._workers:
            self._end(self._workers.pop(worker_id), value)

    def _lost(self) -> None:
        """The nursery is gone, or must go: closing its socket makes it kill its workers and end."""
        if self._control is None:
            return
        self._loop.remove_reader(self._control)
        self._control.close()
        self._control = None
        if not self._ready.done():
            self._ready.set_exception(LinkError("the nursery process ended while it was starting"))
            self._ready.exception()
        for worker in self._workers.values():
            self._end(worker, -1)
        self._workers.clear()
        for worker in list(self._connected):
            worker.kill()

    @staticmethod
    def _end(worker: WorkerLink, status: int) -> None:
        if not worker.ended.done():
            worker.ended.set_result(status)
