"""What a server of sessions holds of the machine at rest, and what some work left behind.

Spare sessions come and go, so that processes and groups are counted, not named.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.sandbox_census import tree

from process_tree import named

_GROUPS = Path("/sys/fs/cgroup")
_FIRST_USER = 0x7000_0000
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")


@dataclass(frozen=True, slots=True)
class Holdings:
    """Counts of one moment.

    Attributes:
        descriptors: of the server's lasting processes, by process.
        files: in temporary folders, of users of the sandbox.
    """

    processes: int
    groups: int
    mounts: int
    sockets: int
    ipc_objects: int
    descriptors: dict[int, int]
    files: frozenset[str]


def descriptors(pid: int) -> int:
    """How many a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def host(pid: int) -> int:
    """The process of a server that keeps its sessions."""
    [found] = named(tree(pid), "assay.sandbox.sessions.host")
    return found


def count(pid: int, lasting: frozenset[int] | None = None) -> Holdings:
    """Counts now; `lasting`: the processes whose descriptors are counted."""
    pids = tree(pid)
    if lasting is None:
        lasting = frozenset(one for one in pids if _is_lasting(one))
    return Holdings(
        processes=len(pids),
        groups=len(_groups({f"-{one}-" for one in pids})),
        mounts=Path("/proc/self/mountinfo").read_text().count("\n"),
        sockets=Path("/proc/net/unix").read_text().count("assay"),
        ipc_objects=sum(
            max(0, path.read_text().count("\n") - 1) for path in Path("/proc/sysvipc").glob("*")
        ),
        descriptors={one: descriptors(one) for one in lasting},
        files=_files(),
    )


def left_behind(pid: int, before: Holdings, limit_s: float = 10.0) -> list[str]:
    """What is more than before once the server had time to come to rest."""
    ends_s = time.monotonic() + limit_s
    while True:
        try:
            after = count(pid, frozenset(before.descriptors))
        except FileNotFoundError as gone:
            return [f"a process of the server has ended: {gone.filename}"]
        lines = [
            f"{name}: {getattr(before, name)} before, {getattr(after, name)} now"
            for name in ("processes", "groups", "mounts", "sockets", "ipc_objects")
            if getattr(after, name) > getattr(before, name)
        ]
        lines += [
            f"descriptors of {one}: {before.descriptors[one]} before, {now} now"
            for one, now in after.descriptors.items()
            if now > before.descriptors[one]
        ]
        lines += [f"file {path}" for path in sorted(after.files - before.files)]
        if not lines or time.monotonic() > ends_s:
            return lines
        time.sleep(0.05)


def at_rest(pid: int, quiet_s: float = 0.7, limit_s: float = 15.0) -> Holdings:
    """The count once it does not change for a while."""
    ends_s = time.monotonic() + limit_s
    held, since_s = count(pid), time.monotonic()
    while time.monotonic() < min(ends_s, since_s + quiet_s):
        time.sleep(0.1)
        now = count(pid)
        if now != held:
            held, since_s = now, time.monotonic()
    return held


def _is_lasting(pid: int) -> bool:
    """Front, supervisors and host: not the zygotes' children."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"-m\0assay.sandbox" in line and b"assay.sandbox.zygote" not in line
    except OSError:
        return False


def _groups(owners: set[str]) -> list[str]:
    return [
        f"{where}/{name}"
        for where, folders, _ in os.walk(_GROUPS)
        for name in folders
        if name.startswith("assay-box-") and any(owner in f"{name}-" for owner in owners)
    ]


def _files() -> frozenset[str]:
    found = set()
    for top in _PLACES:
        for entry in os.scandir(top) if Path(top).is_dir() else ():
            try:
                if entry.stat(follow_symlinks=False).st_uid >= _FIRST_USER:
                    found.add(entry.path)
            except FileNotFoundError:
                continue
    return frozenset(found)
