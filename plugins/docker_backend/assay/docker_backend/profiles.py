"""Seccomp profiles in Docker's format, from the calls of the jail's own filter.

`program_profile` is for the container of one program: what the jail lets a program call, and no
network at all. `service_profile` is for a container in which the service itself builds its jails:
the same and what the walls are made of; `scripts/seccomp_profile.py` writes it to
`sandbox/seccomp.json`. A call that a profile does not name is answered with ENOSYS.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Set

from assay.sandbox.backend import SystemCalls, system_calls

Rule = dict[str, object]

ARCHITECTURES = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")
NEW_NAMESPACES = (
    0x7E020000  # flags of clone: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
)
NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
WALLS = (
    "chroot",
    "kcmp",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "mount",
    "mount_setattr",
    "pivot_root",
    "seccomp",
    "sethostname",
    "umount2",
    "unshare",
)


def program_profile() -> str:
    """For a container that runs one program: namespaces, networks and old IPC are refused."""
    calls = system_calls()
    flags = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    return _profile(
        _rule(_plain(calls) - {"clone"}, "what programs may call"),
        _rule({"clone"}, "without new namespaces", args=[flags]),
        _socket("AF_UNIX"),
        _rule(calls.refused, "programs ask and go on without", "ERRNO", errnoRet=errno.EPERM),
        _rule(calls.forbidden - calls.refused, "only attacks make these", "KILL_PROCESS"),
    )


def service_profile() -> str:
    """For a container that the service runs in, without capabilities or with few."""
    kind = {"index": 1, "value": NEW_MOUNTS, "op": "SCMP_CMP_EQ"}
    return _profile(
        _rule(
            _plain(system_calls()),
            "what programs and the service need; all flags of clone among them",
        ),
        _rule(frozenset(WALLS), "what the walls around a program are made of"),
        _rule({"setns"}, "a keeper gives a copy of a session its mounts", args=[kind]),
        *map(_socket, FAMILIES),
    )


def _profile(*rules: Rule) -> str:
    unknown = _rule({"clone3"}, "its flags are out of sight", "ERRNO", errnoRet=errno.ENOSYS)
    profile = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "archMap": [{"architecture": name, "subArchitectures": []} for name in ARCHITECTURES],
        "syscalls": [*rules, unknown],
    }
    return json.dumps(profile, indent=2) + "\n"


def _rule(names: Set[str], comment: str, action: str = "ALLOW", **more: object) -> Rule:
    return {"comment": comment, "names": sorted(names), "action": f"SCMP_ACT_{action}", **more}


def _socket(family: str) -> Rule:
    arguments = [{"index": 0, "value": FAMILIES[family], "op": "SCMP_CMP_EQ"}]
    return _rule({"socket"}, family, args=arguments)


def _plain(calls: SystemCalls) -> frozenset[str]:
    """What is allowed whatever its arguments; sockets have rules of their own."""
    return calls.allowed - {"socket"}
