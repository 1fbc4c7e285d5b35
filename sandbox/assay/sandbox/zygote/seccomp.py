"""The system calls that a program may make, as a seccomp filter (classic BPF). Pure.

The filter comes in two parts, since the kernel takes long to translate a long one: the zygote
installs the long part once, and each child adds a short one for what the zygote still needs.

An allow list: unnamed calls are answered with ENOSYS, as by a kernel that does not know them. Calls
that no honest program makes (ptrace, mount, bpf, keyctl, kexec...) end the process with SIGSYS,
which the sandbox reports as a security violation. Some are allowed for some arguments only: clone
without new namespaces, sockets of harmless families, prlimit of oneself.

Covered: 64-bit x86 and Arm; other entry points of the same kernel (32-bit, x32) end the process.
Not covered: arguments behind pointers, which a filter cannot read (clone3 is therefore unknown, and
C libraries fall back to clone).
"""

from __future__ import annotations

import errno
import os
import struct
from _signal import SIGKILL
from collections.abc import Sequence
from typing import NamedTuple

from assay.sandbox.zygote import calls

KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS
ALLOW = 0x7FFF0000
ASK = 0x7FC00000  # SECCOMP_RET_USER_NOTIF: the keeper of a session's family answers
_ERRNO = 0x00050000

# Linux's classic BPF: load a word of seccomp_data, jump, return.
_LD, _JEQ, _JGE, _JSET, _JA, _RET, _AND = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06, 0x54
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000
_NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET
_OWN_SPACES = 0x40020000  # CLONE_NEWNS, CLONE_NEWNET
_SET_SIGNAL = 10  # F_SETSIG
_FORK_THREAD = 0x00010000  # CLONE_THREAD
_TTY_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX


class UnsupportedArchitecture(Exception):
    """There is no table of system calls for this machine."""


class SyscallPolicy(NamedTuple):
    """What differs between the levels of isolation.

    Attributes:
        sockets: allowed; only with a network namespace.
        fork: allowed; only where something counts and ends the processes.
        own_user: limits per user may be used up, as the user is the program's own.
        session: the keeper of the family answers what belongs to a copy of the session, and
            whether a process may be killed, so that nobody but us kills a session's own.
    """

    sockets: bool = True
    fork: bool = True
    own_user: bool = True
    session: bool = False


class _Check(NamedTuple):
    """Looks at the low 32 bits of one argument; `otherwise` when nothing matches."""

    argument: int
    equal: tuple[tuple[int, int], ...] = ()
    any_bit: tuple[int, int] | None = None
    low_byte: tuple[int, int] | None = None
    otherwise: int = ALLOW


def numbers(architecture: str | None = None) -> dict[str, int]:
    """Every system call that the tables name, by name.

    Raises:
        UnsupportedArchitecture: no table for this machine.
    """
    _, column = _architecture(architecture)
    tables = (
        *(calls.COMMON, calls.SOCKETS, calls.WATCHES, calls.IGNORED),
        *(calls.REFUSED, calls.FORBIDDEN, calls.CHECKED),
    )
    return dict(calls.parse(";".join(tables), column))


class Halves(NamedTuple):
    """Two filters that together answer every call as `build`'s one does.

    Attributes:
        inherited: allows besides what the zygote calls itself (`calls.NEEDED`).
        own: answers these as the policy says, and allows everything else.
    """

    inherited: bytes
    own: bytes


def build(policy: SyscallPolicy, architecture: str | None = None) -> bytes:
    """The filter's instructions, 8 bytes each, for `struct sock_fprog`.

    Raises:
        UnsupportedArchitecture: no table for this machine.
    """
    return _assemble(_actions(policy, architecture), error(errno.ENOSYS), architecture)


def halve(policy: SyscallPolicy, architecture: str | None = None) -> Halves:
    """The same filter in two parts; under both, the kernel takes the stricter answer.

    Raises:
        UnsupportedArchitecture: no table for this machine.
    """
    _, column = _architecture(architecture)
    actions, unknown = _actions(policy, architecture), error(errno.ENOSYS)
    needed = [number for _, number in calls.parse(calls.NEEDED, column)]
    own = {number: actions.get(number, unknown) for number in needed}
    inherited = {**actions, **dict.fromkeys(needed, ALLOW)}
    return Halves(_assemble(inherited, unknown, architecture), _assemble(own, ALLOW, architecture))


def _actions(policy: SyscallPolicy, architecture: str | None) -> dict[int, int | _Check]:
    _, column = _architecture(architecture)
    actions: dict[int, int | _Check] = {}
    for text, action in (
        (calls.COMMON, ALLOW),
        (calls.SOCKETS, ALLOW if policy.sockets else error(errno.EACCES)),
        (calls.WATCHES, ALLOW if policy.own_user else error(errno.ENOSYS)),
        (calls.IGNORED, error(0)),
        (calls.REFUSED, error(errno.EPERM)),
        (calls.FORBIDDEN, KILL),
    ):
        actions.update((number, action) for _, number in calls.parse(text, column))
    checks = _argument_checks(policy)
    actions.update((number, checks[name]) for name, number in calls.parse(calls.CHECKED, column))
    if policy.session:
        known = numbers(architecture)
        actions.update((known[name], check) for name, check in _session_checks().items())
    return actions


