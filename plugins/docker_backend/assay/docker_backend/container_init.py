"""The first process of a program's container: starts the program, watches it, reports its end.

It runs inside the container, as `python3 -I -S -c <this file>`, so it imports only the standard
library; the service imports the same file for the names of the frames. Frames travel over the
container's stdin and stdout, which the program never gets: 1 byte kind, 4 bytes length, and the
payload.

Covered: the program runs under a uid of its own without a capability and with no-new-privileges, so
it can neither signal, trace nor imitate this process; everything in the container is dead before
the end is reported; CPU time and memory are read from the container's cgroup, which is read-only.
Not covered: isolation from the host, which is the container's (`container.py`).
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH110, PTH118, PTH120, PTH123, PTH208, S606
# pathlib would cost a third of the start-up; executing the program is the point.

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# From the service: a library file (root's), a file of the folder, bytes of stdin, the job that
# starts it all, bytes for the channel, the order to kill.
LIBRARY, FILE, STDIN, JOB, TO_CHANNEL, KILL = b"L", b"F", b"I", b"J", b"C", b"K"
# To the service: started, or could not; bytes of stdout, of stderr, of the channel; a part of a
# fetched file; the end.
STARTED, UNSTARTED = b"S", b"X"
STDOUT, STDERR, FROM_CHANNEL, FETCHED, ENDED = b"O", b"E", b"C", b"A", b"D"
HEADER = struct.Struct("!cI")
PART_BYTES = 1 << 20  # largest payload of a frame
FOLDER = "/box"
LIBRARY_FOLDER = "/run/assay"
CHANNEL_FD = 3
ROOM_BYTES = 256 << 20  # address space of an interpreter beyond what it uses
CHUNK = 1 << 16
BACKLOG = 1 << 20
UID = int(
    os.environ.get("ASSAY_UID", "65534")
)  # the program's; this process is root without its powers
LOOK_S = 0.02  # how often CPU time is looked at


class ContainerJob(NamedTuple):
    """A run; the frames before it brought files and stdin."""

    mode: str
    argv: list[str]
    environment: dict[str, str]
    cpu_s: float
    wall_s: float
    memory_bytes: int
    processes: int
    output_bytes: int
    max_output_bytes: int
    fetch_paths: list[str]
    fetch_bytes: int


def named(header: object, content: bytes) -> bytes:
    """A payload that is a JSON value and some bytes."""
    text = json.dumps(header).encode()
    return struct.pack("!I", len(text)) + text + content


def unnamed(payload: bytes) -> tuple[Any, bytes]:
    """Reads what `named` made."""
    (size,) = struct.unpack_from("!I", payload)
    return json.loads(payload[4 : 4 + size]), payload[4 + size :]


def emit(kind: bytes, payload: bytes = b"") -> None:
    """Writes a whole frame to the service; blocks."""
    rest = memoryview(HEADER.pack(kind, len(payload)) + payload)
    while rest:
        rest = rest[os.write(1, rest) :]


def read_exactly(size: int) -> bytes:
    """Bytes of the service; when it is gone, ends this process and with it the container."""
    data = bytearray()
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            sys.exit(0)
        data += chunk
    return bytes(data)


def read_frame() -> tuple[bytes, bytes]:
    """The next frame of the service."""
    kind, size = HEADER.unpack(read_exactly(HEADER.size))
    return kind, read_exactly(size)


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """Does file work as the program's user. Only while no process of that user is alive."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def write_part(root: str, payload: bytes) -> None:
    """Appends a part of a file below a folder, making its parents."""
    (path, mode), content = unnamed(payload)
    target = os.path.join(root, path)
    os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def receive() -> tuple[ContainerJob, int]:
    """Takes files and stdin until the job comes; the descriptor holds the stdin."""
    stdin = os.memfd_create("stdin")
    while True:
        kind, payload = read_frame()
        if kind == JOB:
            os.lseek(stdin, 0, os.SEEK_SET)
            return ContainerJob(**json.loads(payload)), stdin
        if kind == LIBRARY:
            write_part(LIBRARY_FOLDER, payload)
        elif kind == FILE:
            with acting_as(UID):
                write_part(FOLDER, payload)
        elif kind == STDIN:
            os.write(stdin, payload)


def number(*paths: str) -> int | None:
    """The number in the first of these files that exists, e.g. of either version of cgroups."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            return int(file.read().split()[0])
    return None


def field(name: str, *paths: str) -> int | None:
    """The number behind a name in the first of these files that has it."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    return None


