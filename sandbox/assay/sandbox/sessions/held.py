"""A branch of a family as the host sees it: its channel and streams, what it uses, how it ended.

Belongs to the host's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from assay.sandbox.harness.protocol import MAX_FRAME, HarnessFrame, frame, split

LIVE, ASLEEP = 1000, 0
"""How soon the kernel ends a branch where memory is short."""

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 18
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STRAY_FRAMES, _STRAY_BYTES = 100, 64 * 2**20  # in a branch's life
_OWN_FOLDERS = 4  # that a branch has without any of the program's


class FamilyLost(Exception):
    """The keeper is gone, and with it every process of the family."""


@dataclass(frozen=True, slots=True)
class Gone:
    """How a branch's main process ended.

    Attributes:
        cpu_s: of its processes that were reaped by then.
        peak_bytes: the most memory of its main process.
        others_computed: at that moment relatives ran cells, and this one none.
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


def _contents(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _pid_of(descriptor: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise FamilyLost("a process that has ended")