def _session_checks() -> dict[str, int | _Check]:
    refuse = error(errno.EPERM)
    first, second = (_Check(place, equal=((SIGKILL, ASK),)) for place in (1, 2))
    return {
        "unshare": _Check(0, equal=((_OWN_SPACES, ASK),), otherwise=refuse),
        "setresuid": ASK,
        "capset": ASK,
        **dict.fromkeys(("setuid", "setreuid", "setfsuid"), refuse),
        **dict.fromkeys(("kill", "tkill", "rt_sigqueueinfo"), first),
        **dict.fromkeys(("tgkill", "rt_tgsigqueueinfo"), second),
        # Further ways to have SIGKILL sent.
        "pidfd_send_signal": _Check(1, equal=((SIGKILL, refuse),)),
        "fcntl": _Check(1, equal=((_SET_SIGNAL, refuse),)),
        "timer_create": error(errno.ENOSYS),  # programs then use alarm
        # Memory of no process: where it runs short, the kernel would end a relative in its place.
        "memfd_create": error(errno.ENOSYS),
        "clone": _Check(0, any_bit=(_NAMESPACE_FLAGS, refuse), low_byte=(SIGKILL, refuse)),
    }


def _assemble(actions: dict[int, int | _Check], unknown: int, architecture: str | None) -> bytes:
    audit, column = _architecture(architecture)
    head = [_ins(_LD, 4), _ins(_JEQ, audit, 1, 0), _ins(_RET, KILL), _ins(_LD, 0)]
    spans = _spans(actions, unknown, with_x32=column == 0)
    return b"".join(head + _tree(spans))


def error(number: int) -> int:
    """The action that answers with an error number."""
    return _ERRNO | number


def _argument_checks(policy: SyscallPolicy) -> dict[str, int | _Check]:
    refuse = error(errno.EPERM)
    fork: int | _Check = ALLOW if policy.fork else refuse
    clone = _Check(0, any_bit=(_NAMESPACE_FLAGS, refuse))
    if not policy.fork:
        clone = _Check(0, any_bit=(_FORK_THREAD, ALLOW), otherwise=refuse)
    families = tuple((family, ALLOW) for family in (1, 2, 10)) if policy.sockets else ()
    no_socket = error(errno.EAFNOSUPPORT if policy.sockets else errno.EACCES)
    oneself = _Check(0, equal=((0, ALLOW),), otherwise=refuse)
    return {
        "ioctl": _Check(1, equal=tuple((request, refuse) for request in _TTY_INJECTION)),
        "socket": _Check(0, equal=families, otherwise=no_socket),
        "socketpair": _Check(0, equal=((1, ALLOW),), otherwise=error(errno.EAFNOSUPPORT)),
        "clone": clone,
        "fork": fork,
        "vfork": fork,
        "setpriority": _Check(1, equal=((0, ALLOW),), otherwise=refuse),
        "sched_setparam": oneself,
        "sched_setscheduler": oneself,
        "sched_setaffinity": oneself,
        "prlimit64": oneself,
    }


def _architecture(name: str | None) -> tuple[int, int]:
    name = name or os.uname().machine
    if name not in _ARCHITECTURES:
        known = ", ".join(_ARCHITECTURES)
        raise UnsupportedArchitecture(f"no table of system calls for {name!r}; known: {known}")
    return _ARCHITECTURES[name]


def _spans(
    actions: dict[int, int | _Check], unknown: int, *, with_x32: bool
) -> list[tuple[int, int | _Check]]:
    """Where the action changes, from number 0 up: (first number, action)."""
    spans: list[tuple[int, int | _Check]] = []
    for number in range(max(actions) + 2):
        action = actions.get(number, unknown)
        if not spans or spans[-1][1] != action:
            spans.append((number, action))
    if with_x32:
        spans.append((_X32, KILL))
    return spans


def _tree(spans: Sequence[tuple[int, int | _Check]]) -> list[bytes]:
    """A binary search for the span that holds the number, then its action."""
    if len(spans) == 1:
        return _leaf(spans[0][1])
    middle = len(spans) // 2
    below, above = _tree(spans[:middle]), _tree(spans[middle:])
    # A conditional jump reaches 255 instructions; the plain one reaches everything.
    return [_ins(_JGE, spans[middle][0], 0, 1), _ins(_JA, len(below)), *below, *above]


def _leaf(action: int | _Check) -> list[bytes]:
    if isinstance(action, int):
        return [_ins(_RET, action)]
    code = [_ins(_LD, 16 + 8 * action.argument)]
    for value, result in action.equal:
        code += [_ins(_JEQ, value, 0, 1), _ins(_RET, result)]
    if action.any_bit is not None:
        mask, result = action.any_bit
        code += [_ins(_JSET, mask, 0, 1), _ins(_RET, result)]
    if action.low_byte is not None:
        value, result = action.low_byte
        code += [_ins(_AND, 0xFF), _ins(_JEQ, value, 0, 1), _ins(_RET, result)]
    return [*code, _ins(_RET, action.otherwise)]


def _ins(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