CGROUP = "/sys/fs/cgroup/"


def cgroup_cpu_s() -> float | None:
    """CPU time of the container."""
    nanoseconds = number(CGROUP + "cpuacct/cpuacct.usage", CGROUP + "cpu,cpuacct/cpuacct.usage")
    if nanoseconds is not None:
        return nanoseconds / 1e9
    microseconds = field("usage_usec", CGROUP + "cpu.stat")
    return None if microseconds is None else microseconds / 1e6


class ContainerUse(NamedTuple):
    """The program's use: CPU time in all, tasks and resident memory now."""

    cpu_s: float
    tasks: int = 0
    resident_bytes: int = 0


def processes() -> ContainerUse:
    """The use of all processes but this one, where no cgroup counts it."""
    ticks = tasks = pages = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    words = file.read().rpartition(b")")[2].split()
                ticks += sum(map(int, words[11:15]))
                tasks += max(1, int(words[17]))
                pages += int(words[21])
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = ticks / os.sysconf("SC_CLK_TCK") + usage.ru_utime + usage.ru_stime
    return ContainerUse(cpu_s, tasks, pages * resource.getpagesize())


class UsageMeter:
    """The program's use, from the container's cgroup where it is readable."""

    def __init__(self) -> None:
        self._cpu_s = cgroup_cpu_s()
        self._bytes = number(CGROUP + "memory/memory.usage_in_bytes", CGROUP + "memory.current")
        self._kills = self._oom_kills()
        self._refusals = self._fork_refusals()

    def look(self) -> ContainerUse:
        """CPU time since the start; tasks and memory are 0 where the cgroup bounds them.

        A cgroup's CPU time includes this process's own small part.
        """
        now_s = cgroup_cpu_s()
        if self._cpu_s is None or now_s is None:
            return processes()
        return ContainerUse(now_s - self._cpu_s)

    def peak_bytes(self) -> int:
        """Most memory at once."""
        peak = number(CGROUP + "memory/memory.max_usage_in_bytes", CGROUP + "memory.peak")
        if peak is not None and self._bytes is not None:
            return max(0, peak - self._bytes)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    def _oom_kills(self) -> int:
        files = (CGROUP + "memory/memory.oom_control", CGROUP + "memory.events")
        return field("oom_kill", *files) or 0

    def _fork_refusals(self) -> int:
        return field("max", CGROUP + "pids/pids.events", CGROUP + "pids.events") or 0

    def out_of_memory(self) -> bool:
        """The kernel killed a process for its memory."""
        return self._oom_kills() > self._kills

    def out_of_processes(self) -> bool:
        """The kernel refused a new process or thread."""
        return self._fork_refusals() > self._refusals


class OutputStream:
    """One output of the program: forwards its first bytes, counts the rest."""

    def __init__(self, kind: bytes, keep: int, limit: int) -> None:
        self.near, self.far = os.pipe()
        os.set_blocking(self.near, False)
        self.total = 0
        self.tail = b""
        self.open = True
        self._kind = kind
        self._keep = keep
        self._limit = limit

    def read(self) -> bool:
        """Takes what is there; False when nothing was."""
        try:
            chunk = os.read(self.near, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.open = False
            os.close(self.near)
            return False
        part = chunk[: max(0, self._keep - self.total)]
        self.total += len(chunk)
        self.tail = (self.tail + chunk)[-64:]
        if part:
            emit(self._kind, part)
        return True

    @property
    def over(self) -> bool:
        """More was written than is allowed."""
        return self.total > self._limit


def command(job: ContainerJob) -> list[str]:
    """The child's command."""
    if job.mode == "exec":
        return job.argv
    if job.mode == "python":
        return [sys.executable, *job.argv]
    code = (
        f"import sys; sys.path.insert(0, {LIBRARY_FOLDER!r})\n"
        f"from assay.sandbox.harness.{job.mode} import main\n"
        f"sys.path.remove({LIBRARY_FOLDER!r})\n"
        f"sys.exit(main({CHANNEL_FD}, {tuple(job.argv)!r}))"
    )
    return [sys.executable, "-I", "-c", code]


def become(job: ContainerJob, descriptors: list[int]) -> None:
    """In the child: gives everything up and executes the program. Raises OSError if it cannot."""
    os.setsid()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # before this process's parent
    for place, descriptor in enumerate([os.dup(descriptor) for descriptor in descriptors]):
        os.dup2(descriptor, place)  # all others close on exec
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(job.cpu_s) + 2,
    }
    if job.mode != "exec":
        limits[resource.RLIMIT_AS] = job.memory_bytes + ROOM_BYTES
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))
    os.umask(0o022)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    os.chdir(FOLDER)
    argv = command(job)
    for number_ in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number_, signal.SIG_DFL)
    program = f"{LIBRARY_FOLDER}/program"
    if job.mode == "exec" and os.path.exists(program):
        os.execve(program, argv, job.environment)
    os.execvpe(argv[0], argv, job.environment)


