"""One run in a jail, from the job's message to its record: the supervisor's side.

It drains, times, counts, kills and classifies.

Covered: output is read to its end whatever its size, and never blocks the program for long; the
record is made only when every process of the run is dead.
Not covered: what a run costs the machine beyond its limits (disk bandwidth, caches).
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from assay.sandbox.domain import (
    ENDED_BY_US,
    BoxFile,
    CapturedOutput,
    EndKind,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
)
from assay.sandbox.jail import monitor
from assay.sandbox.jail.cgroups import ControlGroup
from assay.sandbox.jail.launch import ZygoteLink
from assay.sandbox.zygote import syscalls
from assay.sandbox.zygote.protocol import DONE

MAX_FRAME_BYTES = 64 * 2**20
_CHUNK = 1 << 18
_CHUNKS_AT_ONCE = 4
_CORES = os.cpu_count() or 1
_TICK_S = 0.05
_UNSENT_S = 0.002  # when a full channel is tried again
_KILL_WAIT_S = 10.0
_HEADER = struct.Struct("!I")
_FRAME_COST = 64  # bytes that a frame takes here besides its own


class OutputPipe:
    """A pipe that is drained to its end, and whose first bytes are kept."""

    def __init__(self, descriptor: int, keep_bytes: int) -> None:
        self.descriptor = descriptor
        self.total_bytes = 0
        self.open = True
        self._keep_bytes = keep_bytes
        self._kept = bytearray()
        os.set_blocking(descriptor, False)

    def drain(self) -> None:
        """Reads what is there, up to a bound, as the writer may never pause."""
        for _ in range(_CHUNKS_AT_ONCE):
            if not self.open:
                return
            try:
                data = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self.total_bytes += len(data)
            self._kept += data[: self._keep_bytes - len(self._kept)]
            if len(data) < _CHUNK:
                return

    def close(self) -> None:
        """Stops reading."""
        if self.open:
            self.open = False
            os.close(self.descriptor)

    @property
    def output(self) -> CapturedOutput:
        """What has been read."""
        return CapturedOutput(bytes(self._kept), self.total_bytes)


class JudgeChannel:
    """The private socket between a harness and its judge: frames of at most 64 MiB."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.open = True
        self.too_large = False
        self.received_bytes = 0
        self._unread = bytearray()
        self._unsent = bytearray()
        connection.setblocking(False)

    def send(self, frame: bytes) -> None:
        """Queues a frame; `flush` sends it together with others."""
        self._unsent += _HEADER.pack(len(frame)) + frame

    def flush(self) -> None:
        """Sends as much as the socket takes."""
        try:
            while self._unsent and self.open:
                del self._unsent[: self.connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()

    @property
    def blocked(self) -> bool:
        """Something waits to be sent."""
        return bool(self._unsent) and self.open

    def receive(self, frames: deque[bytes]) -> None:
        """Reads what is there, up to a bound, and appends whole frames."""
        for _ in range(_CHUNKS_AT_ONCE):
            if not self.open:
                return
            try:
                data = self.connection.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.close()
                break
            self.received_bytes += len(data)
            self._unread += data
            self._split(frames)
            if len(data) < _CHUNK or self.too_large:
                break
        if sum(map(len, frames)) + len(frames) * _FRAME_COST > MAX_FRAME_BYTES:
            self.too_large = True
            self.close()

    def _split(self, frames: deque[bytes]) -> None:
        while len(self._unread) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._unread)
            if not 0 < size <= MAX_FRAME_BYTES:
                self.too_large = True
                self.close()
                return
            if len(self._unread) < _HEADER.size + size:
                return
            frames.append(bytes(self._unread[_HEADER.size : _HEADER.size + size]))
            del self._unread[: _HEADER.size + size]

    def close(self) -> None:
        """Closes both directions."""
        if self.open:
            self.open = False
            self.connection.close()


