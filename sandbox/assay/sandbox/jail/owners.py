"""Names of control groups and folders of the jail, from which their owner can be told.

A name holds the owner's process id, the time at which that process started, since ids are used
again, and its namespace of process ids.

Covered: what a killed service left; what living services hold is never taken for left.
Not covered: what a container left whose process namespace is gone. Nobody else can tell whether its
owner lives; it goes with the container.
"""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "assay-box-"
_DEAD = frozenset({"Z", "X"})


def name(number: int) -> str:
    """The name of what this process owns for its box of a number."""
    pid = os.getpid()
    return f"{PREFIX}{pid}-{_started(pid)}-{_namespace()}-{number}"


def owner_and_box(entry: str) -> tuple[int, int] | None:
    """The process id and the box in a name that `name` made, on this machine or another."""
    parts = entry.removeprefix(PREFIX).split("-")[:4]
    if not entry.startswith(PREFIX) or len(parts) < 4 or not all(map(str.isdigit, parts)):
        return None
    return int(parts[0]), int(parts[3])


def is_left(path: Path) -> bool:
    """Whether an entry is this user's and its owner, of this process namespace, is dead."""
    if owner_and_box(path.name) is None:
        return False
    pid, started, namespace = path.name.removeprefix(PREFIX).split("-")[:3]
    try:
        if path.lstat().st_uid != os.geteuid():
            return False
    except OSError:
        return False
    return namespace == _namespace() and started != _started(int(pid))


def _started(pid: int) -> str:
    """When a process started, in clock ticks since the machine did; empty for a dead one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _DEAD else fields[19]


def _namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)
