"""A family as the host sees it: its keeper, its control group, and the branches that run cells.

Belongs to the host's event loop. See `assay.sandbox.zygote.keeper` for the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import marshal
import math
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.reasons import Reason
from assay.sandbox.domain import SandboxFault
from assay.sandbox.harness.protocol import MAX_FRAME, HarnessFrame, frame, split
from assay.sandbox.jail.cgroups import ControlGroup
from assay.sandbox.zygote.protocol import descriptors_of, sender_of

USERS = 128
"""Users of a family: it has at most so many branches at once."""

LIVE, ASLEEP = 1000, 0
"""How soon the kernel ends a branch where memory is short."""

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 18
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ANSWER_S = 60.0
_GROUP_S, _GROUP_TRIES = 0.05, 8  # until an ended family's group can be removed
_ROOM_BYTES = 2 * 2**20  # that a copy takes besides its files
_SHRINK_S, _SHRINK_TRIES = 1.0, 10  # a branch that was ended gives its memory back by and by
_STRAY_FRAMES, _STRAY_BYTES = 100, 64 * 2**20  # in a branch's life
_KILLED_S = 2.0  # several processes may be ended for one lack of memory
_HANDED = 2  # a folder and a process
_OWN_FOLDERS = 4  # that a branch has without any of the program's


class CopyRefused(Exception):
    """A branch cannot be copied; `holds` says what stands in the way."""

    def __init__(self, holds: Sequence[str]) -> None:
        super().__init__(", ".join(holds))
        self.holds = list(holds)


class FamilyLost(Exception):
    """The keeper is gone, and with it every process of the family."""


@dataclass(frozen=True, slots=True)
class Gone:
    """How a branch's main process ended.

    Attributes:
        cpu_s: of its processes that were reaped by then.
        peak_bytes: the most memory of its main process.
        others_computed: at that moment relatives ran cells.
        for_memory: the kernel had just ended a process at the family's limit of memory.
        over: it had used the CPU time that it may, perhaps by a limit of its own.
    """

    status: int
    cpu_s: float
    peak_bytes: int
    others_computed: bool
    for_memory: bool
    over: bool


class Ends:
    """The host's ends of a branch's channel and streams, and the branch's own until it has them."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair()
        self.channel.setblocking(False)
        self.out, out = os.pipe2(os.O_CLOEXEC)
        self.err, err = os.pipe2(os.O_CLOEXEC)
        for descriptor in (self.out, self.err):
            os.set_blocking(descriptor, False)
        self.theirs = [theirs.detach(), out, err]

    def hand_over(self, user: int | None) -> None:
        """The branch has its ends; it may open its streams again, as this user of the host."""
        if user is not None:
            for descriptor in self.theirs[1:]:
                os.fchown(descriptor, user, -1)
        self.close_theirs()

    def close_theirs(self) -> None:
        """Closes the branch's ends here."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = []

    def close(self) -> None:
        """Closes all that is open."""
        self.close_theirs()
        self.channel.close()
        os.close(self.out)
        os.close(self.err)


class Listener:
    """What a branch's owner hears of it; as it stands, of one that nobody asked for anything."""

    def heard(self, message: HarnessFrame) -> bool:
        """A frame came; whether it was expected."""
        del message
        return False

    def wrote(self, stream: int, data: bytes) -> bool:
        """It wrote to its stream 1 or 2; whether anybody reads it."""
        del stream, data
        return False

    def broke(self) -> None:
        """Its channel was closed, or holds no frames."""

    def ended(self) -> None:
        """Its main process has ended."""


