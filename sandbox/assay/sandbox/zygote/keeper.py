"""The keeper of a family: process 1 of its namespaces, and parent of all that runs in them.

A session, its checkpoints and its forks are branches: each is a process that runs `branch`, with a
user, a mount namespace and folders of its own. The keeper runs no cell. It makes the first branch;
a further one is a copy that a branch makes of itself while the keeper looks on:

    keeper -> branch   b"F" + the marshalled user, with the copy's end of a new line and, for a
                       branch that will run cells, its channel, stdout and stderr
    branch -> keeper   b"N" + what it holds that a copy would lose: there will be no copy
    copy -> keeper     b"C"  it is there; the kernel says who sends it
    copy               raises capabilities, leaves the mounts, takes its user, drops capabilities:
                       each by the keeper's consent (`consent`)
    copy -> keeper     b"U"
    keeper             looks at user and mounts; gives it folders, with a copy of the files
    keeper -> copy     b"M"
    copy -> keeper     b"D"  it is in its folder and has opened its files again; or b"X" + why not
    keeper             looks at all that it holds (`inspection`)
    keeper -> copy     b"G"

The host's requests are marshalled tuples, (number, name, ...), over the control socket, and the
answers JSON, [number, facts]:

    ("copy", user, score)    with channel, stdout, stderr where it runs cells; see "weigh"
                             answer: {"user"}, with descriptors of folder and process;
                             or {"holds": [...]}
    ("kill", user)           answer: {"cpu_s"} when no process of the user is left
    ("weigh", user, score)   how soon the kernel ends it where memory is short
    ("resize", user, bytes)  the size of its folders

and its own words, number 0: {"up"} once the first branch is there, with the same descriptors;
{"gone": user, "status", "cpu_s"} for a branch whose process has ended.

Covered: no branch reads, writes, signals or sees another, or a file of it; whatever a branch does
instead of its part ends as a refusal, its copy killed, within a time-out.
Not covered: what a program does to branches that it copied before it changed its mind: they run its
code. Between the copy's first breath and its new user it may kill its own original.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import struct
import time
from _signal import SIGCHLD, SIGKILL, set_wakeup_fd
from _signal import signal as set_signal
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SO_PASSCRED,
    SOCK_SEQPACKET,
    SOL_SOCKET,
    socket,
    socketpair,
)
from select import POLLIN, poll
from typing import Any, NamedTuple, NoReturn

from assay.sandbox.zygote import branch, inspection, landlock, root, syscalls
from assay.sandbox.zygote.consent import Consent
from assay.sandbox.zygote.folders import Copying
from assay.sandbox.zygote.protocol import descriptors_of, sender_of

GROUP = 1000
FIRST_USER = 1000
_HANDSHAKE_S = 10.0
_PAUSE_S = 0.0003
_LIVE = 1000  # the first to go where memory is short: checkpoints have done nothing to deserve it
_UNRULY = "a session that does not keep to the rules of copying"
_MAX_MESSAGE = 1 << 16
_ANCILLARY = CMSG_SPACE(4 * 8) + CMSG_SPACE(12)
_COPIED = ("box", "tmp", "shm")


class Refused(Exception):
    """There is no copy; `holds` says what stands in the way, for the caller."""

    def __init__(self, holds: list[str]) -> None:
        super().__init__(", ".join(holds))
        self.holds = holds


class Branch(NamedTuple):
    """A branch of the family.

    Attributes:
        process: its main process.
        line: the keeper's end of their line.
        top: its folders' parent, open.
        device: of these folders.
    """

    user: int
    process: int
    line: socket
    top: int
    device: int


class Keeper:
    """Makes, copies and ends the branches of one family."""

    def __init__(
        self,
        settings: dict[str, Any],
        kept: dict[str, str],
        program_filter: syscalls.SeccompFilter,
        given: list[int],
    ) -> None:
        self._settings = settings
        self._kept = kept
        self._filter = program_filter
        self._copies: bool = settings["copies"]
        self._disk_bytes: int = settings["disk_bytes"]
        self._control = socket(fileno=given[0])
        self._first, self._doors = given[1:4], given[4:]
        self._free = list(range(FIRST_USER + settings["users"] - 1, FIRST_USER - 1, -1))
        self._branches: dict[int, Branch] = {}
        self._cpu_s: dict[int, float] = {}  # of a user's processes that have ended
        self._consent: Consent | None = None
        self._own_mounts = -1

    def serve(self) -> NoReturn:
        """Serves until the host is gone."""
        for door in self._doors:  # of its control group, before it has children
            os.write(door, b"0")
            os.close(door)
        self._build()
        wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        set_signal(SIGCHLD, lambda *_: None)
        set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self._say({"here": True})
        if not self._doors and self._control.recv(16) != b"G":
            os._exit(0)
        self._start_first()
        self._waiting = poll()
        for descriptor in (self._control.fileno(), wake):
            self._waiting.register(descriptor, POLLIN)
        if self._consent is not None:
            self._waiting.register(self._consent.listener, POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in self._waiting.poll()}
            if self._consent is not None and self._consent.listener in ready:
                self._consent.answer()
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
                self._reap()
            if self._control.fileno() in ready:
                self._hear()

    def _build(self) -> None:
        syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
        root.mount_proc("/proc")
        self._own_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._rules = None
        if self._settings["landlock"]:
            writable = [root.WRITABLE, "/proc", *map("/dev/{}".format, root.DEVICES)]
            self._rules = landlock.ruleset(["/"], writable, [], sockets=True)

    def _start_first(self) -> None:
        user = self._free.pop() if self._copies else None
        ours, theirs = _line()
        pid = syscalls.fork()
        if pid == 0:
            set_wakeup_fd(-1)
            ours.close()
            self._control.close()
            setup = branch.Setup(
                user=user,
                group=GROUP,
                disk_bytes=self._disk_bytes,
                inodes=self._settings["inodes"],
                kept=self._kept,
                landlock=self._rules,
                filter=self._filter,
                copies=self._copies,
            )
            branch.begin(setup, theirs, self._first)
        theirs.close()
        for descriptor in self._first:
            os.close(descriptor)
        message, ancillary, _, _ = ours.recvmsg(1024, _ANCILLARY, MSG_CMSG_CLOEXEC)
        given = descriptors_of(ancillary)
        if message[:1] != b"L":
            self._say({"failed": message[1:].decode(errors="replace") or "the session died"})
            os._exit(1)
        self._consent = Consent(given.pop(0), self._mains)
        number = user if user is not None else FIRST_USER
        made = Branch(number, pid, ours, given[0], os.fstat(given[0]).st_dev)
        self._add(made)
        self._weigh(number, _LIVE)
        self._tell(0, {"up": number}, made)

    def _hear(self) -> None:
        message, ancillary, _, _ = self._control.recvmsg(_MAX_MESSAGE, _ANCILLARY, MSG_CMSG_CLOEXEC)
        if not message:
            os._exit(0)
        given = descriptors_of(ancillary)
        number, name, *arguments = marshal.loads(message)  # noqa: S302  # the host's
        try:
            if name == "copy":
                made = self._copy(arguments[0], given)
                self._weigh(made.user, arguments[1])
                self._tell(number, {"user": made.user}, made)
            elif name == "kill":
                self._kill(arguments[0])
                self._answer(number, {"cpu_s": self._cpu_s.pop(arguments[0], 0.0)})
                self._free.append(arguments[0])
            elif name == "weigh":
                self._weigh(*arguments)
                self._answer(number, {})
            elif name == "resize":
                self._resize(*arguments)
                self._answer(number, {})
        except Refused as refusal:
            self._answer(number, {"holds": refusal.holds})
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _copy(self, user: int, given: list[int]) -> Branch:
        source = self._branches.get(user)
        if source is None or not self._copies or self._consent is None:
            raise Refused(["a session that has ended"])
        if not self._free:
            raise Refused(["no user is left for a copy"])
        known = self._known()
        try:
            holds = inspection.threads(source.process) + inspection.children(user, known)
        except inspection.Hidden:
            holds = ["a process that hides from us"]
        if holds:
            raise Refused(holds)
        copy_user = self._free.pop()
        ours, theirs = _line()
        inodes = {_inode(descriptor) for descriptor in (theirs.fileno(), *given)}
        order = b"F" + marshal.dumps(copy_user)
        handed = struct.pack(f"{1 + len(given)}i", theirs.fileno(), *given)
        try:
            source.line.sendmsg([order], [(SOL_SOCKET, SCM_RIGHTS, handed)])
            theirs.close()  # the copy's end shows that it lives
            return self._shake_hands(source, copy_user, ours, inodes)
        except BaseException as error:
            ours.close()
            self._kill(copy_user)
            self._free.append(copy_user)
            if isinstance(error, OSError):
                raise Refused(["a session that has ended"]) from None
            raise
        finally:
            self._consent.take_back()
            theirs.close()

    def _shake_hands(
        self, source: Branch, user: int, ours: socket, inodes: set[tuple[int, int]]
    ) -> Branch:
        deadline_s = time.monotonic() + _HANDSHAKE_S
        process = self._await_birth(source, ours, deadline_s)
        consent = self._consent
        assert consent is not None  # `_copy` looked
        consent.give(process, user)
        self._expect(b"U", ours, deadline_s, process)
        consent.take_back()
        self._check_identity(source, process, user)
        top = self._give_folders(source, process, user)
        made = Branch(user, process, ours, top, os.fstat(top).st_dev)
        try:
            ours.send(b"M")
            self._expect(b"D", ours, deadline_s, process)
            self._check_holdings(source, made, inodes)
            ours.send(b"G")
        except OSError:
            os.close(top)
            raise Refused(["a copy that ended at once"]) from None
        except BaseException:
            os.close(top)
            raise
        self._add(made)
        return made

    def _await_birth(self, source: Branch, ours: socket, deadline_s: float) -> int:
        """The copy's process: whoever speaks first on its line."""
        refused = _Waiting(source.line, ours, self._listener())
        while True:
            ready = refused.wait(deadline_s)
            if source.line.fileno() in ready:
                message = source.line.recv(_MAX_MESSAGE)
                raise Refused(_texts(message[1:]) if message[:1] == b"N" else [_UNRULY])
            if ours.fileno() in ready:
                message, ancillary, _, _ = ours.recvmsg(_MAX_MESSAGE, _ANCILLARY)
                process = sender_of(ancillary)
                _close_all(ancillary)
                if message != b"C" or process in {0, os.getpid()} | self._known():
                    raise Refused([_UNRULY])
                return process
            self._consent_to_waiting(ready)

    def _expect(self, word: bytes, ours: socket, deadline_s: float, process: int) -> None:
        waiting = _Waiting(ours, self._listener())
        while True:
            ready = waiting.wait(deadline_s)
            if self._listener() in ready:
                self._consent_to_waiting(ready)
            elif ours.fileno() in ready:
                message, ancillary, _, _ = ours.recvmsg(_MAX_MESSAGE, _ANCILLARY)
                _close_all(ancillary)
                if message[:1] == b"X":
                    raise Refused(_texts(message[1:]))
                if message != word or sender_of(ancillary) != process:
                    raise Refused([_UNRULY])
                return

    def _listener(self) -> int:
        return -1 if self._consent is None else self._consent.listener

    def _consent_to_waiting(self, ready: set[int]) -> None:
        if self._consent is not None and self._consent.listener in ready:
            self._consent.answer()

    def _check_identity(self, source: Branch, process: int, user: int) -> None:
        try:
            status = inspection.status_of(process)
            own_mounts = (
                os.stat(f"/proc/{process}/ns/mnt").st_ino
                != os.stat(f"/proc/{source.process}/ns/mnt").st_ino
            )
        except (inspection.Hidden, OSError):
            raise Refused([_UNRULY]) from None
        alone = status.get("PPid") == str(os.getpid()) and status.get("Threads") == "1"
        users = status.get("Uid", "").split() == [str(user)] * 4
        bare = all(int(status.get(name, "1"), 16) == 0 for name in ("CapEff", "CapInh", "CapAmb"))
        helpers = any(owner == user for pid, owner, _ in self._strangers() if pid != process)
        if not (alone and users and bare and own_mounts) or helpers:
            raise Refused([_UNRULY])

    def _check_holdings(self, source: Branch, made: Branch, inodes: set[tuple[int, int]]) -> None:
        allowed = inspection.Allowed(inodes, made.device)
        try:
            holds = [
                *inspection.threads(made.process),
                *inspection.descriptors(made.process, allowed),
                *inspection.working_folder(made.process, allowed),
                *inspection.mappings(made.process, source.device),
            ]
            helpers = [
                name
                for pid, owner, name in self._strangers()
                if owner in {source.user, made.user} and pid != made.process
            ]
        except inspection.Hidden:
            holds, helpers = ["a process that hides from us"], []
        holds += [f"a child process ({name})" for name in helpers]
        if holds:
            raise Refused(holds)

    def _give_folders(self, source: Branch, process: int, user: int) -> int:
        """Mounts folders in the copy's mount namespace, and fills them; their parent, open."""
        try:
            mounts = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise Refused([_UNRULY]) from None
        try:
            syscalls.enter_namespace(mounts, syscalls.CLONE_NEWNS)
            try:
                top = root.fresh_folders(
                    self._disk_bytes, self._settings["inodes"], user, GROUP, self._kept
                )
            finally:
                syscalls.enter_namespace(self._own_mounts, syscalls.CLONE_NEWNS)
        except OSError as error:
            raise Refused([f"folders that cannot be made ({error.strerror})"]) from None
        finally:
            os.close(mounts)
        copying = Copying(user, GROUP)
        try:
            for name in _COPIED:
                self._copy_folder(copying, source.top, top, name)
        except OSError as error:
            os.close(top)
            raise Refused([f"files that cannot be copied ({error.strerror})"]) from None
        finally:
            copying.close()
        return top

    def _copy_folder(self, copying: Copying, source: int, target: int, name: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        here, there = (os.open(name, flags, dir_fd=top) for top in (source, target))
        try:
            copying.folder(here, there, skip=self._kept_names(name))
        finally:
            os.close(here)
            os.close(there)

    def _kept_names(self, folder: str) -> set[str]:
        prefix = f"{root.SCRATCH}/{folder}/"
        return {
            target.removeprefix(prefix)
            for target in self._kept.values()
            if target.startswith(prefix)
        }

    def _weigh(self, user: int, score: int) -> None:
        found = self._branches.get(user)
        if found is not None:
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{found.process}/oom_score_adj", "w") as f,
            ):
                f.write(str(score))

    def _resize(self, user: int, size_bytes: int) -> None:
        self._disk_bytes = size_bytes
        found = self._branches.get(user)
        if found is None:
            return
        with contextlib.suppress(OSError):
            mounts = os.open(f"/proc/{found.process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            try:
                syscalls.enter_namespace(mounts, syscalls.CLONE_NEWNS)
                try:
                    root.resize_scratch(size_bytes)
                finally:
                    syscalls.enter_namespace(self._own_mounts, syscalls.CLONE_NEWNS)
            finally:
                os.close(mounts)

    def _kill(self, user: int) -> None:
        """Ends every process of a user, and reaps them."""
        found = self._branches.pop(user, None)
        if found is not None:
            found.line.close()
            os.close(found.top)
        deadline_s = time.monotonic() + _HANDSHAKE_S
        self._kill_processes(user)
        self._reap()
        while any(owner == user for _, owner, _ in self._strangers()):
            if time.monotonic() > deadline_s:
                return
            time.sleep(_PAUSE_S)
            self._kill_processes(user)
            self._reap()

    def _kill_processes(self, user: int) -> None:
        if self._copies:
            syscalls.kill_user(user)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, SIGKILL)

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            _, status, usage = os.wait4(found.si_pid, 0)
            user = found.si_uid if self._copies else FIRST_USER
            cpu_s = self._cpu_s.get(user, 0.0) + usage.ru_utime + usage.ru_stime
            self._cpu_s[user] = cpu_s
            ended = self._branches.get(user)
            if ended is not None and ended.process == found.si_pid:
                self._kill_processes(user)
                self._say({"gone": user, "status": status, "cpu_s": cpu_s})

    def _add(self, made: Branch) -> None:
        self._branches[made.user] = made
        self._cpu_s[made.user] = 0.0

    def _mains(self) -> list[int]:
        return [known.process for known in self._branches.values()]

    def _known(self) -> set[int]:
        return {os.getpid(), *self._mains()}

    def _strangers(self) -> list[tuple[int, int, str]]:
        return inspection.strangers(self._known())

    def _say(self, facts: dict[str, Any]) -> None:
        self._answer(0, facts)

    def _answer(self, number: int, facts: dict[str, Any]) -> None:
        try:
            self._control.send(_json([number, facts]))
        except OSError:
            os._exit(0)

    def _tell(self, number: int, facts: dict[str, Any], made: Branch) -> None:
        """Answers with the descriptors of a branch's working directory and process."""
        process = os.pidfd_open(made.process)
        box = os.open("box", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=made.top)
        try:
            rights = struct.pack("2i", box, process)
            self._control.sendmsg([_json([number, facts])], [(SOL_SOCKET, SCM_RIGHTS, rights)])
        except OSError:
            os._exit(0)
        finally:
            os.close(process)
            os.close(box)


class _Waiting:
    """Waits for any of several sources, until a deadline."""

    def __init__(self, *sources: socket | int) -> None:
        self._poll = poll()
        for source in sources:
            descriptor = source if isinstance(source, int) else source.fileno()
            if descriptor >= 0:
                self._poll.register(descriptor, POLLIN)

    def wait(self, deadline_s: float) -> set[int]:
        """The sources that have something.

        Raises:
            Refused: the deadline has passed.
        """
        left_ms = (deadline_s - time.monotonic()) * 1e3
        ready = {descriptor for descriptor, _ in self._poll.poll(left_ms)} if left_ms > 0 else set()
        if not ready:
            raise Refused(["a session that does not answer"])
        return ready


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _line() -> tuple[socket, socket]:
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
    return ours, theirs


def _inode(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _texts(message: bytes) -> list[str]:
    """What a branch says of itself: hostile, so it is cut and made plain."""
    text = message[:4000].decode("utf-8", "replace")
    return ["".join(filter(str.isprintable, line))[:200] for line in text.split("\n") if line][:16]


def _close_all(ancillary: list[tuple[int, int, bytes]]) -> None:
    for descriptor in descriptors_of(ancillary):
        os.close(descriptor)
