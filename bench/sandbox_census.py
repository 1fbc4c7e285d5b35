"""What a running sandbox holds of the machine: processes, descriptors, mounts, groups, files,
memory.

Two censuses, taken at rest before and after some work, say what the work left behind. The leak
run of the bench and the tests with hostile programs use the same ones.

Covered: the process tree of the service; orphans with a user id of the sandbox; open descriptors,
mounts and memory of processes that are there both times; control groups named by its supervisors;
files of its temporary folder, and new files of other temporary folders that belong to users of
the sandbox; System V IPC objects. Not covered: kernel memory that belongs to no process, and what
other services on the machine hold.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

FIRST_SANDBOX_USER = 1_879_048_192
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the service."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    descriptors: int
    mounts: int
    resident_bytes: int
    proportional_bytes: int


@dataclass(frozen=True, slots=True)
class Census:
    """What a service holds at one moment."""

    processes: dict[int, Process]
    orphans: dict[str, int]
    groups: dict[str, int]
    files: frozenset[str]
    ipc_objects: int
    host_mounts: frozenset[str]
    folder: str = ""

    @property
    def proportional_bytes(self) -> int:
        """Memory of the whole tree, shared pages counted once."""
        return sum(process.proportional_bytes for process in self.processes.values())


def children_of() -> dict[int, list[int]]:
    """The children of every process of the machine."""
    found: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208  # names, not paths
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields:
                found.setdefault(int(fields[1]), []).append(int(entry))
    return found


def tree(root: int) -> list[int]:
    """A process and its descendants, parents first."""
    children, found = children_of(), [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def cpu_s(root: int) -> float:
    """CPU seconds that a tree has used, children that it waited for included."""
    ticks = 0
    for pid in tree(root):
        fields = _stat(pid)
        ticks += sum(int(value) for value in fields[11:15]) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def take(root: int, folder: str = "") -> Census:
    """Counts now; `folder` is the service's temporary folder, if it has one of its own."""
    pids = tree(root)
    processes = {pid: process for pid in pids if (process := _process(pid)) is not None}
    return Census(
        processes=processes,
        orphans=_orphans(root),
        groups=_groups(),
        files=_files(folder),
        ipc_objects=_ipc_objects(),
        host_mounts=_host_mounts(),
        folder=folder,
    )


def left_behind(before: Census, after: Census) -> list[str]:
    """What is there now and was not, in words; memory is not judged here."""
    ours = before.processes.keys() | after.processes.keys()
    lines = [
        f"orphan {text}"
        for text, owner in after.orphans.items()
        if text not in before.orphans and owner in {pid % 65_536 for pid in ours}
    ]
    more = len(after.processes) - len(before.processes)
    if more > 0:
        names = sorted(p.name for pid, p in after.processes.items() if pid not in before.processes)
        lines.append(f"{more} processes more: {', '.join(names)}")
    for pid in before.processes.keys() & after.processes.keys():
        old, new = before.processes[pid], after.processes[pid]
        if new.descriptors > old.descriptors:
            lines.append(f"{new.name} ({pid}) {new.descriptors - old.descriptors} descriptors more")
        if new.mounts > old.mounts:
            lines.append(f"{new.name} ({pid}) {new.mounts - old.mounts} mounts more")
    lines += [
        f"group {path}"
        for path, owner in after.groups.items()
        if path not in before.groups and owner in ours and owner not in after.processes
    ]
    lines += [
        f"group {path}"
        for path, owner in after.groups.items()
        if path not in before.groups and owner in before.processes and owner in after.processes
    ]
    lines += [f"file {name}" for name in sorted(after.files - before.files)]
    if after.ipc_objects > before.ipc_objects:
        lines.append(f"{after.ipc_objects - before.ipc_objects} System V objects more")
    lines += [f"mount {path}" for path in sorted(after.host_mounts - before.host_mounts)]
    return lines