class JailRunning:
    """A run in progress; see `assay.sandbox.box.Running`."""

    def __init__(
        self,
        request: RunRequest,
        link: ZygoteLink,
        *,
        number: int,
        streams: tuple[OutputPipe, OutputPipe],
        channel: JudgeChannel | None,
        group: ControlGroup | None,
        lost: Callable[[], None],
    ) -> None:
        self.frames: deque[bytes] = deque()
        self._request = request
        self._link = link
        self._number = number
        self._stdout, self._stderr = streams
        self._channel = channel
        self._group = group
        self._lost = lost
        self._record: RunRecord | None = None
        self._asked: tuple[EndKind, str] | None = None
        self._why_killed = ""
        self._setup_error = ""
        self._killed_s = math.inf
        self._started_s = time.monotonic()
        limits = request.limits
        self._wall_end_s = self._started_s + limits.wall_s
        # With a group the kernel counts memory, and CPU time cannot run out before this.
        first = limits.cpu_s / _CORES if group is not None else _TICK_S
        self._tick_s = self._started_s + max(_TICK_S, min(first, limits.wall_s))

    @property
    def record(self) -> RunRecord | None:
        """How it ended; None while it runs."""
        return self._record

    def send(self, frame: bytes) -> None:
        """Sends a frame over the channel, at the pump's next step."""
        if self._channel is None or self._record is not None:
            return
        self._channel.send(frame)

    def kill(self, end: EndKind | None = None, detail: str = "") -> None:
        """Kills every process of it."""
        if self._record is not None or self._killed_s < math.inf:
            return
        self._why_killed = detail or ENDED_BY_US
        if end is not None:
            self._asked = (end, detail)
        self._killed_s = time.monotonic()
        self._link.kill_run(self._number)

    def watched(self) -> Sequence[int]:
        """Control socket, streams, channel."""
        if self._record is not None:
            return ()
        if self._channel is not None and self._channel.blocked:
            self._channel.flush()
            if self._channel.blocked:
                self._tick_s = time.monotonic() + _UNSENT_S
        watched = [self._link.control.fileno()]
        watched += [s.descriptor for s in (self._stdout, self._stderr) if s.open]
        if self._channel is not None and self._channel.open:
            watched.append(self._channel.connection.fileno())
        return watched

    def deadline_s(self) -> float:
        """The wall limit, or the next look at what the run uses."""
        if self._killed_s < math.inf:
            return self._killed_s + _KILL_WAIT_S
        return min(self._wall_end_s, self._tick_s)

    def on_time(self, now_s: float) -> None:
        """Looks at the limits that the kernel does not enforce."""
        if self._killed_s < math.inf:
            if now_s >= self._killed_s + _KILL_WAIT_S:
                # Of what runs on, the program is the cause; else the zygote is.
                asked = self._asked if monitor.runs_beneath(self._link.pid) else None
                self._give_up("it does not answer to a kill", asked=asked)
        elif now_s >= self._wall_end_s:
            self.kill(EndKind.WALL_TIME_LIMIT, f"more than {self._request.limits.wall_s:g} s")
        else:
            self._look()
            self._tick_s = now_s + _TICK_S

    def _look(self) -> None:
        limits = self._request.limits
        if self._group is not None:
            cpu_s = self._group.cpu_s()
        else:
            use = monitor.use_beneath(self._link.pid)
            cpu_s = use.cpu_s
            if use.resident_bytes > limits.memory_bytes:
                self.kill(EndKind.MEMORY_LIMIT, f"{use.resident_bytes} bytes in use")
            elif use.processes > limits.processes:
                self.kill(EndKind.PROCESS_LIMIT, f"{use.processes} processes and threads")
        if cpu_s > limits.cpu_s:
            self.kill(EndKind.CPU_TIME_LIMIT, f"more than {limits.cpu_s:g} s of CPU time")

    def on_ready(self, descriptor: int) -> None:
        """Reads what came.

        Raises:
            SandboxFault: the box has died, or could not carry the request out.
        """
        if descriptor == self._link.control.fileno():
            self._on_control()
            return
        for stream in (self._stdout, self._stderr):
            if stream.open and descriptor == stream.descriptor:
                stream.drain()
                if stream.total_bytes > self._request.limits.max_output_bytes:
                    self.kill(EndKind.OUTPUT_LIMIT, f"{stream.total_bytes} bytes written")
                return
        if self._channel is not None and self._channel.open:
            self._receive(self._channel)

    def _receive(self, channel: JudgeChannel) -> None:
        channel.receive(self.frames)
        if channel.too_large:
            text = f"answers of more than {MAX_FRAME_BYTES} bytes, or of none"
            self.kill(EndKind.OUTPUT_LIMIT, text)

    def _on_control(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(
                self._link.control, 4096, 1, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            message, descriptors = b"", []
        if message[:1] == b"E":
            self._setup_error = message[1:].decode(errors="replace")
        elif message[:1] == b"D":
            folder = descriptors[0]
            _, _, status, cpu_s, peak_bytes = DONE.unpack(message)
            try:
                self._end(status, cpu_s, peak_bytes, folder)
            finally:
                os.close(folder)
                self._link.fetched(self._number)
        else:
            self._give_up(self._link.last_words(), asked=self._asked)

    def _give_up(self, what: str, *, asked: tuple[EndKind, str] | None) -> None:
        """The zygote is of no more use.

        A fault, unless the program had passed a limit already (`asked`), or the kernel ended the
        zygote
        because the program used too much memory.
        """
        wall_s = time.monotonic() - self._started_s
        if self._group is not None and self._group.memory_kills() > 0:
            asked = asked or (EndKind.MEMORY_LIMIT, "the kernel ended the box for lack of memory")
        self._drain()
        self._lost()
        if asked is None:
            self._record = RunRecord(EndKind.SIGNALLED)  # never looked at: the fault is raised
            raise SandboxFault("WORKER_DIED", f"the box was lost in the middle of a run: {what}")
        end, detail = asked
        memory_bytes = self._request.limits.memory_bytes if end is EndKind.MEMORY_LIMIT else 0
        self._record = RunRecord(
            end,
            stdout=self._stdout.output,
            stderr=self._stderr.output,
            wall_s=wall_s,
            peak_memory_bytes=memory_bytes,
            detail=detail,
        )

    def _end(self, status: int, cpu_s: float, peak_bytes: int, folder: int) -> None:
        """Every process of the run is dead: nothing more can come."""
        wall_s = time.monotonic() - self._started_s
        self._drain()
        if self._group is not None:
            peak_bytes = self._group.peak_bytes() or peak_bytes
        end, exit_code, number_of_signal, detail = self._classify(status, cpu_s)
        if self._setup_error:
            self._record = RunRecord(EndKind.SIGNALLED)
            raise SandboxFault("WORKER_DIED", f"the run could not be set up: {self._setup_error}")
        self._record = RunRecord(
            end=end,
            exit_code=exit_code,
            signal=number_of_signal,
            stdout=self._stdout.output,
            stderr=self._stderr.output,
            cpu_s=cpu_s,
            wall_s=wall_s,
            peak_memory_bytes=peak_bytes,
            files=_fetch(folder, self._request.fetch_paths, self._request.fetch_bytes),
            detail=detail,
        )

    def _drain(self) -> None:
        for stream in (self._stdout, self._stderr):
            before = -1
            while stream.total_bytes != before:
                before = stream.total_bytes
                stream.drain()
            stream.close()
        if self._channel is not None:
            unread = -1
            while self._channel.received_bytes != unread:
                unread = self._channel.received_bytes
                self._channel.receive(self.frames)
            self._channel.close()

    def _classify(  # noqa: PLR0911  # one return for each way to end
        self, status: int, cpu_s: float
    ) -> tuple[EndKind, int, int, str]:
        exited = os.WIFEXITED(status)
        code = os.WEXITSTATUS(status) if exited else 0
        number = 0 if exited else os.WTERMSIG(status)
        largest = max(self._stdout.total_bytes, self._stderr.total_bytes)
        limits = self._request.limits
        # Read after every run, else the next one would be charged with it.
        kills = self._group.memory_kills() if self._group is not None else 0
        refused = self._group.refused_processes() if self._group is not None else 0
        if self._asked is not None:
            return self._asked[0], code, number, self._asked[1]
        if largest > limits.max_output_bytes:
            return EndKind.OUTPUT_LIMIT, code, number, f"{largest} bytes written"
        if (code or number) and kills:
            return EndKind.MEMORY_LIMIT, code, number, "the kernel ended it for lack of memory"
        if (code or number) and refused:
            return EndKind.PROCESS_LIMIT, code, number, f"more than {limits.processes}"
        if number == signal.SIGSYS:
            return EndKind.SECURITY_VIOLATION, 0, number, "a forbidden system call"
        if cpu_s > limits.cpu_s:
            return EndKind.CPU_TIME_LIMIT, code, number, f"{cpu_s:.2f} s of CPU time"
        if number:
            return EndKind.SIGNALLED, 0, number, self._why_killed
        if code and self._out_of_memory():
            return EndKind.MEMORY_LIMIT, code, 0, "it asked for more memory than it may have"
        return EndKind.EXITED, code, 0, ""

    def _out_of_memory(self) -> bool:
        if self._request.mode is RunMode.EXEC:
            return False
        last = self._stderr.output.data.rstrip().rpartition(b"\n")[2]
        return last.startswith(b"MemoryError")


def _fetch(folder: int, paths: Sequence[str], most_bytes: int) -> tuple[BoxFile, ...]:
    """Reads regular files beneath the folder, through no link, of so many bytes in all."""
    files = []
    for path in paths:
        with contextlib.suppress(OSError):
            descriptor = syscalls.open_beneath(folder, path)
            with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
                status = os.fstat(file.fileno())
                is_regular = (status.st_mode & 0o170000) == 0o100000
                if not is_regular or status.st_size > most_bytes:
                    continue
                content = file.read(status.st_size)
            most_bytes -= len(content)
            files.append(BoxFile(path, content, status.st_mode & 0o777))
    return tuple(files)
