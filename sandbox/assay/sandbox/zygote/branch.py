"""A branch of a session's family: runs cells, and copies itself when its keeper asks.

It is the program's own process: whatever it says is the program's claim, and host and keeper read
it so. Frames over the channel are those of `harness.frames`; each request has a tag of its own, and
so has what answers it:

    host -> branch   B  begin: marshalled (language, environment, limits); answered b
                     X  a cell: marshalled (number, code)
                     P  files: marshalled [(path, content, mode)]; answered p + why not, or nothing
                     S  another random state: marshalled number; answered s
    branch -> host   V  the cell shows something: a bundle by `harness.codec`
                     R  the cell has ended: nothing for one that completed without a value; else an
                        `CellOutcome` as a list, its error's texts as bytes, by `harness.codec`

A checkpoint is a branch without a channel: it waits to be copied.

Covered: user, capabilities, no-new-privileges, Landlock, seccomp, rlimits, descriptors and folders
of the first branch, before any code of the program has run; its copies inherit or take them.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import resource
import struct
import sys
from _signal import (
    SIG_DFL,
    SIGCHLD,
    SIGHUP,
    SIGINT,
    default_int_handler,
    set_wakeup_fd,
)
from _signal import signal as set_signal
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET, socket
from collections.abc import Callable
from errno import EDQUOT, EFBIG, ENOSPC
from select import POLLIN, poll
from typing import Any, NamedTuple, NoReturn

from assay.sandbox.harness import cells, shell
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.frames import Channel
from assay.sandbox.harness.interpreters import Bundle, CellOutcome, Interpreter
from assay.sandbox.harness.references import CodecError
from assay.sandbox.zygote import child, root, syscalls
from assay.sandbox.zygote.protocol import descriptors_of

CHANNEL, LINE = 1000, 1001
_OPEN_FILES = 1000  # the program's; above are ours, and room for what a copy is handed
_MOST_FILES = 1024
_MAX_MESSAGE = 1 << 16
_MAX_VALUE = 3 * 2**20
_SETUID, _SYS_ADMIN = 1 << 7, 1 << 21
_COPYING = _SETUID | _SYS_ADMIN
_NO_CREATION = ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC)

_LANGUAGES: dict[str, Callable[[], Interpreter]] = {
    "python": cells.PythonCells,
    "bash": shell.BashShell,
}


class BranchSetup(NamedTuple):
    """What confines the first branch of a family.

    Attributes:
        user: None: the keeper's own.
        kept: as `root.show_kept` takes it.
        landlock: descriptor of the ruleset; None where the kernel has none.
        copies: it may be copied, so it keeps the right to be given another user and mounts.
    """

    user: int | None
    group: int
    disk_bytes: int
    inodes: int
    kept: dict[str, str]
    landlock: int | None
    filter: syscalls.SeccompFilter
    copies: bool


def begin(setup: BranchSetup, line: socket, given: list[int]) -> NoReturn:
    """Confines this process and serves; `given` are its channel, stdout and stderr."""
    code = 254
    try:
        try:
            _confine(setup, line, given)
        except BaseException as error:  # noqa: BLE001 - the fault boundary: our own failure, reported
            line.send(b"X" + f"{type(error).__name__}: {error}".encode()[:1000])
            os._exit(code)
        server = _Server(runs=True)
        server.prepare()
        server.serve()
    finally:
        os._exit(code)


def _confine(setup: BranchSetup, line: socket, given: list[int]) -> None:
    child.lower_common_limits()
    set_wakeup_fd(-1)
    set_signal(SIGCHLD, SIG_DFL)
    set_signal(SIGHUP, SIG_DFL)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    top = root.fresh_folders(setup.disk_bytes, setup.inodes, setup.user, setup.group, setup.kept)
    os.chdir(f"{root.SCRATCH}/box")
    os.environ.update(HOME=f"{root.SCRATCH}/box", TMPDIR=root.TMP_LINK)
    _plumb(line.fileno(), given)
    kept = [top]
    if setup.copies:
        assert setup.user is not None  # `copies` needs users
        syscalls.keep_capabilities()
        os.setgroups([])
        os.setresgid(setup.group, setup.group, setup.group)
        os.setresuid(setup.user, setup.user, setup.user)
        syscalls.set_capabilities(permitted=_COPYING, effective=0)
    else:
        syscalls.drop_capabilities()
    syscalls.set_dumpable(dumpable=True)  # its own /proc/self is its own to read
    if setup.landlock is not None:
        syscalls.landlock_restrict(setup.landlock)
    kept.insert(0, setup.filter.install_and_listen())
    rights = struct.pack(f"{len(kept)}i", *kept)
    line.sendmsg([b"L"], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    line.detach()
    syscalls.close_from(LINE + 1)
    os.closerange(3, CHANNEL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _MOST_FILES))


def _plumb(line: int, given: list[int]) -> None:
    """Puts line, channel, stdout and stderr where they belong."""
    os.dup2(line, LINE, inheritable=False)
    if given:
        channel, out, err = given
        os.dup2(channel, CHANNEL, inheritable=False)
        os.dup2(out, 1)
        os.dup2(err, 2)


def _allow_files() -> tuple[int, int]:
    """Makes room for our own descriptors; the limits that were in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard


