"""A box that runs each program in a Docker container of its own, with the jail's modes and limits.

It is slower than the jail by two orders of magnitude: a container takes some hundred milliseconds
to start, which a spare made in advance hides from single calls but not from throughput.

`container.py` makes a container whose first process (`container_init.py`) waits. Files, stdin and
the job go in over the container's stdin as frames; output, the channel's bytes and the end come
back over its stdout. Nothing here blocks once the program runs.

Covered: see `container.py`. A program cannot forge the first process's frames: it runs under
another user, without capabilities.
Not covered: loopback is up in the container's own network namespace; /tmp and /dev/shm are file
systems of their own, each with the size of the folder (all count as memory). Where no cgroup can be
read inside (gVisor), CPU time and tasks are counted over the processes every 20 ms, and a process
that ignores its children's end hides the time of those that ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import select
import signal
import struct
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from assay.docker_backend import container_init as init
from assay.docker_backend.container import (
    DEFAULT_IMAGE,
    ContainerShape,
    DockerConfig,
    ProgramContainer,
    check,
    connect,
    sweep,
)
from assay.docker_backend.conversation import Conversation
from assay.kit.errors import StartupError
from assay.kit.reasons import Reason
from assay.sandbox.backend import (
    ENDED_BY_US,
    BoxFile,
    CapturedOutput,
    EndKind,
    Pump,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
    harness_files,
)

__all__ = ["DockerBox", "DockerBoxes", "DockerConfig"]

logger = logging.getLogger(__name__)

FRAME_BYTES = 64 * 2**20  # the largest frame of the channel
GRACE_S = 5.0  # the first process's, beyond the program's time; then the container is killed
KILL_S = 1.0  # what it may take to kill the program
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": init.FOLDER,
    "PYTHONDONTWRITEBYTECODE": "1",
}
_LENGTH = struct.Struct("!I")


def content_of(descriptor: int) -> bytes:
    """All bytes of a memfd, its position untouched."""
    parts = []
    offset = 0
    while part := os.pread(descriptor, 1 << 20, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


class DockerRunning:
    """A program in its container, as a `Running`."""

    def __init__(
        self, request: RunRequest, container: ProgramContainer, config: DockerConfig
    ) -> None:
        """Hands the job over and returns when the program runs.

        Raises:
            SandboxFault: it could not be started.
        """
        if container.connection is None:
            raise SandboxFault(Reason.WORKER_DIED, "the container was removed before its program")
        self.frames: deque[bytes] = deque()
        self._request = request
        self._container = container
        self._config = config
        self._talk = Conversation(container.connection)
        self._record: RunRecord | None = None
        self._started = False
        self._end: EndKind | None = None
        self._detail = ""
        self._killing = False
        self._wakes_s = time.monotonic() + config.start_timeout_s
        self._inbox = bytearray()
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._files: dict[str, tuple[int, bytearray]] = {}
        try:
            self._hand_over()
            self._await_start()
        except SandboxFault:
            self._finish()
            raise

    def _hand_over(self) -> None:
        request, talk = self._request, self._talk
        limits = request.limits
        if sum(len(file.content) for file in request.files) > limits.disk_bytes:
            raise SandboxFault(
                Reason.INVALID_PROGRAM,
                f"the program's files are larger than its disk of {limits.disk_bytes} bytes",
            )
        if request.channel:
            for path, content in harness_files().items():
                talk.send_parts(init.LIBRARY, content, [path, 0o444])
        if request.executable is not None:
            talk.send_parts(init.LIBRARY, content_of(request.executable), ["program", 0o555])
        for file in request.files:
            talk.send_parts(init.FILE, file.content, [file.path, file.mode & 0o777])
        if request.stdin:
            talk.send_parts(init.STDIN, request.stdin)
        job = init.ContainerJob(
            mode=request.mode.value,
            argv=list(request.argv),
            environment={**ENVIRONMENT, **request.environment},
            cpu_s=limits.cpu_s,
            wall_s=limits.wall_s,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            output_bytes=limits.output_bytes,
            max_output_bytes=limits.max_output_bytes,
            fetch_paths=list(request.fetch_paths),
            fetch_bytes=request.fetch_bytes,
        )
        talk.send(init.JOB, json.dumps(job._asdict()).encode())

    def _await_start(self) -> None:
        """Waits for the program's start; nothing else here blocks."""
        while not self._started and self._record is None:
            rest_s = self._wakes_s - time.monotonic()
            if rest_s <= 0:
                raise SandboxFault(Reason.WORKER_DIED, "the container did not start its program")
            poll = select.poll()
            for descriptor in self._talk.watched():
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll(rest_s * 1e3):
                self.on_ready(descriptor)

    @property
    def record(self) -> RunRecord | None:
        """See `Running`."""
        return self._record

    def send(self, frame: bytes) -> None:
        """See `Running`."""
        if self._record is None:
            self._talk.send_parts(init.TO_CHANNEL, _LENGTH.pack(len(frame)) + frame)

    def kill(self, end: EndKind | None = None, detail: str = "") -> None:
        """See `Running`."""
        if self._killing or self._record is not None:
            return
        self._killing = True
        self._end, self._detail = end, detail or ("" if end else ENDED_BY_US)
        self._talk.send(init.KILL)
        self._wakes_s = time.monotonic() + KILL_S

    def watched(self) -> Sequence[int]:
        """See `Running`."""
        return self._talk.watched()

    def deadline_s(self) -> float:
        """See `Running`."""
        return self._wakes_s if self._record is None else math.inf

    def on_time(self, now_s: float) -> None:
        """Kills the container, whose first process did not act in time."""
        if not self._killing:
            self._killing, self._end = True, EndKind.WALL_TIME_LIMIT
        self._wakes_s = now_s + GRACE_S
        self._container.kill()

    def on_ready(self, descriptor: int) -> None:
        """See `Running`.

        Raises:
            SandboxFault: the container died, and not by the program's doing.
        """
        self._talk.flush()
        for kind, payload in self._talk.receive():
            self._take(kind, payload)
            if self._record is not None:
                self._finish()
                return
        if self._talk.closed:
            self._lost()

    def _take(self, kind: bytes, payload: bytes) -> None:
        if kind == init.STDOUT:
            self._stdout += payload
        elif kind == init.STDERR:
            self._stderr += payload
        elif kind == init.FROM_CHANNEL:
            self._inbox += payload
            self._split()
        elif kind == init.FETCHED:
            (path, mode), content = init.unnamed(payload)
            self._files.setdefault(path, (mode, bytearray()))[1].extend(content)
        elif kind == init.STARTED:
            self._started = True
            self._wakes_s = time.monotonic() + self._request.limits.wall_s + GRACE_S
        elif kind == init.UNSTARTED:
            raise self._unstarted(payload)
        elif kind == init.ENDED:
            self._record = self._recorded(json.loads(payload))

    def _split(self) -> None:
        """Takes whole frames of the channel. The bytes are the program's own."""
        start = 0
        while len(self._inbox) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._inbox, start)
            if size > FRAME_BYTES:
                self.kill(EndKind.OUTPUT_LIMIT, "a frame over the limit")
                start = len(self._inbox)
                break
            end = start + _LENGTH.size + size
            if len(self._inbox) < end:
                break
            self.frames.append(bytes(self._inbox[start + _LENGTH.size : end]))
            start = end
        del self._inbox[:start]

    def _unstarted(self, payload: bytes) -> SandboxFault:
        name, problem = init.unnamed(payload)
        message = f"{name!r} cannot be started in {self._config.image!r}: {problem.decode()}"
        own = not str(name).startswith("/") or str(name).startswith(f"{init.FOLDER}/")
        return SandboxFault(Reason.INVALID_PROGRAM if own else Reason.INTERNAL, message)

    def _recorded(self, report: dict[str, Any]) -> RunRecord:
        end = self._end if self._killing else None
        if end is None:
            killed = report["end"] == "killed"
            end = EndKind.SIGNALLED if killed else EndKind(report["end"])
        return RunRecord(
            end=end,
            exit_code=report["exit_code"],
            signal=report["signal"],
            stdout=CapturedOutput(bytes(self._stdout), report["stdout_bytes"]),
            stderr=CapturedOutput(bytes(self._stderr), report["stderr_bytes"]),
            cpu_s=report["cpu_s"],
            wall_s=report["wall_s"],
            peak_memory_bytes=report["peak_memory_bytes"],
            files=tuple(
                BoxFile(path, bytes(content), mode) for path, (mode, content) in self._files.items()
            ),
            detail=self._detail or report["detail"],
        )

    def _lost(self) -> None:
        """The connection closed without a report: asks the daemon why."""
        state = self._container.state(self._config.start_timeout_s)
        out_of_memory = bool(state.get("OOMKilled"))
        limits = self._request.limits
        if self._started and (self._killing or out_of_memory):
            end = self._end if self._killing else EndKind.MEMORY_LIMIT
            self._record = RunRecord(
                end=end or EndKind.SIGNALLED,
                signal=signal.SIGKILL,
                stdout=CapturedOutput(bytes(self._stdout), len(self._stdout)),
                stderr=CapturedOutput(bytes(self._stderr), len(self._stderr)),
                wall_s=limits.wall_s if end is EndKind.WALL_TIME_LIMIT else 0.0,
                peak_memory_bytes=limits.memory_bytes if out_of_memory else 0,
                detail=self._detail or "the whole container was killed",
            )
            self._finish()
            return
        self._record = RunRecord(EndKind.SIGNALLED)  # never looked at: the fault is raised
        self._finish()
        if out_of_memory:
            raise SandboxFault(
                Reason.INVALID_LIMIT,
                f"the program and its input do not fit into {limits.memory_bytes} bytes of memory",
            )
        complaint = self._talk.complaint.decode(errors="replace").strip().splitlines()
        why = complaint[-1] if complaint else state.get("Error") or f"state {state or 'unknown'}"
        raise SandboxFault(Reason.WORKER_DIED, f"the container died under its program: {why}")

    def _finish(self) -> None:
        self._talk.close()


