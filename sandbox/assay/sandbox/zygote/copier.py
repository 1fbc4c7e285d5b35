"""Copies a branch of a family: the keeper's part of what `branch` does in the copy.

    keeper -> branch   b"F" + the order's number + the copies' marshalled users, with the end of a
                       new line for each and, for those that will run cells, channel, stdout and
                       stderr
    branch -> keeper   b"N" + number + what it holds that a copy would lose: there will be no copy;
                       or b"K" + number once it has split and closed what was the copies'. Words
                       about earlier orders, which the keeper gave up, are passed over
    copy -> keeper     b"C"  it is there; the kernel says who sends it
    copy               raises capabilities, leaves mounts and network, takes its user, drops
                       capabilities: each by the keeper's consent (`consent`)
    copy -> keeper     b"U"
    keeper             looks at user, mounts and network; gives it folders, with a copy of the files
    keeper -> copy     b"M"
    copy -> keeper     b"D"  it is in its folder and has opened its files again; or b"X" + why not
    keeper             looks at all that it holds (`inspection`); once all copies are there, also at
                       the branch itself, which may have kept a way into a copy from the moment in
                       which they had one user, and at who else is there
    keeper -> copy     b"G"

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
from typing import NamedTuple

from assay.sandbox.zygote import inspection, root, syscalls
from assay.sandbox.zygote.consent import Consent
from assay.sandbox.zygote.folders import Copying
from assay.sandbox.zygote.protocol import ORDER_NUMBER, descriptors_of, sender_of

GROUP = 1000
_HANDSHAKE_S = 10.0
_MAX_MESSAGE = 1 << 13
_ANCILLARY = CMSG_SPACE(4 * 8) + CMSG_SPACE(12)
_COPIED = ("box", "tmp", "shm")
_HIDES = "a process that hides from us"
_ENDED = b"-"  # where a copy's word was awaited
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
    """A copy that was asked for, until it is made."""

    def __init__(self, user: int, line: socket, inodes: set[tuple[int, int]]) -> None:
        self.user = user
        self.line = line
        self.inodes = inodes
        self.process = 0
        self.awaited = b"C"  # its next word; nothing once it is made
        self.made: FamilyBranch | None = None


class Copier:
    """Makes copies of one branch, all at once."""

    def __init__(
        self, family: FamilyFacts, source: FamilyBranch, known: set[int], number: int
    ) -> None:
        self._family = family
        self._source = source
        self._known = known
        self._number = number  # greater than that of every order before
        self._births: list[_Birth] = []
        self._has_split = False
        self._deadline_s = 0.0

    def make(self, users: Sequence[int], handed: Sequence[list[int]]) -> list[FamilyBranch]:
        """One copy for each user; `handed` are channel, stdout and stderr of each, or nothing.

        Raises:
            CannotCopy: none was made; processes of the users may be left.
            OSError: the source has ended.
        """
        self._check_threads()
        self._deadline_s = time.monotonic() + _HANDSHAKE_S
        try:
            self._order(users, handed)
            self._accompany()
            self._check_together()
            for birth in self._births:
                birth.line.send(b"G")
        except BaseException:
            for birth in self._births:
                birth.line.close()
                if birth.made is not None:
                    os.close(birth.made.top)
            raise
        finally:
            self._family.consent.take_back()
        return [birth.made for birth in self._births if birth.made is not None]

    def _check_threads(self) -> None:
        """Before all else: a copy of one thread of several may hold the others' locks."""
        try:
            holds = inspection.threads(self._source.process)
        except inspection.Hidden:
            holds = [_HIDES]
        if holds:
            raise CannotCopy([*holds, *self._source_holds()])

    def _order(self, users: Sequence[int], handed: Sequence[list[int]]) -> None:
        rights: list[int] = []
        ends: list[socket] = []
        try:
            for user, given in zip(users, handed, strict=True):
                ours, theirs = line_pair()
                ends.append(theirs)
                mine = [theirs.fileno(), *given]
                self._births.append(_Birth(user, ours, {inode_of(each) for each in mine}))
                rights += mine
            packed = struct.pack(f"{len(rights)}i", *rights)
            message = b"F" + ORDER_NUMBER.pack(self._number) + marshal.dumps(list(users))
            self._source.line.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, packed)])
        finally:
            for end in ends:
                end.close()  # the copy's end shows that it lives

    def _accompany(self) -> None:
        """Until the source has split, and each copy has its own user, mounts and folders."""
        consent = self._family.consent
        waiting = poll()
        by_line = {birth.line.fileno(): birth for birth in self._births}
        for descriptor in (self._source.line.fileno(), consent.listener, *by_line):
            waiting.register(descriptor, POLLIN)
        while not self._has_split or any(birth.awaited for birth in self._births):
            left_ms = (self._deadline_s - time.monotonic()) * 1e3
            ready = {source for source, _ in waiting.poll(max(0.0, left_ms))}
            if not ready or left_ms < 0:  # words that are passed over cost time too
                raise CannotCopy(["a session that does not answer"])
            if self._source.line.fileno() in ready:
                self._hear_source()
            for line in ready & by_line.keys():
                if not self._hear(by_line[line]):
                    waiting.unregister(line)  # the source says why
            if consent.listener in ready:  # a copy speaks before it calls
                consent.answer()
            if self._has_split and any(birth.awaited == _ENDED for birth in self._births):
                raise CannotCopy(["a copy that ended at once"])

    def _hear_source(self) -> None:
        message, _ = _receive(self._source.line)
        kind, number, texts = message[:1], message[1:5], message[5:]
        if len(number) == ORDER_NUMBER.size and ORDER_NUMBER.unpack(number)[0] < self._number:
            return
        is_ours = number == ORDER_NUMBER.pack(self._number) and not self._has_split
        if is_ours and kind == b"N":
            raise CannotCopy([*_texts(texts), *self._source_holds()])
        if not is_ours or kind != b"K":
            raise CannotCopy([_UNRULY if message else "a session that has ended"])
        self._has_split = True

    def _hear(self, birth: _Birth) -> bool:
        """Takes a copy's word, and does what comes next; False where it is gone."""
        message, process = _receive(birth.line)
        if not message:
            birth.awaited = _ENDED
            return False
        if message[:1] == b"X":
            raise CannotCopy(_texts(message[1:]))
        if message != birth.awaited or (birth.process and process != birth.process):
            raise CannotCopy([_UNRULY])
        if message == b"C":
            others = {other.process for other in self._births}
            if process in {0, os.getpid()} | self._known | others:
                raise CannotCopy([_UNRULY])
            birth.process, birth.awaited = process, b"U"
            self._family.consent.give(process, birth.user)
        elif message == b"U":
            self._family.consent.take_back(process)
            self._check_identity(birth)
            top = self._give_folders(birth)
            device = os.fstat(top).st_dev
            birth.made = FamilyBranch(birth.user, process, birth.line, top, device, birth.inodes)
            birth.line.send(b"M")
            birth.awaited = b"D"
        else:
            self._check_holdings(birth)
            birth.awaited = b""
        return True

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
        alone = status.get("PPid") == str(os.getpid()) and status.get("Threads") == "1"
        users = status.get("Uid", "").split() == [str(birth.user)] * 4
        bare = all(int(status.get(name, "1"), 16) == 0 for name in ("CapEff", "CapInh", "CapAmb"))
        if shared or not (alone and users and bare):
            raise CannotCopy([_UNRULY])

    def _check_holdings(self, birth: _Birth) -> None:
        assert birth.made is not None  # it has its folders
        allowed = inspection.Allowed(birth.inodes, birth.made.device)
        try:
            holds = [
                *inspection.threads(birth.process),
                *inspection.descriptors(birth.process, allowed),
                *inspection.working_folder(birth.process, allowed),
                *inspection.mappings(birth.process, self._source.device),
            ]
        except inspection.Hidden:
            holds = [_HIDES]
        if holds:
            raise CannotCopy([*holds, *self._source_holds()])

    def _check_together(self) -> None:
        """What can be said once all have users of their own: who is left that nobody knows."""
        try:
            holds = inspection.threads(self._source.process)
            shared = self._shared()
        except inspection.Hidden:
            holds, shared = [], True
        holds += self._source_holds()
        if holds or shared:
            raise CannotCopy(holds or [_UNRULY])

    def _shared(self) -> bool:
        """Whether a copy has its memory, descriptors or folder in common with anybody."""
        copies = [birth.process for birth in self._births]
        try:
            return any(
                syscalls.share(copy, other)
                for place, copy in enumerate(copies)
                for other in (*self._known, *copies[:place])
            )
        except OSError:
            return True

    def _source_holds(self) -> list[str]:
        source = self._source
        allowed = inspection.Allowed(source.inodes, source.device)
        try:
            holds = inspection.descriptors(source.process, allowed)
            holds += inspection.mappings(source.process, source.device)
        except inspection.Hidden:
            holds = [_HIDES]
        known = self._known | {birth.process for birth in self._births}
        users = {source.user, *(birth.user for birth in self._births)}
        return holds + [
            f"a child process ({name})"
            for _, user, name in inspection.strangers(self._family.processes, known)
            if user in users
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