class HeldBranch:
    """One branch that is or was alive.

    Attributes:
        user: its user in the family.
        folder: its working directory, open.
        gone: how it ended; None while it lives.
        computes: a cell runs in it.
        base_bytes: memory of its interpreter before any cell.
        unruly: why we killed it, where it wrote what nobody asked for; else empty.
    """

    def __init__(self, user: int, folder: int, process: int, ends: Ends | None) -> None:
        self.user = user
        self.folder = folder
        self.gone: Gone | None = None
        self.computes = False
        self.base_bytes = 0
        self.unruly = ""
        self.listener = Listener()
        self._stray_frames = self._stray_bytes = self._memory_bytes = 0
        self._children_s = 0.0
        self._process = process
        self._pid = _pid_of(process)
        self._clock = (~self._pid << 3) | 2  # the kernel's name for a process's CPU clock
        self._ends = ends
        self._unread = bytearray()
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        if ends is not None:
            self._loop.add_reader(ends.channel, self._receive)
            self._loop.add_reader(ends.out, self._read, 1, ends.out)
            self._loop.add_reader(ends.err, self._read, 2, ends.err)

    def send(self, kind: bytes, tag: bytes, content: bytes) -> None:
        """Sends a frame."""
        data = frame(kind, tag, content)
        self._unsent += _LENGTH.pack(len(data)) + data
        self._flush()

    def signal(self, number: int) -> None:
        """Sends a signal to the main process."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def drain(self) -> None:
        """Reads all that both streams hold now."""
        if self._ends is not None:
            for stream, descriptor in ((1, self._ends.out), (2, self._ends.err)):
                while self._read(stream, descriptor):
                    pass

    def weigh(self, score: int) -> None:
        """How soon the kernel ends it where memory is short: `LIVE` or `ASLEEP`.

        Where we may, the program cannot lower it again.
        """
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._pid}/oom_score_adj").write_text(str(score))

    def cpu_s(self) -> float:
        """CPU seconds of the main process and of the children that it waited for."""
        if self.gone is not None:
            return self.gone.cpu_s
        self.look()
        return self.cpu_s_as_seen()

    def cpu_s_as_seen(self) -> float:
        """As `cpu_s`, the children's as of the last `look`: a cell begins with this."""
        if self.gone is not None:
            return self.gone.cpu_s
        with contextlib.suppress(OSError):
            return time.clock_gettime(self._clock) + self._children_s
        return 0.0

    def look(self) -> None:
        """Reads what the main process uses."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _contents(f"/proc/{self._pid}/stat").rpartition(b")")[2].split()
            self._children_s = (int(fields[13]) + int(fields[14])) / _TICKS
            self._memory_bytes = int(fields[21]) * _PAGE

    def memory_bytes(self) -> int:
        """Resident memory of the main process."""
        self.look()
        return self._memory_bytes

    @property
    def memory_bytes_as_seen(self) -> int:
        """As `memory_bytes`, as of the last `look`."""
        return self._memory_bytes

    def disk(self) -> tuple[int, int]:
        """Bytes and number of its files and folders."""
        found = os.fstatvfs(self.folder)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        return used, max(0, found.f_files - found.f_ffree - _OWN_FOLDERS)

    def close(self) -> None:
        """Frees its descriptors; the keeper ends its processes."""
        if self.folder < 0:
            return
        self.listener = Listener()
        if self._ends is not None:
            for source in (self._ends.channel, self._ends.out, self._ends.err):
                self._loop.remove_reader(source)
            self._loop.remove_writer(self._ends.channel)
            self._ends.close()
            self._ends = None
        os.close(self.folder)
        os.close(self._process)
        self.folder = -1

    def _flush(self) -> None:
        if self._ends is None:
            return
        try:
            while self._unsent:
                del self._unsent[: self._ends.channel.send(self._unsent)]
            self._loop.remove_writer(self._ends.channel)
        except BlockingIOError:
            self._loop.add_writer(self._ends.channel, self._flush)
        except OSError:
            self._unsent.clear()
            self._loop.remove_writer(self._ends.channel)

    def _receive(self) -> None:
        assert self._ends is not None  # noqa: S101  # the reader goes with them
        try:
            data = self._ends.channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._unread += data
        start = 0
        while len(self._unread) - start >= _LENGTH.size and not self.unruly:
            (size,) = _LENGTH.unpack_from(self._unread, start)
            if not 0 < size <= MAX_FRAME:
                data = b""
                break
            begin, end = start + _LENGTH.size, start + _LENGTH.size + size
            if len(self._unread) < end:
                break
            message = split(bytes(self._unread[begin:end]))
            start = end
            if not self.listener.heard(message):
                self._stray_frames += 1
                self._check_strays()
            if self.folder < 0:  # the listener closed it
                return
        del self._unread[:start]
        if not data:
            self._loop.remove_reader(self._ends.channel)
            self.listener.broke()

    def _read(self, stream: int, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(descriptor)
            return False
        if not self.listener.wrote(stream, data):
            self._stray_bytes += len(data)
            self._check_strays()
        return len(data) == _CHUNK

    def _check_strays(self) -> None:
        """Ends a branch that keeps us busy with what nobody asked for."""
        frames, size = self._stray_frames, self._stray_bytes
        if not self.unruly and (frames > _STRAY_FRAMES or size > _STRAY_BYTES):
            self.unruly = f"{frames} frames and {size} bytes that belong to no cell"
            self.signal(signal.SIGKILL)


class SessionFamily:
    """A keeper and its branches.

    Attributes:
        members: its sessions.
        forks: that were ever asked for.
        on_lost: called when it is lost.
        own_users: each branch has a user of its own, so that it may be copied.

    Args:
        control: the host's end of the keeper's control socket.
        disk_bytes: size of the first branch's folders.
        first_host_user: the host's id behind the family's user 1000; None where there is one user.
    """

    def __init__(
        self,
        control: socket.socket,
        group: ControlGroup | None,
        first_host_user: int | None,
        number: int,
        disk_bytes: int,
    ) -> None:
        self.number = number
        self.disk_bytes = disk_bytes
        self.group = group
        self.members = self.forks = 0
        self.on_lost: set[Callable[[], None]] = set()
        self.own_users = first_host_user is not None
        self.lost = False
        self.why_lost = "it was closed"
        self._closed = False
        self.branches: dict[int, HeldBranch] = {}
        self._control = control
        self._first_host_user = first_host_user
        self._loop = asyncio.get_running_loop()
        self._keeper, self._base_bytes, self._cpu_s = -1, 0, 0.0
        self._killed_s = -math.inf
        self._limits, self._limit_bytes = (0, 0), 0
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], list[int]]]] = {}
        self._here: asyncio.Future[int] = self._loop.create_future()
        self._up: asyncio.Future[tuple[dict[str, Any], list[int]]] = self._loop.create_future()
        control.setblocking(False)
        control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._loop.add_reader(control, self._hear)

    async def begin(self, ends: Ends, join: Callable[[int], None], *, waits: bool) -> HeldBranch:
        """Waits for the keeper and its first branch.

        Args:
            ends: of that branch.
            join: called with the keeper's process id.
            waits: the keeper has no children before that.

        Raises:
            FamilyLost: it does not come up.
        """
        async with asyncio.timeout(_ANSWER_S):
            pid = await self._here
            self._keeper = os.pidfd_open(pid)
            join(pid)
            if waits:
                self._control.send(b"G")
            facts, given = await self._up
        user = facts["up"]
        ends.hand_over(self._host_user(user))
        branch = self._add(user, given, ends)
        self._base_bytes = branch.base_bytes = branch.memory_bytes()
        branch.weigh(LIVE)
        return branch

    async def copy(self, source: int, count: int, *, runs: bool) -> list[HeldBranch]:
        """Copies of a branch, all or none; `runs`: they will run cells.

        Raises:
            CopyRefused: it cannot be copied.
            FamilyLost: the keeper is gone.
        """
        ends = [Ends() for _ in range(count)] if runs else []
        try:
            handed = [descriptor for each in ends for descriptor in each.theirs]
            facts, given = await self.ask("copy", source, count, descriptors=handed)
            if self.lost:  # it was closed between the answer and now
                for descriptor in given:
                    os.close(descriptor)
                raise FamilyLost(self.why_lost)
            if "holds" in facts:
                raise CopyRefused([str(text) for text in facts["holds"]])
        except BaseException:
            for each in ends:
                each.close()
            raise
        made = []
        for place, user in enumerate(facts["users"]):
            if runs:
                ends[place].hand_over(self._host_user(user))
            mine = ends[place] if runs else None
            made.append(self._add(user, given[2 * place : 2 * place + 2], mine))
        return made

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Sets what all branches together may use; a lower limit of memory comes when it fits."""
        if self.group is None:
            return
        self._limits = memory_bytes, processes
        if memory_bytes < self._limit_bytes:
            self._loop.call_later(_SHRINK_S, self._shrink, _SHRINK_TRIES)
            return
        self._limit_bytes = memory_bytes
        self._begin(memory_bytes, processes)

    def _begin(self, memory_bytes: int, processes: int) -> None:
        if self.group is not None:
            self._cpu_s += self.group.cpu_s()
            self.group.begin(memory_bytes, processes)

    def cpu_s(self) -> float:
        """CPU seconds of all processes that the family ever had; 0 where nobody counts."""
        return 0.0 if self.group is None else self._cpu_s + self.group.cpu_s()

    def _shrink(self, tries: int) -> None:
        memory_bytes, processes = self._limits
        if self.group is None or memory_bytes >= self._limit_bytes:
            return
        if self.group.used_bytes() < memory_bytes:
            # What the kernel cannot free at once is as good as a limit that is a little higher.
            with contextlib.suppress(OSError):
                self._begin(memory_bytes, processes)
                self._limit_bytes = memory_bytes
        elif tries:
            self._loop.call_later(_SHRINK_S, self._shrink, tries - 1)

    def has_room(self, size_bytes: int) -> bool:
        """Whether so much memory more fits within the family's limit."""
        if self.group is None:
            return True
        return self.group.used_bytes() + size_bytes + _ROOM_BYTES <= self._limit_bytes

    def _memory_killed(self) -> bool:
        now_s = self._loop.time()
        if self.group is not None and self.group.memory_kills():
            self._killed_s = now_s
        return now_s - self._killed_s < _KILLED_S

    def end(self, branch: HeldBranch) -> None:
        """Ends a branch's processes; nobody waits for it."""
        self.branches.pop(branch.user, None)
        branch.close()
        self.tell("kill", branch.user)

    async def ask(
        self, *request: Any, descriptors: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Asks the keeper; its answer, with what came along.

        Raises:
            FamilyLost: it is gone, or does not answer.
        """
        number = self._send(request, descriptors)
        answer: asyncio.Future[tuple[dict[str, Any], list[int]]] = self._loop.create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await answer
        except TimeoutError:
            self.lose("its keeper does not answer")
            raise FamilyLost(self.why_lost) from None
        finally:
            self._waiting.pop(number, None)

    def tell(self, *request: Any) -> None:
        """Asks the keeper for what needs no answer."""
        with contextlib.suppress(FamilyLost):
            self._send(request, ())

    def _send(self, request: Sequence[Any], descriptors: Sequence[int]) -> int:
        if self.lost:
            raise FamilyLost(self.why_lost)
        self._asked += 1
        message = marshal.dumps((self._asked, *request))
        try:
            socket.send_fds(self._control, [message], list(descriptors))
        except OSError as error:  # also where hundreds of requests wait
            self.lose("its keeper died, or does not answer")
            raise FamilyLost(self.why_lost) from error
        return self._asked

    def lose(self, why: str) -> None:
        """Gives the family up: kills the keeper, and tells everybody who waits."""
        if self.lost:
            return
        self.why_lost = why
        self.close()
        for call in list(self.on_lost):
            call()

    def close(self) -> None:
        """Ends every process of the family."""
        if self._closed:
            return
        self.lost = self._closed = True
        self._loop.remove_reader(self._control)
        self._control.close()
        if self._keeper >= 0:  # and with it everything in its namespace
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._keeper, signal.SIGKILL)
            os.close(self._keeper)
            self._keeper = -1
        for branch in self.branches.values():
            branch.close()
        self.branches.clear()
        unanswered: list[asyncio.Future[Any]]
        unanswered = [*self._waiting.values(), self._here, self._up]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(FamilyLost(self.why_lost))
                waiting.exception()  # it may be that nobody waits
        group, self.group = self.group, None
        if group is not None:
            # The kernel takes a moment to empty it.
            self._loop.call_later(_GROUP_S, _remove, group, 0)

    def _host_user(self, user: int) -> int | None:
        return None if self._first_host_user is None else self._first_host_user + user - 1000

    def _add(self, user: int, given: list[int], ends: Ends | None) -> HeldBranch:
        if len(given) < _HANDED:  # the kernel could not hand them over
            for descriptor in given:
                os.close(descriptor)
            if ends is not None:
                ends.close()
            self.tell("kill", user)
            text = "the host has no descriptors left: raise ulimit -n, or lower --max-sessions"
            raise SandboxFault(Reason.WORKER_DIED, text)
        branch = HeldBranch(user, given[0], given[1], ends)
        branch.base_bytes = self._base_bytes
        self.branches[user] = branch
        return branch

    def _hear(self) -> None:
        try:
            message, ancillary, _, _ = self._control.recvmsg(
                1 << 16, socket.CMSG_SPACE(4 * 64) + socket.CMSG_SPACE(12), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            message, ancillary = b"", []
        if not message:
            self.lose("its keeper died")
            return
        given = descriptors_of(ancillary)
        number, facts = json.loads(message)
        if number:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_result((facts, given))
                return
        elif "here" in facts:
            self._here.set_result(sender_of(ancillary))
        elif "up" in facts:
            self._up.set_result((facts, given))
            return
        elif "failed" in facts:
            self.lose(f"its first process could not be confined: {facts['failed']}")
        elif "gone" in facts:
            self._ended(facts)
        for descriptor in given:
            os.close(descriptor)

    def _ended(self, facts: dict[str, Any]) -> None:
        branch = self.branches.get(facts["gone"])
        if branch is not None:
            branch.gone = Gone(
                *(facts["status"], facts["cpu_s"], facts["peak_bytes"]),
                others_computed=any(
                    other.computes for other in self.branches.values() if other is not branch
                ),
                for_memory=self._memory_killed(),
                over=facts["over"],
            )
            branch.drain()
            branch.listener.ended()


def _contents(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _remove(group: ControlGroup, tries: int) -> None:
    if not group.remove() and tries < _GROUP_TRIES:
        asyncio.get_running_loop().call_later(_GROUP_S * 2**tries, _remove, group, tries + 1)


def _pid_of(descriptor: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise FamilyLost("a process that has ended")
