"""Copies a branch of a family: the keeper's part of what `branch` does in the copy.

    keeper -> branch   b"F" + the copy's marshalled user, with the copy's end of a new line and, for
                       one that will run cells, its channel, stdout and stderr
    branch -> keeper   b"N" + what it holds that a copy would lose: there will be no copy;
                       or b"K" once it has split and closed what was the copy's
    copy -> keeper     b"C"  it is there; the kernel says who sends it
    copy               raises capabilities, leaves mounts and network, takes its user, drops
                       capabilities: each by the keeper's consent (`consent`)
    copy -> keeper     b"U"
    keeper             looks at user and mounts; gives it folders, with a copy of the files
    keeper -> copy     b"M"
    copy -> keeper     b"D"  it is in its folder and has opened its files again; or b"X" + why not
    keeper             looks at all that it holds (`inspection`)
    keeper -> copy     b"G"

While the keeper works for one copy, the branch makes the next. In the end the branch itself is
looked at: it may have kept a way into a copy from the moment in which they had one user.

Covered: whatever branch and copy do instead of their parts ends as a refusal within a time-out.
"""

from __future__ import annotations

import marshal
import os
import struct
import time
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
from collections.abc import Sequence
from select import POLLIN, poll
from typing import NamedTuple, NoReturn

from assay.sandbox.zygote import inspection, root, syscalls
from assay.sandbox.zygote.consent import Consent
from assay.sandbox.zygote.folders import Copying
from assay.sandbox.zygote.protocol import descriptors_of, sender_of

GROUP = 1000
_HANDSHAKE_S = 10.0
_MAX_MESSAGE = 1 << 13
_ANCILLARY = CMSG_SPACE(4 * 8) + CMSG_SPACE(12)
_COPIED = ("box", "tmp", "shm")
_UNRULY = "a session that does not keep to the rules of copying"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CannotCopy(Exception):
    """There is no copy; `holds` says what stands in the way, for the caller."""

    def __init__(self, holds: list[str]) -> None:
        super().__init__(", ".join(holds))
        self.holds = list(dict.fromkeys(holds))


class FamilyBranch(NamedTuple):
    """A branch of the family.

    Attributes:
        process: its main process.
        line: the keeper's end of their line.
        top: its folders' parent, open.
        device: of these folders.
        inodes: of the sockets and pipes that it was given.
    """

    user: int
    process: int
    line: socket
    top: int
    device: int
    inodes: set[tuple[int, int]]


class FamilyFacts(NamedTuple):
    """What copies of a family have in common.

    Attributes:
        processes: a folder of all of them, also of those that hide.
        own_mounts: the keeper's mount namespace.
        kept: as `root.show_kept` takes it.
        disk_bytes, inodes: size of a branch's folders.
    """

    consent: Consent
    processes: int
    own_mounts: int
    kept: dict[str, str]
    disk_bytes: int
    inodes: int


class _Birth:
    """A copy that was asked for."""

    def __init__(self, user: int, line: socket, inodes: set[tuple[int, int]]) -> None:
        self.user = user
        self.line = line
        self.inodes = inodes
        self.process = 0
        self.deadline_s = time.monotonic() + _HANDSHAKE_S