class _Server:
    """Serves channel and line until either is closed. `runs`: it has a channel."""

    def __init__(self, *, runs: bool) -> None:
        self._line = socket(fileno=LINE)
        self._interpreter: Interpreter | None = None
        self._prepared: Interpreter | None = None
        self._tag = b""
        self._running = False
        self._handed: list[int] = []  # what copies are given
        self._attach(runs=runs)

    def _attach(self, *, runs: bool) -> None:
        self._waiting = poll()
        self._waiting.register(LINE, POLLIN)
        self._channel = Channel(CHANNEL) if runs else None
        if runs:
            self._waiting.register(CHANNEL, POLLIN)

    def prepare(self) -> None:
        """Makes the usual interpreter and runs a cell, so that their pages are its own ahead."""
        self._prepared = _LANGUAGES["python"]()
        _packed(self._prepared.run("1", 0, self._show))
        builtins.__dict__.pop("_", None)

    def serve(self) -> NoReturn:
        set_signal(SIGINT, self._interrupt)
        gc.enable()
        # What the program replaces in its modules must not replace it here.
        wait = self._waiting.poll
        while True:
            ready = [descriptor for descriptor, _ in wait()]
            if LINE in ready:
                self._copy()
                wait = self._waiting.poll
            elif self._channel is not None:
                frame = self._channel.receive()
                self._tag = frame.tag
                self._answer(frame.kind, frame.content)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._running:
            default_int_handler(number, frame)

    def _answer(self, kind: bytes, content: bytes) -> None:
        channel = self._channel
        assert channel is not None  # it brought the frame
        request = marshal.loads(content)  # noqa: S302  # the host's
        if kind == b"X":
            channel.send(b"R", self._run(*request), self._tag)
        elif kind == b"P":
            channel.send(b"p", _write_files(request).encode(), self._tag)
        elif kind == b"B":
            self._begin(*request)
            channel.send(b"b", b"", self._tag)
        elif kind == b"S":
            if self._interpreter is not None:
                self._interpreter.reseed(request)
            channel.send(b"s", b"", self._tag)

    def _begin(self, language: str, environment: dict[str, str], limits: dict[str, int]) -> None:
        for name, value in limits.items():
            kind = getattr(resource, name)
            _, hard = resource.getrlimit(kind)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
        os.environ.update(environment)
        usual = self._prepared if language == "python" else None
        self._interpreter = usual or _LANGUAGES[language]()
        self._prepared = None

    def _run(self, number: int, code: str) -> bytes:
        interpreter = self._interpreter
        assert interpreter is not None  # the host begins first
        try:
            self._running = True
            outcome = interpreter.run(code, number, self._show)
        except KeyboardInterrupt:  # it came as the cell ended
            outcome = CellOutcome("interrupted")
        finally:
            self._running = False
        return _packed(outcome)

    def _show(self, bundle: Bundle) -> None:
        channel = self._channel
        if channel is not None:
            channel.send(b"V", encode(dict(bundle)), self._tag)

    def _copy(self) -> None:
        """Copies this process, unless it holds what the copy would lose."""
        files = _allow_files()
        message, ancillary, _, _ = self._line.recvmsg(
            _MAX_MESSAGE, CMSG_SPACE(4 * 64), MSG_CMSG_CLOEXEC
        )
        if not message:
            os._exit(0)
        number, packed = message[1:5], message[5:]
        users = marshal.loads(packed)  # noqa: S302  # the keeper's
        self._handed = descriptors_of(ancillary)
        each = len(self._handed) // len(users)
        try:
            holds, folder, opened = self._look(each)
        except Exception as error:  # noqa: BLE001 - the program may have broken what we call
            holds = [f"an interpreter that cannot be copied ({type(error).__name__})"]
        if not holds:
            for place, user in enumerate(users):
                given = self._handed[place * each : (place + 1) * each]
                if self._split(user, given, folder, opened):
                    resource.setrlimit(resource.RLIMIT_NOFILE, files)
                    return
            if self._interpreter is not None:
                self._interpreter.after_copy(is_copy=False)
        self._close_handed()
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        texts = "\n".join(holds).encode("utf-8", "replace")[:4000]
        self._line.send((b"N" if holds else b"K") + number + texts)

    def _close_handed(self) -> None:
        for descriptor in self._handed:
            os.close(descriptor)
        self._handed = []

    def _look(self, each: int) -> tuple[list[str], str, list[_OpenFile]]:
        """What stands in the way of a copy, and what it begins with; it may begin at once."""
        holds = self._interpreter.holds() if self._interpreter is not None else []
        folder = ""
        try:
            folder = os.getcwd()
        except OSError:
            holds.append("a working directory that is gone")
        if each not in {1, 4}:
            holds.append("open files up to the limit")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < _MOST_FILES:
            holds.append("a limit of open files that leaves no room for ours")
        if not holds and self._interpreter is not None:
            self._interpreter.before_copy()
        return holds, folder, _opened(self._handed)

    def _split(self, user: int, given: list[int], folder: str, opened: list[_OpenFile]) -> bool:
        """Whether this is the copy, which has become one."""
        is_copy = syscalls.clone_sibling() == 0
        if is_copy:
            self._become(user, given, folder, opened)
            if self._interpreter is not None:
                self._interpreter.after_copy(is_copy=True)
        return is_copy

    def _become(self, user: int, given: list[int], folder: str, opened: list[_OpenFile]) -> None:
        """The copy's part; its keeper's part is in `copier`."""
        line = socket(fileno=os.dup(given[0]))
        line.send(b"C")
        syscalls.set_capabilities(permitted=_COPYING, effective=_COPYING)
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
        os.setresuid(user, user, user)
        syscalls.set_capabilities(permitted=_COPYING, effective=0)
        syscalls.set_dumpable(dumpable=True)
        line.send(b"U")
        if line.recv(16) != b"M":
            os._exit(1)
        try:
            os.chdir(folder)
            for number, path, flags, place in opened:
                again = os.open(path, flags & _NO_CREATION)
                os.lseek(again, place, os.SEEK_SET) if place else None
                os.dup2(again, number, inheritable=not flags & os.O_CLOEXEC)
                os.close(again)
        except OSError as error:
            text = f"an open file that cannot be opened again ({error.strerror})"
            line.send(b"X" + text.encode())
            os._exit(1)
        self._line.detach()
        runs = len(given) > 1
        _plumb(line.fileno(), given[1:])
        if not runs:
            if self._channel is not None:
                os.close(CHANNEL)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os.close(nothing)
        self._close_handed()
        line.send(b"D")
        if line.recv(16) != b"G":
            os._exit(1)
        line.close()
        self._line = socket(fileno=LINE)
        self._attach(runs=runs)