class DockerBox:
    """Runs one program at a time, each in a container of its own."""

    def __init__(self, boxes: DockerBoxes) -> None:
        self._boxes = boxes
        self._running: DockerRunning | None = None
        self._container: ProgramContainer | None = None
        self.level = boxes.config.level

    def start(self, request: RunRequest) -> DockerRunning:
        """See `Box`."""
        self._retire()
        self._container = self._boxes.container(ContainerShape.of(request.limits))
        try:
            self._running = DockerRunning(request, self._container, self._boxes.config)
        except SandboxFault:
            self._retire()
            raise
        return self._running

    def _retire(self) -> None:
        """Has the last run's container removed, running or not."""
        if self._container is not None:
            self._boxes.discard(self._container)
        self._container = self._running = None

    def close(self) -> None:
        """See `Box`."""
        self._retire()


class DockerBoxes:
    """The boxes of one slot, over one daemon."""

    def __init__(self, config: DockerConfig) -> None:
        """Connects.

        Raises:
            StartupError: no daemon, no image, no such runtime, or an image without a usable Python.
        """
        if not config.image:
            config = dataclasses.replace(config, image=DEFAULT_IMAGE)
        self.config = config
        self._api = connect(config)
        self._helpers = ThreadPoolExecutor(4, thread_name_prefix="docker")
        self._spare: Future[ProgramContainer] | None = None
        self._candidate = DockerBox(self)
        self._tester = DockerBox(self)
        try:
            self.layers = check(self._api, config)
            """The layers that programs are isolated by."""
            self._try_python()
        except StartupError:
            self.close()
            raise
        swept = sweep(self._api)
        if swept:
            logger.info("removed %d containers that an earlier service has left", swept)

    def _try_python(self) -> None:
        """Runs a program of our own."""
        request = RunRequest(RunMode.PYTHON, ("main.py",), (BoxFile("main.py", b"print(6 * 7)"),))
        try:
            running = self._candidate.start(request)
            pump = Pump()
            pump.add(running)
            record = pump.finish(running)
        except SandboxFault as fault:
            raise StartupError(
                f"no program runs in {self.config.image!r}: {fault.message}"
            ) from fault
        if not record.ok or record.stdout.data != b"42\n":
            raise StartupError(
                f"{self.config.python!r} of {self.config.image!r} does not run a program: "
                f"{record.end.value}, {record.stderr.data[-200:]!r}"
            )

    def candidate(self, source: str = "") -> DockerBox:
        """See `Boxes`; nothing is preloaded."""
        return self._candidate

    def tester(self) -> DockerBox:
        """See `Boxes`."""
        return self._tester

    def container(self, shape: ContainerShape) -> ProgramContainer:
        """A container of a shape: the spare where it fits, else a new one.

        Raises:
            SandboxFault: the daemon refused.
        """
        spare, self._spare = self._spare, None
        container: ProgramContainer | None = None
        if spare is not None:
            with contextlib.suppress(SandboxFault):  # then the daemon says it again, for this run
                container = spare.result()
        if container is not None and container.shape != shape:
            self.discard(container)
            container = None
        if container is None:
            container = ProgramContainer(self._api, self.config, shape)
        if self.config.spare:
            self._spare = self._helpers.submit(ProgramContainer, self._api, self.config, shape)
        return container

    def discard(self, container: ProgramContainer) -> None:
        """Removes a container, in the background."""
        container.disconnect()
        self._helpers.submit(container.remove)

    def close(self) -> None:
        """Removes every container of this slot, and waits for that."""
        self._candidate.close()
        self._tester.close()
        spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(SandboxFault):
                spare.result().remove()
        self._helpers.shutdown(wait=True)
        self._api.close()
