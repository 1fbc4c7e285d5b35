"""System calls that Python has no function for, over ctypes; imports only the standard library.

Every function raises OSError with the kernel's error number and the call's name.
"""

from __future__ import annotations

import ctypes
import os
import struct
from _signal import SIGCHLD, SIGKILL
from errno import ESRCH

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_CLONE_PARENT = 0x00008000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAPBSET_DROP = 24
_SECCOMP_MODE_FILTER = 2
_SECCOMP_SET_MODE_FILTER, _SECCOMP_NEW_LISTENER = 1, 8
_CAP_VERSION_3 = 0x20080522
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_RESOLVE_BENEATH, _RESOLVE_NO_SYMLINKS, _RESOLVE_NO_XDEV = 0x08, 0x04, 0x01
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_CREATE_RULESET_VERSION = 1

# Numbers above 424 are the same on every architecture; the older ones are not.
_NUMBERS = {
    "x86_64": {"clone": 56, "pivot_root": 155, "seccomp": 317, "kcmp": 312},
    "aarch64": {"clone": 220, "pivot_root": 41, "seccomp": 277, "kcmp": 272},
}.get(os.uname().machine, {})
_KCMP_VM, _KCMP_FILES, _KCMP_FS = 1, 2, 3
_CLOSE_RANGE, _OPENAT2, _MOUNT_SETATTR = 436, 437, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

# PyDLL keeps the interpreter's lock: a fork in the middle of a call must not meet a released one.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_mount = _libc.mount
_mount.argtypes = [
    ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p
]  # fmt: skip
_umount2 = _libc.umount2
_umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leaves the namespaces that the flags name for new ones."""
    _check(_libc.unshare(flags), "unshare")


def fork(flags: int = 0) -> int:
    """Forks as os.fork does, without the interpreter's work after it; 0 in the child.

    That work (locks, thread list, new random seed) is for processes with threads and would touch a
    hundred pages in every child. Only for a process with a single thread. The flags name new
    namespaces for the child.
    """
    number = _NUMBERS["clone"]
    return _check(_syscall(number, flags | SIGCHLD, 0, 0, 0, 0), "clone")


def clone_sibling(flags: int = 0) -> int:
    """Forks a child that becomes a child of this process's parent; 0 in the child.

    With CLONE_NEWPID among the flags it is process 1 of a namespace of its own. Only for a process
    with
    a single thread.
    """
    number = _NUMBERS["clone"]
    return _check(_syscall(number, flags | _CLONE_PARENT | SIGCHLD, 0, 0, 0, 0), "clone")


def kill_user(user: int) -> None:
    """Kills every process of a user but the caller, all at once. As root only.

    It takes the user's id for a moment, as a fork bomb leaves no room for another process. Clears
    what
    `die_with_parent` has set.
    """
    os.setresuid(user, user, 0)
    try:
        os.kill(-1, SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.setresuid(0, 0, 0)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mounts a filesystem."""
    result = _mount(source.encode(), target.encode(), kind.encode(), flags, data.encode())
    _check(result, f"mount {target}")


def umount(target: str) -> None:
    """Takes a mount out of the tree; it is freed when nobody uses it any more."""
    _check(_umount2(target.encode(), MNT_DETACH), f"umount {target}")


def make_read_only(path: str, *, recursive: bool) -> None:
    """Makes a mount, and those beneath, read-only, without set-user-id and devices."""
    attributes = struct.pack(
        "=QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, 0
    )
    flags = _AT_RECURSIVE if recursive else 0
    result = _syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, len(attributes))
    _check(result, f"mount_setattr {path}")


def pivot_root(new_root: str) -> None:
    """Makes a mount the root directory and drops the old one."""
    os.chdir(new_root)
    _check(_syscall(_NUMBERS["pivot_root"], b".", b"."), "pivot_root")
    umount(".")
    os.chdir("/")


def no_new_privileges() -> None:
    """No program that is executed gains rights any more, e.g. by set-user-id."""
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl NO_NEW_PRIVS")