def _packed(outcome: CellOutcome) -> bytes:
    end, code, value, plain, error = outcome
    if end == "completed" and not code and value is None:
        return b""
    # As bytes: a text may hold any number of what the host counts before it decodes.
    texts = [text.encode("utf-8", "backslashreplace") for text in error or ()]
    try:
        packed = encode([end, code, dict(value) if value else None, plain, texts])
    except CodecError:
        packed = b""
    if not 0 < len(packed) <= _MAX_VALUE:
        text = "its value is too large to be shown"
        packed = encode([end, code, {"text/plain": text.encode()}, b"", texts])
    return packed


def _write_files(files: list[tuple[str, bytes, int]]) -> str:
    """Writes files; why it could not, or nothing."""
    for path, content, mode in files:
        try:
            child.write_file(path, content, mode)
        except OSError as error:
            full = error.errno in {ENOSPC, EDQUOT, EFBIG}
            return f"{'full' if full else 'path'}:{path}: {error.strerror}"
    return ""


class _OpenFile(NamedTuple):
    """A file that a copy opens again."""

    number: int
    path: str
    flags: int
    place: int


def _opened(given: list[int]) -> list[_OpenFile]:
    ours = {0, 1, 2, CHANNEL, LINE, *given}
    found = []
    for entry in os.listdir("/proc/self/fd"):
        number = int(entry)
        if number in ours:
            continue
        try:
            path = os.readlink(f"/proc/self/fd/{entry}")
            if not path.startswith("/") or path.startswith("/dev/") or path.endswith(" (deleted)"):
                continue
            flags = place = 0
            with open(f"/proc/self/fdinfo/{entry}") as file:
                for line in file:
                    if line.startswith("flags:"):
                        flags = int(line.split()[1], 8)
                    elif line.startswith("pos:"):
                        place = int(line.split()[1])
        except OSError:
            continue  # the descriptor of the listing itself
        found.append(_OpenFile(number, path, flags, place))
    return found


def warm_up() -> None:
    """Loads and runs once what every session would pay for, as far as that changes nothing."""
    for module in (cells, shell):
        getattr(module, "warm_up", lambda: None)()
    builtins.__dict__.pop("_", None)
    sys.stdout.flush()