class Copier:
    """Makes copies of one branch, in one go."""

    def __init__(self, family: FamilyFacts, source: FamilyBranch, known: set[int]) -> None:
        self._family = family
        self._source = source
        self._known = known
        self._split = 0  # how often the source has said that it split

    def make(self, users: Sequence[int], handed: Sequence[list[int]]) -> list[FamilyBranch]:
        """One copy for each user; `handed` are channel, stdout and stderr of each, or nothing.

        Raises:
            CannotCopy: none was made; processes of the users may be left.
            OSError: the source has ended.
        """
        self._check_threads()
        made: list[FamilyBranch] = []
        births: list[_Birth] = []
        try:
            births.append(self._order(users[0], handed[0]))
            for place in range(len(users)):
                birth = births[place]
                self._settle_identity(birth)
                if place + 1 < len(users):
                    births.append(self._order(users[place + 1], handed[place + 1]))
                made.append(self._settle_holdings(birth, births[place + 1 :]))
            self._await_split(len(users), births[-1].deadline_s)
            self._check_source()
        except BaseException:
            for copy in made:
                os.close(copy.top)
            for birth in births:
                birth.line.close()
            raise
        finally:
            self._family.consent.take_back()
        return made

    def _check_threads(self) -> None:
        """Before all else: a copy of one thread of several may hold the others' locks."""
        try:
            holds = inspection.threads(self._source.process)
        except inspection.Hidden:
            holds = ["a process that hides from us"]
        if holds:
            raise CannotCopy([*holds, *self._source_holds()])

    def _order(self, user: int, handed: list[int]) -> _Birth:
        ours, theirs = line_pair()
        try:
            inodes = {inode_of(descriptor) for descriptor in (theirs.fileno(), *handed)}
            rights = struct.pack(f"{1 + len(handed)}i", theirs.fileno(), *handed)
            message = b"F" + marshal.dumps(user)
            self._source.line.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, rights)])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()  # the copy's end shows that it lives
        return _Birth(user, ours, inodes)

    def _settle_identity(self, birth: _Birth) -> None:
        """Until the copy has its own user and mounts."""
        self._await_birth(birth)
        consent = self._family.consent
        consent.give(birth.process, birth.user)
        self._expect(b"U", birth, consenting=True)
        consent.take_back()
        self._check_identity(birth)

    def _settle_holdings(self, birth: _Birth, later: list[_Birth]) -> FamilyBranch:
        """Until the copy has its own folders, and nothing of another's."""
        top = self._give_folders(birth)
        try:
            made = FamilyBranch(
                birth.user, birth.process, birth.line, top, os.fstat(top).st_dev, birth.inodes
            )
            birth.line.send(b"M")
            self._expect(b"D", birth, consenting=False)
            for other in later:
                self._await_birth(other)
            self._check_holdings(made, {other.process for other in later})
            birth.line.send(b"G")
        except BaseException:
            os.close(top)
            raise
        self._known.add(made.process)
        return made

    def _await_birth(self, birth: _Birth) -> None:
        """Learns the copy's process: whoever speaks first on its line."""
        if birth.process:
            return
        consent = self._family.consent
        waiting = _Waiting(self._source.line, birth.line, consent.listener)
        while not birth.process:
            ready = waiting.wait(birth.deadline_s)
            if self._source.line.fileno() in ready:
                self._hear_source()
            elif birth.line.fileno() not in ready:
                consent.answer()  # of the source: a copy speaks before it calls
            if birth.line.fileno() in ready:
                message, process = _receive(birth.line)
                if not message:  # nobody holds the other end: the source says why
                    self._hear_refusal(birth.deadline_s)
                if message != b"C" or process in {0, os.getpid()} | self._known:
                    raise CannotCopy([_UNRULY])
                birth.process = process

    def _hear_refusal(self, deadline_s: float) -> NoReturn:
        self._await_split(self._split + 1, deadline_s)
        raise CannotCopy(["a copy that ended at once"])

    def _hear_source(self) -> None:
        message, _ = _receive(self._source.line)
        if message[:1] == b"N":
            raise CannotCopy([*_texts(message[1:]), *self._source_holds()])
        if message != b"K":
            raise CannotCopy([_UNRULY if message else "a session that has ended"])
        self._split += 1

    def _await_split(self, count: int, deadline_s: float) -> None:
        consent = self._family.consent
        waiting = _Waiting(self._source.line, consent.listener)
        while self._split < count:
            if consent.listener in waiting.wait(deadline_s):
                consent.answer()
            else:
                self._hear_source()

    def _expect(self, word: bytes, birth: _Birth, *, consenting: bool) -> None:
        """Waits for a word of the copy; `consenting`: the family's calls are answered meanwhile."""
        consent = self._family.consent
        waiting = _Waiting(birth.line, *([consent.listener] if consenting else []))
        while True:
            ready = waiting.wait(birth.deadline_s)
            if birth.line.fileno() in ready:
                message, process = _receive(birth.line)
                if message[:1] == b"X":
                    raise CannotCopy(_texts(message[1:]))
                if message != word or process != birth.process:
                    raise CannotCopy([_UNRULY if message else "a copy that ended at once"])
                return
            consent.answer()

    def _check_identity(self, birth: _Birth) -> None:
        try:
            status = inspection.status_of(birth.process)
            shared = any(
                os.stat(f"/proc/{birth.process}/ns/{kind}").st_ino
                == os.stat(f"/proc/{self._source.process}/ns/{kind}").st_ino
                for kind in ("mnt", "net")
            )
        except (inspection.Hidden, OSError):
            raise CannotCopy([_UNRULY]) from None
        try:
            shared |= any(syscalls.share(birth.process, other) for other in self._known)
        except OSError as error:
            text = f"memory that cannot be compared with a copy's ({error.strerror})"
            raise CannotCopy([text]) from None
        alone = status.get("PPid") == str(os.getpid()) and status.get("Threads") == "1"
        users = status.get("Uid", "").split() == [str(birth.user)] * 4
        bare = all(int(status.get(name, "1"), 16) == 0 for name in ("CapEff", "CapInh", "CapAmb"))
        if shared or not (alone and users and bare):
            raise CannotCopy([_UNRULY])

    def _check_holdings(self, made: FamilyBranch, later: set[int]) -> None:
        allowed = inspection.Allowed(made.inodes, made.device)
        try:
            holds = [
                *inspection.threads(made.process),
                *inspection.descriptors(made.process, allowed),
                *inspection.working_folder(made.process, allowed),
                *inspection.mappings(made.process, self._source.device),
            ]
        except inspection.Hidden:
            holds = ["a process that hides from us"]
        holds += self._helpers({made.user, self._source.user}, {made.process, *later})
        if holds:
            raise CannotCopy(holds)

    def _check_source(self) -> None:
        try:
            holds = inspection.threads(self._source.process)
        except inspection.Hidden:
            holds = []
        holds += self._source_holds()
        if holds:
            raise CannotCopy(holds)

    def _source_holds(self) -> list[str]:
        source = self._source
        allowed = inspection.Allowed(source.inodes, source.device)
        try:
            holds = inspection.descriptors(source.process, allowed)
            holds += inspection.mappings(source.process, source.device)
        except inspection.Hidden:
            holds = ["a process that hides from us"]
        return holds + self._helpers({source.user}, set())

    def _helpers(self, users: set[int], but: set[int]) -> list[str]:
        return [
            f"a child process ({name})"
            for process, user, name in inspection.strangers(self._family.processes, self._known)
            if user in users and process not in but
        ]

    def _give_folders(self, birth: _Birth) -> int:
        """Mounts folders in the copy's mount namespace, and fills them; their parent, open."""
        family = self._family
        try:
            mounts = os.open(f"/proc/{birth.process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise CannotCopy([_UNRULY]) from None
        try:
            syscalls.enter_namespace(mounts, syscalls.CLONE_NEWNS)
            try:
                top = root.fresh_folders(
                    family.disk_bytes, family.inodes, birth.user, GROUP, family.kept
                )
            finally:
                syscalls.enter_namespace(family.own_mounts, syscalls.CLONE_NEWNS)
        except OSError as error:
            raise CannotCopy([f"folders that cannot be made ({error.strerror})"]) from None
        finally:
            os.close(mounts)
        copying = Copying(birth.user, GROUP)
        try:
            for name in _COPIED:
                self._copy_folder(copying, top, name)
        except OSError as error:
            os.close(top)
            raise CannotCopy([f"files that cannot be copied ({error.strerror})"]) from None
        finally:
            copying.close()
        return top

    def _copy_folder(self, copying: Copying, target: int, name: str) -> None:
        here = os.open(name, _FOLDER, dir_fd=self._source.top)
        there = os.open(name, _FOLDER, dir_fd=target)
        prefix = f"{root.SCRATCH}/{name}/"
        shown = self._family.kept.values()
        own = {path.removeprefix(prefix) for path in shown if path.startswith(prefix)}
        try:
            copying.folder(here, there, skip=own)
        finally:
            os.close(here)
            os.close(there)


class _Waiting:
    """Waits for any of several sources, until a deadline."""

    def __init__(self, *sources: socket | int) -> None:
        self._poll = poll()
        for source in sources:
            self._poll.register(source if isinstance(source, int) else source.fileno(), POLLIN)

    def wait(self, deadline_s: float) -> set[int]:
        """The sources that have something.

        Raises:
            CannotCopy: the deadline has passed.
        """
        left_ms = (deadline_s - time.monotonic()) * 1e3
        ready = {source for source, _ in self._poll.poll(left_ms)} if left_ms > 0 else set()
        if not ready:
            raise CannotCopy(["a session that does not answer"])
        return ready


def line_pair() -> tuple[socket, socket]:
    """The keeper's end of a line, where the kernel says who sends, and the branch's."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    ours.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)
    return ours, theirs


def inode_of(descriptor: int) -> tuple[int, int]:
    """Device and inode, by which a descriptor is known in another process."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _receive(line: socket) -> tuple[bytes, int]:
    """A message and who sent it; what came along is closed."""
    try:
        message, ancillary, _, _ = line.recvmsg(_MAX_MESSAGE, _ANCILLARY, MSG_CMSG_CLOEXEC)
    except OSError:
        return b"", 0
    for descriptor in descriptors_of(ancillary):
        os.close(descriptor)
    return message, sender_of(ancillary)


def _texts(message: bytes) -> list[str]:
    """What a branch says of itself: hostile, so it is cut and made plain."""
    text = message[:4000].decode("utf-8", "replace")
    return ["".join(filter(str.isprintable, line))[:200] for line in text.split("\n") if line][:16]
