"""The keeper of a family: process 1 of its namespaces, and parent of all that runs in them.

A session, its checkpoints and its forks are branches: each is a process that runs `branch`, with a
user, a mount namespace and folders of its own. The keeper runs no cell. It makes the first branch;
a further one is a copy that a branch makes of itself while the keeper looks on (`copier`).

The host's requests are marshalled tuples, (number, name, ...), over the control socket, and the
answers JSON, [number, facts]:

    ("copy", user, n)        n copies, which run cells where channel, stdout, stderr of each come
                             along
                             answer: {"users"}, with descriptors of folder and process of each;
                             or {"holds": [...]}
    ("kill", user)           answer: {"cpu_s"} when no process of the user is left
    ("resize", user, bytes)  the size of its folders

and its own words, number 0: {"up"} once the first branch is there, with the same descriptors;
{"gone": user, "status", "cpu_s", "peak_bytes", "over"} for a branch whose main process has ended;
"over": at a limit of CPU time that may be its own.

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
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SCM_RIGHTS,
    SOL_SOCKET,
    socket,
)
from select import POLLIN, poll
from typing import Any, NoReturn

from assay.sandbox.zygote import branch, inspection, landlock, root, syscalls
from assay.sandbox.zygote.consent import Consent
from assay.sandbox.zygote.copier import (
    GROUP,
    CannotCopy,
    Copier,
    FamilyBranch,
    FamilyFacts,
    inode_of,
    line_pair,
)
from assay.sandbox.zygote.protocol import descriptors_of

FIRST_USER = 1000
_DYING_S = 10.0
_PAUSE_S = 0.0003
_CPU_SLACK_S = 0.5  # the kernel counts by ticks
_MAX_MESSAGE = 1 << 16
_ANCILLARY = CMSG_SPACE(4 * 64)


class FamilyKeeper:
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
        self._branches: dict[int, FamilyBranch] = {}
        self._orders = 0
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
        self._processes = root.open_processes()
        root.mount_proc("/proc")
        self._own_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._rules = None
        if self._settings["landlock"]:
            # Not /proc: what the kernel ends first where memory is short is not theirs to say.
            writable = [root.WRITABLE, *map("/dev/{}".format, root.DEVICES)]
            self._rules = landlock.ruleset(["/"], writable, [], sockets=True)

    def _start_first(self) -> None:
        user = self._free.pop() if self._copies else None
        ours, theirs = line_pair()
        pid = syscalls.fork()
        if pid == 0:
            set_wakeup_fd(-1)
            ours.close()
            self._control.close()
            setup = branch.BranchSetup(
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
        inodes = {inode_of(descriptor) for descriptor in (theirs.fileno(), *self._first)}
        theirs.close()
        for descriptor in self._first:
            os.close(descriptor)
        message, ancillary, _, _ = ours.recvmsg(1024, _ANCILLARY, MSG_CMSG_CLOEXEC)
        given = descriptors_of(ancillary)
        if message[:1] != b"L":
            self._say({"failed": message[1:].decode(errors="replace") or "the session died"})
            os._exit(1)
        self._consent = Consent(given.pop(0), self._processes, self._mains)
        self._family = FamilyFacts(
            *(self._consent, self._processes, self._own_mounts, self._kept),
            *(self._disk_bytes, self._settings["inodes"]),
        )
        number = user if user is not None else FIRST_USER
        made = FamilyBranch(number, pid, ours, given[0], os.fstat(given[0]).st_dev, inodes)
        self._add(made)
        self._tell(0, {"up": number}, [made])

    def _hear(self) -> None:
        message, ancillary, _, _ = self._control.recvmsg(_MAX_MESSAGE, _ANCILLARY, MSG_CMSG_CLOEXEC)
        if not message:
            os._exit(0)
        given = descriptors_of(ancillary)
        number, name, *arguments = marshal.loads(message)  # noqa: S302  # the host's
        try:
            if name == "copy":
                user, count = arguments
                made = self._copy(user, given, count)
                self._tell(number, {"users": [copy.user for copy in made]}, made)
            elif name == "kill":
                self._kill(arguments[0])
                self._answer(number, {"cpu_s": self._cpu_s.pop(arguments[0], 0.0)})
                self._free.append(arguments[0])
            elif name == "resize":
                self._resize(*arguments)
                self._answer(number, {})
        except CannotCopy as refusal:
            self._answer(number, {"holds": refusal.holds})
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _copy(self, user: int, given: list[int], count: int) -> list[FamilyBranch]:
        source = self._branches.get(user)
        if source is None or not self._copies:
            raise CannotCopy(["a session that has ended"])
        if len(self._free) < count:
            raise CannotCopy(["no user is left for a copy"])
        users = [self._free.pop() for _ in range(count)]
        handed = [given[place * 3 : place * 3 + 3] for place in range(count)]
        self._orders += 1
        copier = Copier(self._family, source, self._known(), self._orders)
        try:
            made = copier.make(users, handed)
        except BaseException as error:
            for copy_user in users:
                self._kill(copy_user)
                self._free.append(copy_user)
            if isinstance(error, OSError):
                raise CannotCopy(["a session that has ended"]) from None
            raise
        for copy in made:
            self._add(copy)
        return made

    def _resize(self, user: int, size_bytes: int) -> None:
        self._family = self._family._replace(disk_bytes=size_bytes)
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
        deadline_s = time.monotonic() + _DYING_S
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
            user = found.si_uid if self._copies else FIRST_USER
            ended = self._branches.get(user)
            is_main = ended is not None and ended.process == found.si_pid
            cpu_limit_s = inspection.cpu_limit_s(self._processes, found.si_pid) if is_main else 0.0
            _, status, usage = os.wait4(found.si_pid, 0)
            cpu_s = self._cpu_s.get(user, 0.0) + usage.ru_utime + usage.ru_stime
            self._cpu_s[user] = cpu_s
            if is_main:
                self._kill_processes(user)
                own_s = usage.ru_utime + usage.ru_stime
                over = own_s > cpu_limit_s - _CPU_SLACK_S
                facts = {"status": status, "cpu_s": cpu_s, "peak_bytes": usage.ru_maxrss * 1024}
                self._say({"gone": user, **facts, "over": over})

    def _add(self, made: FamilyBranch) -> None:
        self._branches[made.user] = made
        self._cpu_s[made.user] = 0.0

    def _mains(self) -> list[int]:
        return [known.process for known in self._branches.values()]

    def _known(self) -> set[int]:
        return {os.getpid(), *self._mains()}

    def _strangers(self) -> list[tuple[int, int, str]]:
        return inspection.strangers(self._processes, self._known())

    def _say(self, facts: dict[str, Any]) -> None:
        self._answer(0, facts)

    def _answer(self, number: int, facts: dict[str, Any]) -> None:
        try:
            self._control.send(_json([number, facts]))
        except OSError:
            os._exit(0)

    def _tell(self, number: int, facts: dict[str, Any], made: list[FamilyBranch]) -> None:
        """Answers with the descriptors of each branch's working directory and process."""
        given: list[int] = []
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            for copy in made:
                given.append(os.open("box", flags, dir_fd=copy.top))
                given.append(os.pidfd_open(copy.process))
            rights = struct.pack(f"{len(given)}i", *given)
            self._control.sendmsg([_json([number, facts])], [(SOL_SOCKET, SCM_RIGHTS, rights)])
        except OSError:
            os._exit(0)
        finally:
            for descriptor in given:
                os.close(descriptor)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
