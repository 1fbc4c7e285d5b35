"""A stand-in for the jail in tests: a box that runs plain subprocesses, with no isolation at all.

It speaks the whole interface (`Box`, `Running`), the four modes, the limits of time and output, and
the channel, so that what is judged and prepared can be tested where no jail can be made. It runs
only programs that the tests themselves wrote.

Covered: limits of CPU time and memory (of each process), wall time and output; process groups die.
Not covered: everything else. A program here sees the machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.sandbox.box import Pump
from assay.sandbox.domain import (
    BoxFile,
    CapturedOutput,
    EndKind,
    RunLimits,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.jail import JailBoxes, JailConfig
from assay.sandbox.judging.model import CaseOutcome, Suite, TestCase
from assay.sandbox.judging.suite import judge
from assay.sandbox.prepared import CompileFailed

SOURCES = Path(__file__).resolve().parent.parent / "sandbox"
FRAME_BYTES = 64 * 2**20
GRACE_S = 2.0
SCRIPT = "main.py"
CHUNK = 1 << 16

HARNESS = """
import importlib, os, sys
sys.path.insert(0, {sources!r})
module = importlib.import_module("assay.sandbox.harness.{mode}")
sys.path.remove({sources!r})
os._exit(module.main({channel}, {argv!r}))
"""


class _Stream:
    """The first bytes of a pipe, and how many there were in all."""

    def __init__(self, descriptor: int, keep: int) -> None:
        self.descriptor = descriptor
        self.open = True
        self._keep = keep
        self._data = bytearray()
        self.total = 0

    def read(self) -> None:
        try:
            chunk = os.read(self.descriptor, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
            return
        self.total += len(chunk)
        self._data += chunk[: max(0, self._keep - len(self._data))]

    def close(self) -> None:
        if self.open:
            self.open = False
            os.close(self.descriptor)

    def output(self) -> CapturedOutput:
        return CapturedOutput(bytes(self._data), self.total)


class _Channel:
    """The supervisor's end of a run's private socket: frames in, frames out, never blocking."""

    def __init__(self, near: socket.socket, frames: deque[bytes]) -> None:
        near.setblocking(False)
        self.socket = near
        self.open = True
        self._frames = frames
        self._inbox = bytearray()
        self._outbox = bytearray()

    def read(self) -> bool:
        """Takes what has come; False when a frame is larger than allowed."""
        try:
            chunk = self.socket.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return True
        self._inbox += chunk
        while len(self._inbox) >= 4:
            (size,) = struct.unpack_from("!I", self._inbox)
            if size > FRAME_BYTES:
                return False
            if len(self._inbox) < 4 + size:
                break
            self._frames.append(bytes(self._inbox[4 : 4 + size]))
            del self._inbox[: 4 + size]
        return True

    def send(self, frame: bytes) -> None:
        if self.open:
            self._outbox += struct.pack("!I", len(frame)) + frame
            self.flush()

    def flush(self) -> None:
        """Writes what the socket takes now."""
        while self._outbox and self.open:
            try:
                sent = self.socket.send(self._outbox[: 1 << 20])
            except BlockingIOError:
                return
            except OSError:
                self._outbox.clear()
                return
            del self._outbox[:sent]

    @property
    def pending(self) -> bool:
        return self.open and bool(self._outbox)

    def close(self) -> None:
        if self.open:
            self.open = False
            self._outbox.clear()
            self.socket.close()


class ProcessRunning:
    """One subprocess, as a `Running`."""

    def __init__(self, request: RunRequest, folder: Path) -> None:
        self.frames: deque[bytes] = deque()
        self._record: RunRecord | None = None
        self._request = request
        self._folder = folder
        self._end: EndKind | None = None
        self._detail = ""
        self._usage: resource.struct_rusage | None = None
        self._status = 0
        self._channel: _Channel | None = None
        self._began_s = time.monotonic()
        self._ends_s = self._began_s + request.limits.wall_s
        self._spawn()

    def _spawn(self) -> None:
        request = self._request
        stdin = os.memfd_create("stdin")
        os.write(stdin, request.stdin)
        os.lseek(stdin, 0, os.SEEK_SET)
        out, out_write = os.pipe2(os.O_CLOEXEC)
        err, err_write = os.pipe2(os.O_CLOEXEC)
        passed: list[int] = []
        far: socket.socket | None = None
        if request.channel:
            near, far = socket.socketpair()
            self._channel = _Channel(near, self.frames)
            passed.append(far.fileno())
        if request.executable is not None:
            passed.append(request.executable)
        executable = request.executable
        try:
            self._process = subprocess.Popen(
                self._argv(far.fileno() if far else -1),
                executable=None if executable is None else f"/proc/self/fd/{executable}",
                stdin=stdin,
                stdout=out_write,
                stderr=err_write,
                cwd=self._folder,
                env=self._environment(),
                pass_fds=passed,
                start_new_session=True,
            )
        except OSError as error:
            os.close(out)
            os.close(err)
            raise SandboxFault("INVALID_PROGRAM", f"cannot start: {error}") from error
        finally:
            for descriptor in (stdin, out_write, err_write):
                os.close(descriptor)
            if far is not None:
                far.close()
        self._limit()
        self._pidfd = os.pidfd_open(self._process.pid)
        keep = request.limits.output_bytes
        self._out, self._err = _Stream(out, keep), _Stream(err, keep)
        self._alive = True

    def _argv(self, channel: int) -> list[str]:
        request = self._request
        match request.mode:
            case RunMode.EXEC:
                return list(request.argv)
            case RunMode.PYTHON:
                return [sys.executable, *request.argv]
            case _:
                code = HARNESS.format(
                    sources=str(SOURCES),
                    mode=request.mode.value,
                    channel=channel,
                    argv=request.argv,
                )
                return [sys.executable, "-I", "-c", code]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self._folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **self._request.environment,
        }

    def _limit(self) -> None:
        limits, pid = self._request.limits, self._process.pid
        cpu = max(1, round(limits.cpu_s + 0.499))
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu, cpu + 1))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
            if (
                self._request.mode is not RunMode.EXEC
            ):  # the JVM and others reserve far more than they use
                memory = limits.memory_bytes + 256 * 2**20
                resource.prlimit(pid, resource.RLIMIT_AS, (memory, memory))
        except ProcessLookupError:
            pass

    @property
    def record(self) -> RunRecord | None:
        return self._record

    def send(self, frame: bytes) -> None:
        if self._channel is not None:
            self._channel.send(frame)

    def kill(self, end: EndKind | None = None, detail: str = "") -> None:
        if self._end is None and self._record is None and self._alive:
            self._end, self._detail = end, detail
        if self._alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def watched(self) -> Sequence[int]:
        descriptors = [stream.descriptor for stream in (self._out, self._err) if stream.open]
        if self._alive:
            descriptors.append(self._pidfd)
        if self._channel is not None and self._channel.open:
            descriptors.append(self._channel.socket.fileno())
        return descriptors

    def deadline_s(self) -> float:
        if self._channel is not None and self._channel.pending:
            return min(self._ends_s, time.monotonic() + 0.002)
        return self._ends_s

    def on_ready(self, descriptor: int) -> None:
        if self._alive and descriptor == self._pidfd:
            self._reap()
        elif (
            self._channel is not None
            and self._channel.open
            and descriptor == self._channel.socket.fileno()
        ):
            if not self._channel.read():
                self._channel.close()
                self.kill(EndKind.OUTPUT_LIMIT, "a frame over the limit")
        else:
            for stream in (self._out, self._err):
                if stream.open and stream.descriptor == descriptor:
                    stream.read()
                    if stream.total > self._request.limits.max_output_bytes:
                        self.kill(EndKind.OUTPUT_LIMIT)
        self._settle()

    def on_time(self, now_s: float) -> None:
        if self._channel is not None:
            self._channel.flush()
        if now_s < self._ends_s:
            return
        if self._alive:
            self.kill(EndKind.WALL_TIME_LIMIT)
            self._ends_s = now_s + GRACE_S
        else:  # a process that left the group keeps a pipe open: the stand-in gives up on it
            self._out.close()
            self._err.close()
            if self._channel is not None:
                self._channel.close()
            self._settle()

    def _reap(self) -> None:
        self._wall_s = time.monotonic() - self._began_s
        # It is not reaped yet, so the group's number is still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _, self._status, self._usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(self._status)
        os.close(self._pidfd)
        self._alive = False
        self._ends_s = time.monotonic() + GRACE_S

    def _settle(self) -> None:
        """Writes the record once all is over."""
        channel_open = self._channel is not None and self._channel.open
        if self._alive or self._out.open or self._err.open or channel_open or self._record:
            return
        code = os.waitstatus_to_exitcode(self._status)
        usage = self._usage
        assert usage is not None
        self._record = RunRecord(
            end=self._end or self._natural_end(code),
            exit_code=max(code, 0),
            signal=max(-code, 0),
            stdout=self._out.output(),
            stderr=self._err.output(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=self._wall_s,
            peak_memory_bytes=usage.ru_maxrss * 1024,
            files=tuple(self._fetched()),
            detail=self._detail,
        )
        shutil.rmtree(self._folder, ignore_errors=True)

    def _natural_end(self, code: int) -> EndKind:
        if code == -signal.SIGXCPU:
            return EndKind.CPU_TIME_LIMIT
        if code < 0:
            return EndKind.SIGNALLED
        if code and self._err.output().data.rstrip().endswith(b"MemoryError"):
            return EndKind.MEMORY_LIMIT
        return EndKind.EXITED

    def _fetched(self) -> list[BoxFile]:
        found = []
        for path in self._request.fetch_paths:
            file = self._folder / path
            if file.is_file() and not file.is_symlink():
                found.append(BoxFile(path, file.read_bytes(), file.stat().st_mode & 0o777))
        return found


class ProcessBox:
    """Runs programs as subprocesses of the test, one at a time."""

    level = "none"

    def __init__(self) -> None:
        self._running: ProcessRunning | None = None

    def start(self, request: RunRequest) -> ProcessRunning:
        folder = Path(tempfile.mkdtemp(prefix="assay-process-box-"))
        for file in request.files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)
        self._running = ProcessRunning(request, folder)
        return self._running

    def close(self) -> None:
        """Kills what runs and waits for it."""
        running = self._running
        while running is not None and running.record is None:
            running.kill()
            ready, _, _ = select.select(running.watched(), [], [], 0.01)
            for descriptor in ready:
                running.on_ready(descriptor)
            if running.deadline_s() <= time.monotonic():
                running.on_time(time.monotonic())


class ProcessBoxes:
    """The boxes of a slot, each a `ProcessBox`."""

    def __init__(self, pump: Pump | None = None) -> None:
        self.pump = pump or Pump()
        self._candidate = ProcessBox()
        self._tester = ProcessBox()

    def candidate(self, source: str = "") -> ProcessBox:
        return self._candidate

    def tester(self) -> ProcessBox:
        return self._tester

    def close(self) -> None:
        self._candidate.close()
        self._tester.close()


class JailedBoxes(JailBoxes):
    """The real boxes of a slot, with a pump beside them."""

    def __init__(self) -> None:
        super().__init__(JailConfig(slot=6))
        self.pump = Pump()


AnyBoxes = ProcessBoxes | JailedBoxes


class ScriptPrepared:
    """A Python program that is ready to run, as the languages prepare it."""

    def __init__(self, program: SubmittedProgram) -> None:
        self.program = program
        self.compile_output = CapturedOutput()

    def run(
        self,
        *,
        stdin: bytes,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        limits: RunLimits,
        fetch_paths: tuple[str, ...] = (),
    ) -> RunRequest:
        return RunRequest(
            mode=RunMode.PYTHON,
            argv=(SCRIPT, *self.program.arguments, *arguments),
            files=self._files(),
            stdin=stdin,
            environment=environment or {},
            limits=limits,
            fetch_paths=fetch_paths,
        )

    def candidate(self, *, limits: RunLimits) -> RunRequest:
        argv = (SCRIPT, *self.program.arguments)
        return RunRequest(mode=RunMode.CANDIDATE, argv=argv, files=self._files(), limits=limits)

    def _files(self) -> tuple[BoxFile, ...]:
        return (BoxFile(SCRIPT, self.program.source.encode()), *self.program.files)


class ScriptPreparer:
    """Prepares Python programs; those that do not parse fail to compile."""

    def prepare(self, program: SubmittedProgram, limits: RunLimits) -> ScriptPrepared:
        try:
            compile(program.source, SCRIPT, "exec")
        except SyntaxError as error:
            record = RunRecord(EndKind.COMPILE_ERROR, stderr=CapturedOutput(str(error).encode(), 0))
            raise CompileFailed(record) from error
        return ScriptPrepared(program)


def judge_python(
    boxes: AnyBoxes, source: str, *tests: TestCase, stop_at_first_failure: bool = False
) -> list[CaseOutcome]:
    """Holds a Python program against tests."""
    prepared = ScriptPrepared(SubmittedProgram("python", source))
    suite = Suite(tests, stop_at_first_failure)
    return list(judge(prepared, suite, boxes, boxes.pump, ScriptPreparer()).outcomes)
