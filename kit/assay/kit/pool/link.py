"""One worker as a pool sees it: a process, a socket and time-outs, no policy.

A link is started once and lost once; the socket closes with the process. A job's time-out runs
here, on the worker's machine, so it means the same wherever the pool is.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from assay.kit.log_format import worker_flags
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameError, FrameReader

_GRACE_S = 0.02
_ENDED = "it ended"
_SECRETS = "ASSAY_"  # of our own variables some hold secrets, and a worker needs none of them

OnFrame: TypeAlias = Callable[[Frame, float], None]
"""Called with every frame of a job, and its age in seconds."""
OnLost: TypeAlias = Callable[[], None]
"""Called once, when a worker that was up is gone."""


class LinkError(Exception):
    """A worker did not come up, or is gone."""


class NeverReady(LinkError):
    """A worker said itself that it cannot come up here."""


class Link(Protocol):
    """One worker."""

    @property
    def pid(self) -> int | None:
        """For logs and tests; None for a process of another machine."""

    @property
    def machine_lost(self) -> bool:
        """Whether its machine was lost, for which no job is to blame."""

    async def start(self) -> None:
        """Starts it and waits until it is ready.

        Raises:
            LinkError: it did not come up.
        """

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as its loss."""

    def kill(self) -> None:
        """Kills it; its loss follows. Harmless when repeated."""

    async def close(self) -> None:
        """Waits until it has ended, and makes it end in time."""


class Workers(Protocol):
    """Where the workers of a pool run."""

    @property
    def patient(self) -> bool:
        """Whether a slot may be long without a worker; else each must start at once."""

    async def start(self, wanted: int) -> int:
        """Prepares for so many slots, 0 for as many as there is room for; their number.

        Raises:
            LinkError: none can be started.
        """

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """Waits until one of the tasks that each start a worker is done; called where `patient`.

        Raises:
            LinkError: none comes up.
        """

    def link(self, slot: int, on_frame: OnFrame, on_lost: OnLost) -> Link:
        """A worker for a slot, not started yet."""

    async def close(self) -> None:
        """Frees what `start` took; every link is closed before."""


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Limits of a link.

    Attributes:
        start_s: until a worker is ready.
        stop_s: until it has ended by itself.
        take_s: until it begins its next job; infinite where it runs many at a time, which have no
            time-outs here.
        answer_bytes: the longest payload that it may send.
        events: kinds of frames that it may send while it does a job, beside those of all workers.
    """

    start_s: float = 60.0
    stop_s: float = 5.0
    take_s: float = 30.0
    answer_bytes: int = frames.MAX_PAYLOAD_BYTES
    events: frozenset[bytes] = frozenset()


class SocketLink(asyncio.Protocol, ABC):
    """A worker of this machine, at the other end of a socket pair.

    Args:
        what: its name for people, as "a worker".

    Attributes:
        ready: the JSON object of its ready frame.
    """

    machine_lost = False

    def __init__(self, what: str, limits: LinkLimits, on_frame: OnFrame, on_lost: OnLost) -> None:
        self.ready: Mapping[str, Any] = {}
        self._what = what
        self._limits = limits
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._up: asyncio.Future[None] = self._loop.create_future()
        self._reader = FrameReader(limits.answer_bytes)
        self._transport: asyncio.WriteTransport | None = None
        self._timeouts: dict[int, float] = {}  # of the jobs that it has, in their order
        self._alarm = _Alarm(self._loop, self._overdue)
        self._running: int | None = None
        self._lost = False

    @abstractmethod
    async def _launch(self, theirs: socket.socket) -> None:
        """Starts the process with its end of the socket pair; raises LinkError or OSError."""

    @abstractmethod
    def _kill_process(self) -> None:
        """Kills the process, if it lives."""

    @abstractmethod
    async def _end_process(self) -> None:
        """Waits until the process has ended, and kills it in time."""

    def how_it_ended(self) -> str:
        """In words, once `close` is done."""
        return _ENDED

    async def start(self) -> None:
        """Starts the process and waits until it is ready.

        Raises:
            LinkError: it ended or did not answer; stderr has its own words.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._launch(theirs)
        except BaseException as error:
            ours.close()
            if isinstance(error, OSError):
                raise LinkError(f"{self._what} cannot be started: {error}") from error
            raise
        ours.setblocking(False)
        try:
            await self._loop.create_connection(lambda: self, sock=ours)
            async with asyncio.timeout(self._limits.start_s):
                await asyncio.shield(self._up)
        except (LinkError, TimeoutError) as error:
            await self.close()
            text = str(error) or f"it was not ready within {self._limits.start_s:g} s"
            if text == _ENDED:
                text = f"{self.how_it_ended()} while it was starting"
            kind = NeverReady if isinstance(error, NeverReady) else LinkError
            raise kind(f"{self._what} did not come up: {text}") from error
        except BaseException:
            self.kill()
            await self._end_process()
            raise

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame; a broken connection shows as its loss."""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(frames.pack(kind, number, payload))
        if kind not in frames.COMMANDS and math.isfinite(self._limits.take_s):
            self._timeouts[number] = frames.timeout_of(payload)
            if len(self._timeouts) == 1:
                self._alarm.set(self._limits.take_s)

    def kill(self) -> None:
        """Kills the process and drops the connection; its loss follows."""
        self._kill_process()
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Closes the connection and ends the process."""
        if self._transport is not None:
            self._transport.abort()
        await self._end_process()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of `asyncio.Protocol`."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Of `asyncio.Protocol`."""
        try:
            for frame in self._reader.feed(data):
                if frame.kind not in self._limits.events:
                    frames.check_of_worker(frame)
                if frame.kind in (frames.READY, frames.NOT_READY):
                    self._settle(frame)
                elif not self._lost:
                    self._watch(frame)
                    self._on_frame(frame, 0.0)
        except FrameError:
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        """Of `asyncio.Protocol`."""
        self._transport = None
        if self._lost:
            return
        late, running = self._alarm.rang, self._running
        self._lost = True
        self._alarm.stop()
        if not self._up.done():
            self._up.set_exception(LinkError(_ENDED))
            with contextlib.suppress(LinkError):
                self._up.exception()
        elif self._up.exception() is None:
            if late and running is not None:
                self._on_frame(Frame(frames.EXPIRED, running, b""), 0.0)
            self._on_lost()

    def _settle(self, frame: Frame) -> None:
        if self._up.done():
            return
        if frame.kind == frames.READY:
            self.ready = frames.read_object(frame.payload)
            self._up.set_result(None)
        else:
            self._up.set_exception(NeverReady(frame.payload.decode(errors="replace")))

    def _watch(self, frame: Frame) -> None:
        if frame.kind == frames.STARTED and frame.number in self._timeouts:
            self._running = frame.number
            self._alarm.set(self._timeouts[frame.number])
        elif frame.kind in frames.ANSWERS and self._timeouts.pop(frame.number, None) is not None:
            if frame.number == self._running:
                self._running = None
            if self._running is None:
                self._alarm.set(self._limits.take_s if self._timeouts else math.inf)

    def _overdue(self) -> None:
        """The running job is late, or the next one was not begun in time."""
        running, self._running = self._running, None
        self._alarm.set(math.inf)
        self.kill()
        if running is not None and not self._lost:
            self._on_frame(Frame(frames.EXPIRED, running, b""), 0.0)