def at_rest(root: int, folder: str = "", quiet_s: float = 0.5, limit_s: float = 10.0) -> Census:
    """The census once no process has come or gone for a while."""
    ends_s = time.monotonic() + limit_s
    census, since_s = take(root, folder), time.monotonic()
    while time.monotonic() < min(ends_s, since_s + quiet_s):
        time.sleep(0.05)
        now = take(root, folder)
        if now.processes.keys() != census.processes.keys():
            since_s = time.monotonic()
        census = now
    return census


def settle(root: int, before: Census, limit_s: float = 10.0) -> list[str]:
    """What is left behind when the service has had time to come to rest."""
    ends_s = time.monotonic() + limit_s
    while (left := left_behind(before, take(root, before.folder))) and time.monotonic() < ends_s:
        time.sleep(0.1)
    return left


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state first, then the parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _process(pid: int) -> Process | None:
    fields = _stat(pid)
    if not fields:
        return None
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        name = " ".join(os.fsdecode(word) for word in words[:5])[:80].strip()
        sizes = dict.fromkeys(("Rss", "Pss"), 0)
        for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()[1:]:
            kind, _, rest = line.partition(":")
            if kind in sizes:
                sizes[kind] = int(rest.split()[0]) * 1024
        return Process(
            pid=pid,
            parent=int(fields[1]),
            name=name or "?",
            cpu_s=sum(int(value) for value in fields[11:15]) / os.sysconf("SC_CLK_TCK"),
            descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
            mounts=_own_mounts(pid),
            resident_bytes=sizes["Rss"],
            proportional_bytes=sizes["Pss"],
        )
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _lines(path: Path) -> int:
    return _text(path).count("\n")


def _orphans(root: int) -> dict[str, int]:
    """Processes of a user of the sandbox that hang from no service, and their supervisor.

    The user ids say so: 64 for each supervisor, from its process id modulo 65536.
    """
    found, ours = {}, set(tree(root))
    for pid in children_of().get(1, ()):
        status = _text(Path(f"/proc/{pid}/status"))
        users = [line for line in status.splitlines() if line.startswith("Uid:")]
        user = int(users[0].split()[1]) if users else 0
        if user >= FIRST_SANDBOX_USER and pid not in ours:
            name = status.partition("\n")[0]
            found[f"{pid} {name}"] = (user - FIRST_SANDBOX_USER) // 64
    return found


def _groups() -> dict[str, int]:
    """Control groups of boxes, with the process id of the supervisor that named them."""
    found = {}
    for folder, folders, _ in os.walk(_GROUPS):
        for name in folders:
            owner = name.removeprefix("assay-box-").split("-")[0]
            if name.startswith("assay-box-") and owner.isdigit():
                found[f"{folder}/{name}"] = int(owner)
    return found


def _host_mounts() -> frozenset[str]:
    """Where the sandbox would mount, seen from outside: nothing of it may show there."""
    points = (line.split()[4] for line in _text(Path("/proc/self/mountinfo")).splitlines())
    return frozenset(point for point in points if "assay-box" in point or "/sandbox" in point)


def _own_mounts(pid: int) -> int:
    """Mounts of a process that has a mount namespace of its own; others mount beside us."""
    try:
        if Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink():
            return 0
    except OSError:
        return 0
    return _lines(Path(f"/proc/{pid}/mountinfo"))


def _files(folder: str) -> frozenset[str]:
    """Files of the service's folder, and those of sandbox users in the machine's temporary ones."""
    found = set()
    for top in _TEMPORARY:
        for entry in os.scandir(top) if Path(top).is_dir() else ():
            try:
                user = entry.stat(follow_symlinks=False).st_uid
            except FileNotFoundError:
                continue
            if user >= FIRST_SANDBOX_USER or "assay_mark" in entry.name:
                found.add(entry.path)
    if folder:
        for where, folders, files in os.walk(folder):
            if "cache" not in where:  # compiled programs are kept on purpose, within a bound
                found.update(str(Path(where) / name) for name in (*files, *folders))
    return frozenset(found)


def _ipc_objects() -> int:
    return sum(max(0, _lines(path) - 1) for path in Path("/proc/sysvipc").glob("*"))
