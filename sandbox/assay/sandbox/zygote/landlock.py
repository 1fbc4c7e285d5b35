"""The file access that a program has, as a Landlock ruleset.

A second wall behind the mount namespace; without one, the first.

Covered: opening, creating, changing, executing files beyond the paths allowed; TCP; from ABI 6
signals and abstract sockets to processes outside.
Not covered: stat and directory look-ups; modes, times and owners of files of the program's user,
which may be the service's; sockets with a path (seccomp refuses them without a mount namespace).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from assay.sandbox.zygote import syscalls

_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_LAST_RIGHT = {1: 13, 2: 14, 3: 15, 4: 15}  # number of filesystem rights by ABI; from 5 on 16
_TRUNCATE, _REFER = 1 << 14, 1 << 13
_CREATE_CHARACTER, _CREATE_BLOCK, _IOCTL = 1 << 6, 1 << 11, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
SCOPED_ABI = 6  # from here on signals and abstract sockets stay inside


def ruleset(
    readable: Iterable[str], writable: Iterable[str], listed: Iterable[str] = (), *, sockets: bool
) -> int:
    """A descriptor of a ruleset.

    Args:
        readable: paths whose files may be read and executed; absent ones are left out.
        writable: paths beneath which everything is allowed but device nodes.
        listed: folders whose names may be read, and those of the folders beneath; nothing more.
        sockets: TCP is allowed; there is a network namespace.

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = syscalls.landlock_abi()
    handled = (1 << _LAST_RIGHT.get(abi, 16)) - 1
    network = 0 if sockets or abi < 4 else 3
    scope = 3 if abi >= SCOPED_ABI else 0
    rules = syscalls.landlock_ruleset(handled, network, scope, abi)
    for path in readable:
        _allow(rules, path, (_EXECUTE | _READ | _READ_DIR) & handled)
    for path in listed:
        _allow(rules, path, _READ_DIR)
    for path in writable:
        _allow(rules, path, handled & ~(_CREATE_CHARACTER | _CREATE_BLOCK))
    return rules


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not there, or not ours to see: then it stays forbidden
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        syscalls.landlock_allow(rules, descriptor, rights)
    finally:
        os.close(descriptor)