@dataclass(frozen=True, slots=True)
class Command:
    """How a worker that is a child process is started.

    Attributes:
        module: one of our own, which takes the flag --link-fd.
    """

    what: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


class ChildLink(SocketLink):
    """A worker that is a child process, which ends when its socket closes; see `SocketLink`."""

    def __init__(
        self,
        command: Command,
        limits: LinkLimits,
        on_frame: OnFrame,
        on_lost: OnLost,
    ) -> None:
        super().__init__(command.what, limits, on_frame, on_lost)
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """For logs and tests."""
        return self._process.pid if self._process else None

    async def _launch(self, theirs: socket.socket) -> None:
        command = self._command
        arguments = ("--link-fd", str(theirs.fileno()), *command.arguments)
        self._process = spawn(command.module, arguments, command.environment, theirs)

    def _kill_process(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def how_it_ended(self) -> str:
        """Its exit status or signal."""
        status = self._process.returncode if self._process else None
        if status is None:
            return super().how_it_ended()
        return f"it was killed by signal {-status}" if status < 0 else f"it ended with {status}"

    async def _end_process(self) -> None:
        if self._process is not None:
            await wait_or_kill(self._process, self._limits.stop_s)


class ChildWorkers:
    """Workers of this machine, each a child process started by its slot's command."""

    patient = False

    def __init__(self, command: Callable[[int], Command], limits: LinkLimits) -> None:
        self._command = command
        self._limits = limits

    async def start(self, wanted: int) -> int:
        """Does nothing."""
        return max(1, wanted)

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        """As in `Workers`."""
        await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)

    def link(self, slot: int, on_frame: OnFrame, on_lost: OnLost) -> Link:
        """As in `Workers`."""
        return ChildLink(self._command(slot), self._limits, on_frame, on_lost)

    async def close(self) -> None:
        """Does nothing."""


class _Alarm:
    """Calls `act` at a time that can be moved.

    It rings twice and acts the second time: after a pause of the loop the answer may lie in the
    socket, and one round of the loop reads it. One timer of the loop serves many times, each later.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
        self.rang = False
        self._act = act
        self._loop = loop
        self._due_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def set(self, timeout_s: float) -> None:
        """Rings after so long; infinite for never."""
        self.rang = False
        self._due_s = self._loop.time() + timeout_s
        if self._timer is not None and self._timer.when() > self._due_s:
            self.stop()
        if self._timer is None and self._due_s < math.inf:
            self._timer = self._loop.call_at(self._due_s, self._ring)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        if now_s < self._due_s:
            if self._due_s < math.inf:
                self._timer = self._loop.call_at(self._due_s, self._ring)
        elif self.rang:
            self._act()
        else:
            self.rang = True
            self._timer = self._loop.call_at(now_s + _GRACE_S, self._ring)


def spawn(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], end: socket.socket
) -> subprocess.Popen[bytes]:
    """Starts one of our own modules as a process that has one end of a socket pair.

    Popen execs at once (vfork), so gRPC's threads in this process are safe. Call it from the loop's
    own thread: a child that asks for PR_SET_PDEATHSIG ends with the thread that started it.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", module, *arguments, *worker_flags()],
        stdin=subprocess.DEVNULL,
        stdout=2,
        env=environment,
        pass_fds=(end.fileno(),),
    )


async def wait_or_kill(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Waits until a process has ended; kills it after a while, or when the wait is cancelled.

    It is reaped in every case, by a thread that outlives a cancelled wait.
    """
    try:
        await asyncio.to_thread(process.wait, limit_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            # A future of the executor and no task: nothing that cancels tasks takes it back.
            reaping = asyncio.get_running_loop().run_in_executor(None, process.wait)
            await asyncio.shield(reaping)


def environment_of_a_worker() -> dict[str, str]:
    """This process's variables without our own, some of which hold secrets."""
    return {key: value for key, value in os.environ.items() if not key.startswith(_SECRETS)}