def set_dumpable(*, dumpable: bool) -> None:
    """Whether processes of the same user may look into this one."""
    _check(_prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "prctl DUMPABLE")


def die_with_parent() -> None:
    """SIGKILL when the parent ends."""
    _check(_prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "prctl PDEATHSIG")


def adopt_orphans() -> None:
    """Orphans among the descendants become children of this process."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl CHILD_SUBREAPER")


def drop_capabilities() -> None:
    """Gives up every capability, for good."""
    set_capabilities(permitted=0, effective=0)


def set_capabilities(*, permitted: int, effective: int) -> None:
    """Sets this thread's capabilities; each is a set of bits, and none is inheritable."""
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    low, high = 0xFFFFFFFF, 32
    data = struct.pack(
        "=6I", effective & low, permitted & low, 0, effective >> high, permitted >> high, 0
    )
    _check(_libc.capset(header, data), "capset")


def keep_capabilities() -> None:
    """The permitted capabilities outlast the next change of user."""
    _check(_prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl KEEPCAPS")


def share(process: int, other: int) -> bool:
    """Whether two processes have one address space, table of descriptors or working directory.

    A clone may share these with its original: CLONE_VM, CLONE_FILES, CLONE_FS.
    """
    for kind in (_KCMP_VM, _KCMP_FILES, _KCMP_FS):
        answer = _syscall(_NUMBERS["kcmp"], process, other, kind, 0, 0)
        if answer < 0 and ctypes.get_errno() == ESRCH:
            return False
        if _check(answer, "kcmp") == 0:
            return True
    return False


def enter_namespace(descriptor: int, kind: int) -> None:
    """Moves this process into the namespace that a descriptor names."""
    _check(_libc.setns(descriptor, kind), "setns")


def drop_bounding_set() -> None:
    """No program that is executed can gain a capability; needs CAP_SETPCAP."""
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # past the last one that the kernel knows


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class SeccompFilter:
    """A seccomp filter, ready to be installed."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = _Program(len(code) // 8, ctypes.addressof(self._code))
        self._address = ctypes.addressof(self._program)

    def install(self) -> None:
        """Puts this process and its children under the filter. Needs no_new_privileges."""
        result = _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._address, 0, 0)
        _check(result, "prctl SECCOMP")

    def install_and_listen(self) -> int:
        """As `install`; returns the descriptor by which another process answers for the kernel."""
        number, flags = _NUMBERS["seccomp"], _SECCOMP_NEW_LISTENER
        result = _syscall(number, _SECCOMP_SET_MODE_FILTER, flags, ctypes.c_void_p(self._address))
        return _check(result, "seccomp")


def close_from(first: int) -> None:
    """Closes every descriptor from `first` up."""
    _check(_syscall(_CLOSE_RANGE, first, ctypes.c_uint(0xFFFFFFFF), 0), "close_range")


def open_beneath(folder: int, path: str) -> int:
    """Opens a file beneath an open folder for reading: no symbolic links, no other mounts.

    Does not wait for a FIFO's writer.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    how = struct.pack("=QQQ", flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_XDEV)
    return _check(_syscall(_OPENAT2, folder, os.fsencode(path), how, len(how)), "openat2")


def landlock_abi() -> int:
    """The version of Landlock that the kernel has; 0: none."""
    version: int = _syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    return max(0, version)


def landlock_ruleset(filesystem: int, network: int, scope: int, abi: int) -> int:
    """A descriptor of a ruleset that handles these rights."""
    sizes = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
    attributes = struct.pack("=QQQ", filesystem, network, scope)[: sizes.get(abi, 24)]
    return _check(_syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0), "landlock_create")


def landlock_allow(ruleset: int, path_fd: int, rights: int) -> None:
    """Allows rights beneath a path."""
    rule = struct.pack("=Qi", rights, path_fd)
    _check(_syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0), "landlock_add")


def landlock_restrict(ruleset: int) -> None:
    """Puts this process under the ruleset. Needs no_new_privileges."""
    _check(_syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
