"""Answers the system calls that the filter of a family (`seccomp`, `session`) hands to its keeper.

Those that a session may make only while it is being copied: to raise and drop capabilities, to
leave mounts and network, to change the user. And SIGKILL: a session may send it to its own
children, never to a branch's main process, so that a branch that dies by it was killed from
outside. All arguments are in registers, but for those of `capset`, which can raise nothing that the
process may not have.

Covered: consent is for one process, each call as often as a copy needs it, with its arguments;
everything else is answered EPERM, at once.
Not covered: whole groups: kill(0) and kill(-1) with SIGKILL are refused, and so is the group of a
main process.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from errno import EPERM
from fcntl import ioctl

from assay.sandbox.zygote import calls, syscalls

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_NOTICE = struct.Struct("=QIIiIQ6Q")  # id, process, flags; number, architecture, address, arguments
_REPLY = struct.Struct("=QqiI")  # id, value, error, flags
_CONTINUE = 1
_COLUMN = 1 if os.uname().machine == "aarch64" else 0
_NUMBERS = dict(calls.parse(calls.COMMON + ";" + calls.REFUSED, _COLUMN))
_CAPSET, _SETRESUID, _UNSHARE = (_NUMBERS[name] for name in ("capset", "setresuid", "unshare"))
_KILLS = {
    _NUMBERS[name] for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
}
_KILL = _NUMBERS["kill"]
_ONCE = {_CAPSET: 2, _UNSHARE: 1, _SETRESUID: 1}


class Consent:
    """The listener of a family's filter, and what it consents to now."""

    def __init__(self, listener: int, processes: int, mains: Callable[[], Iterable[int]]) -> None:
        self.listener = listener
        self._processes = processes
        self._mains = mains
        self._given: dict[int, tuple[int, Counter[int]]] = {}

    def give(self, process: int, user: int) -> None:
        """Consents to the calls by which a process becomes a copy with this user."""
        self._given[process] = user, Counter(_ONCE)

    def take_back(self, process: int | None = None) -> None:
        """Consents to nothing more of this process, or of any."""
        if process is None:
            self._given.clear()
        else:
            self._given.pop(process, None)

    def answer(self) -> None:
        """Answers the next waiting call."""
        notice = bytearray(_NOTICE.size)
        try:
            ioctl(self.listener, _RECEIVE, notice)
        except OSError:
            return  # its process was killed meanwhile
        number, process, _, call, _, _, *arguments = _NOTICE.unpack(notice)
        if call in _KILLS:
            agrees = self._may_die(_signed(arguments[0]), call)
        else:
            agrees = self._agrees(process, call, arguments)
        if agrees:
            reply = _REPLY.pack(number, 0, 0, _CONTINUE)
        else:
            reply = _REPLY.pack(number, 0, -EPERM, 0)
        try:
            ioctl(self.listener, _ANSWER, reply)
        except OSError:
            return

    def _agrees(self, process: int, call: int, arguments: list[int]) -> bool:
        user, left = self._given.get(process, (0, Counter()))
        if left[call] <= 0:
            return False
        if call == _SETRESUID:
            fits = all(argument & 0xFFFFFFFF == user for argument in arguments[:3])
        else:
            spaces = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET
            fits = call != _UNSHARE or arguments[0] == spaces
        left[call] -= fits
        return fits

    def _may_die(self, target: int, call: int) -> bool:
        mains = self._mains()
        if target > 0:
            return not any(self._exists(f"{main}/task/{target}") for main in mains)
        return call == _KILL and target < -1 and -target not in set(map(_group_of, mains))

    def _exists(self, path: str) -> bool:
        try:
            os.stat(path, dir_fd=self._processes)
        except OSError:
            return False
        return True


def _signed(argument: int) -> int:
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def _group_of(process: int) -> int:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return 0