class Run:
    """The program from its start to the report of its end."""

    def __init__(self, job: ContainerJob, stdin: int) -> None:
        self.job = job
        self.end = ""
        self.detail = ""
        self.status: int | None = None
        self.stdout = OutputStream(STDOUT, job.output_bytes, job.max_output_bytes)
        self.stderr = OutputStream(STDERR, job.output_bytes, job.max_output_bytes)
        self.channel: socket.socket | None = None
        self.outbox = bytearray()
        self.meter = UsageMeter()
        self.began_s = time.monotonic()
        self.wall_s = 0.0
        self._inbox = bytearray()
        self._wakeup, wakeup_far = os.pipe()
        for descriptor in (self._wakeup, wakeup_far):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wakeup_far, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._spawn(stdin)

    def _spawn(self, stdin: int) -> None:
        descriptors = [stdin, self.stdout.far, self.stderr.far]  # the child's 0, 1, 2, ...
        far = None
        if self.job.mode in {"candidate", "tester"}:
            self.channel, far = socket.socketpair()
            self.channel.setblocking(False)
            descriptors.append(far.fileno())
        told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become(self.job, descriptors)
            except OSError as error:
                os.write(tell, str(error.strerror).encode())
            finally:
                os._exit(127)
        for descriptor in (tell, stdin, self.stdout.far, self.stderr.far):
            os.close(descriptor)
        if far is not None:
            far.close()
        problem = os.read(told, 200)
        os.close(told)
        if problem:
            emit(UNSTARTED, named(self.job.argv[0], problem))
            sys.exit(0)  # and the container with it
        emit(STARTED)

    def stop(self, end: str, detail: str = "") -> None:
        """Kills everything in the container but this process."""
        if self.status is None:
            self.end = self.end or end
            self.detail = self.detail or detail
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    def reap(self, flags: int = os.WNOHANG) -> bool:
        """Reaps dead children; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = status
                self.wall_s = time.monotonic() - self.began_s

    def watch(self) -> None:
        """Relays and checks the limits until the program's first process has ended."""
        job = self.job
        looked_s = 0.0
        while self.status is None:
            now_s = time.monotonic()
            if now_s - self.began_s > job.wall_s:
                self.stop("wall-time-limit", f"more than {job.wall_s:g} s")
            if now_s - looked_s > LOOK_S:
                looked_s = now_s
                use = self.meter.look()
                if use.cpu_s > job.cpu_s:
                    self.stop("cpu-time-limit", f"more than {job.cpu_s:g} s of CPU time")
                elif use.tasks > job.processes:
                    self.stop("process-limit", f"{use.tasks} processes and threads")
                elif use.resident_bytes > job.memory_bytes:
                    self.stop("memory-limit", f"{use.resident_bytes} bytes in use")
            rest_s = min(LOOK_S, max(0.0, job.wall_s - (now_s - self.began_s)))
            self.step(rest_s)
            if self.stdout.over or self.stderr.over:
                largest = max(self.stdout.total, self.stderr.total)
                self.stop("output-limit", f"{largest} bytes written")
            self.reap()

    def step(self, timeout_s: float) -> None:
        """Waits for something to relay, and relays it."""
        handlers: dict[int, Callable[[], object]] = {self._wakeup: self._woken}
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        if len(self.outbox) < BACKLOG:
            poll.register(0, select.POLLIN)
            handlers[0] = self._from_service
        for stream in (self.stdout, self.stderr):
            if stream.open:
                poll.register(stream.near, select.POLLIN)
                handlers[stream.near] = stream.read
        if self.channel is not None:
            wanted = select.POLLIN | (select.POLLOUT if self.outbox else 0)
            poll.register(self.channel.fileno(), wanted)
            handlers[self.channel.fileno()] = self._relay
        for descriptor, _ in poll.poll(timeout_s * 1e3 + 1):
            handlers[descriptor]()

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, CHUNK)

    def _from_service(self) -> None:
        chunk = os.read(0, CHUNK)
        if not chunk:
            os._exit(0)  # the service is gone, and so is the container
        self._inbox += chunk
        while len(self._inbox) >= HEADER.size:
            kind, size = HEADER.unpack_from(self._inbox)
            if len(self._inbox) < HEADER.size + size:
                return
            if kind == TO_CHANNEL:
                self.outbox += self._inbox[HEADER.size : HEADER.size + size]
            elif kind == KILL:
                self.stop("killed")
            del self._inbox[: HEADER.size + size]

    def _relay(self) -> bool:
        """Moves bytes of the channel both ways; False when none came from the program."""
        channel = self.channel
        if channel is None:
            return False
        try:
            while self.outbox:
                del self.outbox[: channel.send(self.outbox[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self.outbox.clear()
        try:
            chunk = channel.recv(CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if chunk:
            emit(FROM_CHANNEL, chunk)
            return True
        channel.close()
        self.channel = None
        return False

    def finish(self) -> None:
        """Kills what is alive, drains what is left, and reports."""
        while self.reap():
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            time.sleep(0.001)
        for stream in (self.stdout, self.stderr):
            while stream.open and stream.read():
                pass
        while self.channel is not None and self._relay():
            pass
        self._fetch()
        emit(ENDED, json.dumps(self.report()).encode())

    def report(self) -> dict[str, object]:
        """How it ended, as the service reads it."""
        code = os.waitstatus_to_exitcode(self.status or 0)
        return {
            "end": self.end or self.natural_end(code),
            "exit_code": max(code, 0),
            "signal": max(-code, 0),
            "cpu_s": self.meter.look().cpu_s,
            "wall_s": self.wall_s,
            "peak_memory_bytes": self.meter.peak_bytes(),
            "stdout_bytes": self.stdout.total,
            "stderr_bytes": self.stderr.total,
            "detail": self.detail,
        }

    def natural_end(self, code: int) -> str:
        """Why it ended, when it was not this process that ended it."""
        starved = self.meter.out_of_memory() or self.stderr.tail.rstrip().endswith(b"MemoryError")
        reasons = {
            "output-limit": self.stdout.over or self.stderr.over,
            "memory-limit": bool(code) and starved,
            "cpu-time-limit": code == -signal.SIGXCPU,
            "security-violation": code == -signal.SIGSYS,
            "process-limit": bool(code) and self.meter.out_of_processes(),
            "signalled": code < 0,
        }
        return next((name for name, holds in reasons.items() if holds), "exited")

    def _fetch(self) -> None:
        rest = self.job.fetch_bytes
        for path in self.job.fetch_paths:
            with contextlib.suppress(OSError), acting_as(UID):
                descriptor = open_beneath(path)
                try:
                    info = os.fstat(descriptor)
                    if not stat.S_ISREG(info.st_mode) or info.st_size > rest:
                        continue
                    rest -= info.st_size
                    mode = info.st_mode & 0o777
                    emit(FETCHED, named([path, mode], b""))
                    while chunk := os.read(descriptor, PART_BYTES // 2):
                        emit(FETCHED, named([path, mode], chunk))
                finally:
                    os.close(descriptor)


def open_beneath(path: str) -> int:
    """Opens a file of the folder for reading without following any link."""
    *parents, name = [part for part in path.split("/") if part not in {"", "."}]
    folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        for parent in parents:
            # Old versions of gVisor follow a link here despite O_NOFOLLOW. All writers are dead.
            if stat.S_ISLNK(os.stat(parent, dir_fd=folder, follow_symlinks=False).st_mode):
                raise NotADirectoryError(parent)
            below = os.open(parent, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def hide_terminals() -> None:
    """Takes from a program the terminals that Docker puts into every /dev."""
    for path in ("/dev/pts", "/dev/mqueue"):
        with contextlib.suppress(OSError):
            os.chmod(path, 0)
    with contextlib.suppress(OSError):
        os.unlink("/dev/ptmx")


def main() -> None:
    """One job, from its files to its end."""
    hide_terminals()
    try:
        job, stdin = receive()
    except OSError as error:  # the folder has no room, or a path cannot be
        emit(UNSTARTED, named(error.filename, str(error.strerror).encode()))
        return
    run = Run(job, stdin)
    run.watch()
    run.finish()


if __name__ == "__main__":
    main()
