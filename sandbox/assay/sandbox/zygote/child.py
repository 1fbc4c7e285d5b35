"""The zygote's child: takes one job, gives up every right, and becomes the program.

It is forked before the job comes, so the zygote, whose memory every later child inherits, never
sees a job.

Covered: user, capabilities, no-new-privileges, Landlock, seccomp, rlimits, descriptors,
environment; a step that fails ends the child with a report on the control socket before any of the
program's code has run.
Not covered: namespaces and the root directory, which the zygote has made already
(`assay.sandbox.zygote.root`).
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import resource
import struct
import sys

# The C modules beneath socket and signal: whatever is loaded here, every run pays for.
from _signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGPIPE, SIGXFSZ, default_int_handler
from _signal import signal as set_signal
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections.abc import Callable
from errno import EFBIG, ENOSPC
from typing import NoReturn

from assay.sandbox.harness import script
from assay.sandbox.zygote import syscalls
from assay.sandbox.zygote.protocol import CHANNEL, CONTROL, MAX_INLINE_BYTES, RUN_NUMBER, BoxJob

_EXECUTABLE = 4
_SETUP_FAILED = 254
_NO_PROGRAM = 126  # as a shell says it
_STACK_BYTES = 64 * 2**20
_OPEN_FILES = 1024
_ANCILLARY_BYTES = CMSG_SPACE(8 * 4)

Harness = Callable[[int, tuple[str, ...]], int]
"""Serves the channel: takes its descriptor and the arguments, returns an exit code."""
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_DESCRIPTORS = {count: struct.Struct(f"{count}i") for count in range(1, 9)}


class Confinement:
    """The confinement of every job of a box; made once by the zygote.

    Attributes:
        zygote: process id of the zygote, as its children see it.
        user: user and group id of programs; None: the zygote's.
        folder: the working directory.
        filter: the seccomp filter that each child adds to the inherited one.
        landlock: descriptor of the Landlock ruleset; None where the kernel has none.
        base_data_bytes: private memory of the zygote, which a forked interpreter starts with.
        own_disk: the folder lies on a filesystem of its own that can be resized.
        spare_processes: processes of the box that count as the program's user's; None: no limit on
            the
            user's processes, which would count others' too.
    """

    def __init__(
        self,
        *,
        zygote: int,
        user: int | None,
        folder: str,
        filter: syscalls.SeccompFilter,  # noqa: A002  # the kernel's word
        landlock: int | None,
        base_data_bytes: int,
        own_disk: str | None,
        spare_processes: int | None,
    ) -> None:
        self.zygote = zygote
        self.user = user
        self.folder = folder
        self.filter = filter
        self.landlock = landlock
        self.base_data_bytes = base_data_bytes
        self.own_disk = own_disk
        self.spare_processes = spare_processes


def lower_common_limits() -> None:
    """Sets the limits that are the same for every job; children inherit them."""
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_STACK, _STACK_BYTES)
    syscalls.no_new_privileges()


def serve(control: socket, run: int, confinement: Confinement, harness: Harness) -> NoReturn:
    """Waits for a job on the control socket and becomes its program."""
    code = _SETUP_FAILED
    try:
        message, descriptors = _receive(control)
        while message and RUN_NUMBER.unpack_from(message, 1)[0] != run:
            for stale in descriptors:  # a job whose run was killed before its child took it
                os.close(stale)
            message, descriptors = _receive(control)
        if not message:
            os._exit(0)  # the supervisor is gone
        try:
            job = _prepare(message, descriptors, confinement)
        except BaseException as error:  # noqa: BLE001 - the fault boundary: our own failure, reported
            if _outgrew(error, confinement):
                _end_without(f"the program's files: {error}", 1)
            _report(f"{type(error).__name__}: {error}")
            os._exit(_SETUP_FAILED)
        if job.mode == "exec":
            _execute(job)
        code = _interpret(job, harness)
    finally:
        os._exit(code)


def _outgrew(error: BaseException, confinement: Confinement) -> bool:
    """Whether the program's files are too large for its own disk; a full host's disk is not."""
    if not isinstance(error, OSError):
        return False
    return error.errno == EFBIG or (error.errno == ENOSPC and confinement.own_disk is not None)


def _end_without(problem: str, code: int) -> NoReturn:
    """Ends a program that could not begin, by its own doing."""
    os.write(2, f"{problem}\n".encode())
    os._exit(code)


def _report(problem: str) -> None:
    os.write(CONTROL, b"E" + problem.encode()[:1000])  # write, for the filter may forbid send


def _receive(control: socket) -> tuple[bytes, list[int]]:
    message, ancillary, _, _ = control.recvmsg(
        MAX_INLINE_BYTES + 1024, _ANCILLARY_BYTES, MSG_CMSG_CLOEXEC
    )
    if not ancillary:
        return message, []
    numbers = ancillary[0][2]
    return message, list(_DESCRIPTORS[len(numbers) // 4].unpack(numbers))


def _prepare(message: bytes, descriptors: list[int], confinement: Confinement) -> BoxJob:
    job = _read(message, descriptors)
    _plumb(job, descriptors)
    _limit(job, confinement)
    _confine(confinement)
    for path, content, mode in job.files:
        write_file(path, content, mode)
    if job.environment:
        os.environ.update(job.environment)
    set_signal(SIGINT, default_int_handler)
    set_signal(SIGHUP, SIG_DFL)  # a service under nohup ignores it, and that is inherited
    return job


def _read(message: bytes, descriptors: list[int]) -> BoxJob:
    data = message[1 + RUN_NUMBER.size :]
    if message[:1] == b"F":  # the job is too large for a message: it is in a file
        source = descriptors.pop()
        data = os.pread(source, os.fstat(source).st_size, 0)
    return BoxJob(*marshal.loads(data))  # noqa: S302  # from the supervisor, trusted


def _plumb(job: BoxJob, descriptors: list[int]) -> None:
    for target in range(3):
        os.dup2(descriptors[target], target)
    rest = descriptors[3:]
    if job.channel:
        os.dup2(rest.pop(0), CHANNEL, inheritable=False)
    if job.executable:
        os.dup2(rest.pop(0), _EXECUTABLE, inheritable=False)


def _limit(job: BoxJob, confinement: Confinement) -> None:
    if confinement.own_disk is not None and job.resize_disk:
        flags = syscalls.MS_REMOUNT | syscalls.MS_NOSUID | syscalls.MS_NODEV
        size = f"size={job.disk_bytes}"
        syscalls.mount("tmpfs", confinement.own_disk, "tmpfs", flags, size)
    _lower(resource.RLIMIT_CPU, job.cpu_s, job.cpu_s + 1)
    _lower(resource.RLIMIT_FSIZE, job.disk_bytes)
    if job.limit_data:
        _lower(resource.RLIMIT_DATA, job.memory_bytes + confinement.base_data_bytes)
    if confinement.spare_processes is not None:
        _lower(resource.RLIMIT_NPROC, job.processes + confinement.spare_processes)


def _lower(kind: int, soft: int, hard: int | None = None) -> None:
    hard = soft if hard is None else hard
    try:
        resource.setrlimit(kind, (soft, hard))
    except ValueError:  # above what is allowed to us: then that is the limit
        _, most = resource.getrlimit(kind)
        resource.setrlimit(kind, (min(soft, most), min(hard, most)))


def _confine(confinement: Confinement) -> None:
    user = confinement.user
    if user is not None:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)  # and with root's id, every capability is gone
    else:
        syscalls.drop_capabilities()
    syscalls.die_with_parent()  # after the change of user, which clears it
    if os.getppid() != confinement.zygote:
        os._exit(1)  # it died before this was said
    syscalls.set_dumpable(dumpable=True)  # its own /proc/self is its own to read
    if confinement.landlock is not None:
        syscalls.landlock_restrict(confinement.landlock)
    confinement.filter.install()


def write_file(path: str, content: bytes, mode: int) -> None:
    """Makes a file beneath the working directory, and the folders on the way."""
    if "/" in path:
        os.makedirs(path.rpartition("/")[0], exist_ok=True)
    descriptor = os.open(path, _WRITE_NEW, 0o644)
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])
    if mode != 0o644:
        os.fchmod(descriptor, mode)
    os.close(descriptor)


def _interpret(job: BoxJob, harness: Harness) -> int:
    syscalls.close_from(CHANNEL + 1 if job.channel else CHANNEL)
    gc.enable()
    if job.mode == "python":
        return script.run(job.argv[0], job.argv[1:])
    return harness(CHANNEL, job.argv)


def _execute(job: BoxJob) -> NoReturn:
    """Becomes another program; reports when that fails, then nothing of it has run."""
    for number in (SIGPIPE, SIGXFSZ):  # ignored by the interpreter, and that is inherited
        set_signal(number, SIG_DFL)
    set_signal(SIGINT, SIG_DFL)
    argv = job.argv
    # All other descriptors close themselves when the program starts.
    program: int | str = _EXECUTABLE if job.executable else _found(argv[0])
    try:
        os.execve(program, argv, dict(os.environ))  # noqa: S606
    except OSError as error:
        problem = f"{argv[0]} cannot be executed: {error.strerror}"
        if job.executable:  # made from the program's text, which can make it senseless
            _end_without(problem, _NO_PROGRAM)
        _report(problem)
    os._exit(_SETUP_FAILED)


def _found(name: str) -> str:
    if "/" in name:
        return name
    for folder in os.environ.get("PATH", "").split(":"):
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK):
            return path
    return name


def warm_up(folder: str) -> None:
    """Runs the children's code a few times, as far as that changes nothing.

    The interpreter specialises a function's code in its first calls; done here, no child copies
    those
    pages.
    """
    files = (("main.py", b"1", 0o644),)
    fields = BoxJob("", ("a",), files, {}, False, False, 1, 1, False, 1, False, 1)
    job = RUN_NUMBER.pack(1) + marshal.dumps(tuple(fields))
    path = f"{folder}/warm-up.py"
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    for _ in range(20):
        theirs.sendmsg([b"J" + job], [(SOL_SOCKET, SCM_RIGHTS, struct.pack("2i", 0, 1))])
        message, descriptors = _receive(ours)
        _read(message, descriptors)
        for descriptor in descriptors:
            os.dup2(descriptor, descriptor)
            os.close(descriptor)
        lower_common_limits()
        syscalls.set_dumpable(dumpable=False)
        syscalls.close_from(1000)
        write_file(
            path, b"import sys\nfor _ in range(2):\n    print(sorted({1: 'a'}), end='')\n", 0o644
        )
        with open(os.devnull, "w") as sys.stdout:
            script.execute(path, {"__name__": "warm-up"})
        sys.stdout = sys.__stdout__
        set_signal(SIGINT, SIG_IGN)
    os.unlink(path)
    ours.close()
    theirs.close()


def forget_modules() -> None:
    """Hides Assay's own modules from programs; what is loaded stays usable by us."""
    for name in [name for name in sys.modules if name == "assay" or name.startswith("assay.")]:
        del sys.modules[name]
    builtins.__dict__.pop("_", None)
