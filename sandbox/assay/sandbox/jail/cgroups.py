"""Control groups of one box: its memory, processes and CPU time, counted by the kernel.

Version 1 and 2, where a directory beneath our own group can be made and written. Elsewhere
`open_group` returns None, and the jail limits each process by rlimits and counts the tree itself
(`assay.sandbox.jail.monitor`).

Not covered: block and network bandwidth.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Protocol

from assay.sandbox.jail import owners

_ROOT = Path("/sys/fs/cgroup")
_CACHE_BYTES = 32 * 2**20  # more than this of files read earlier is dropped before a run
_SLACK_BYTES = 4 * 2**20  # page tables, sockets and the like, which the kernel counts as well


class ControlGroup(Protocol):
    """The interface to a control group."""

    def add(self, pid: int) -> None:
        """Moves a process into the group."""

    def doors(self) -> list[int]:
        """Files into which a process writes "0" to enter the group, for the caller to close.

        Far faster than `add`, for which the kernel waits until no process forks. None in version 2.
        """

    def settle(self) -> None:
        """Counts what the group uses now as the box's own, not the programs'."""

    def begin(self, memory_bytes: int, processes: int) -> None:
        """Sets the limits for a run and starts its counters."""

    def cpu_s(self) -> float:
        """CPU seconds since `begin`."""

    def used_bytes(self) -> int:
        """Memory in use, beyond what was there before."""

    def peak_bytes(self) -> int:
        """Most memory since `begin`, beyond what was there before."""

    def memory_kills(self) -> int:
        """Processes ended at the group's limit of memory since the last call.

        The kernel also counts those that the host ended for a lack of its own; they are left out
        where the
        group never reached its limit.
        """

    def refused_processes(self) -> int:
        """Processes that could not be started for the limit since `begin`."""

    def close(self) -> None:
        """Removes the group; its processes must be dead."""

    def remove(self) -> bool:
        """As `close`, without waiting; whether it is removed."""


class _File:
    """A file of a group, kept open: it is read or written in every run."""

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self._descriptor = os.open(path, flags | os.O_CLOEXEC)

    def number(self) -> int:
        return int(os.pread(self._descriptor, 64, 0))

    def keyed(self, key: bytes) -> int:
        for line in os.pread(self._descriptor, 4096, 0).splitlines():
            name, _, value = line.partition(b" ")
            if name == key:
                return int(value)
        return 0

    def write(self, text: str) -> None:
        os.pwrite(self._descriptor, text.encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)


class GroupV1:
    """Version 1: one directory in each of three hierarchies, and in that of CPU shares.

    Shares give a program of a hundred processes the CPU of one; where they cannot be had, the box
    does
    without.
    """

    def __init__(self, name: str, root: Path = _ROOT) -> None:
        own = _own_v1()
        memory = root / "memory" / own["memory"].lstrip("/") / name
        pids = root / "pids" / own["pids"].lstrip("/") / name
        cpu = root / "cpuacct" / own["cpuacct"].lstrip("/") / name
        self._folders: tuple[Path, ...] = (memory, pids, cpu)
        self._files: list[_File] = []
        self._base_bytes = self._limit_bytes = self._processes = 0
        self._cpu_ns = self._kills = self._refused = self._failures = 0
        try:
            for folder in self._folders:
                folder.mkdir()
            self._folders += _shares(cpu, root, own, name)
            self._limit = self._open(memory / "memory.limit_in_bytes", os.O_RDWR)
            self._usage = self._open(memory / "memory.usage_in_bytes")
            self._peak = self._open(memory / "memory.max_usage_in_bytes", os.O_RDWR)
            self._oom = self._open(memory / "memory.oom_control")
            self._empty = self._open(memory / "memory.force_empty", os.O_WRONLY)
            self._failed = self._open(memory / "memory.failcnt")
            self._pids_max = self._open(pids / "pids.max", os.O_RDWR)
            self._pids_events = self._open(pids / "pids.events")
            self._cpu = self._open(cpu / "cpuacct.usage")
        except OSError:
            self.close()
            raise
        with contextlib.suppress(OSError):
            (memory / "memory.swappiness").write_text("0")

    def _open(self, path: Path, flags: int = os.O_RDONLY) -> _File:
        self._files.append(_File(path, flags))
        return self._files[-1]

    def add(self, pid: int) -> None:  # noqa: D102  # as in Group
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def doors(self) -> list[int]:  # noqa: D102
        return [os.open(folder / "tasks", os.O_WRONLY | os.O_CLOEXEC) for folder in self._folders]

    def settle(self) -> None:  # noqa: D102
        self._base_bytes = self._usage.number() + _SLACK_BYTES

    def begin(self, memory_bytes: int, processes: int) -> None:  # noqa: D102
        limit = self._base_bytes + memory_bytes
        if limit != self._limit_bytes:
            self._limit.write(str(limit))
            self._limit_bytes = limit
        if processes != self._processes:  # the zygote is one of them
            self._pids_max.write(str(processes + 1))
            self._processes = processes
        if self._usage.number() > self._base_bytes + _CACHE_BYTES:
            self._empty.write("0")  # files that earlier runs read
        self._peak.write("0")
        self._cpu_ns = self._cpu.number()

    def cpu_s(self) -> float:  # noqa: D102
        return (self._cpu.number() - self._cpu_ns) / 1e9

    def used_bytes(self) -> int:  # noqa: D102
        return max(0, self._usage.number() - self._base_bytes)

    def peak_bytes(self) -> int:  # noqa: D102
        return max(0, self._peak.number() - self._base_bytes)

    def memory_kills(self) -> int:  # noqa: D102
        before, self._kills = self._kills, self._oom.keyed(b"oom_kill")
        failures, self._failures = self._failures, self._failed.number()
        return self._kills - before if self._failures > failures else 0

    def refused_processes(self) -> int:  # noqa: D102
        before, self._refused = self._refused, self._pids_events.keyed(b"max")
        return self._refused - before

    def close(self) -> None:  # noqa: D102
        _close(self._files, self._folders)

    def remove(self) -> bool:  # noqa: D102
        return _remove(self._files, self._folders)


def _shares(accounts: Path, root: Path, own: dict[str, str], name: str) -> tuple[Path, ...]:
    """The directory of CPU shares, made, where it is not that of CPU accounts."""
    folder = root / "cpu" / own.get("cpu", "").lstrip("/") / name
    try:
        if folder.parent.resolve(strict=True) == accounts.parent.resolve():
            return ()
        folder.mkdir()
    except OSError:
        return ()
    return (folder,)


class GroupV2:
    """Version 2: one directory beneath our own group, which must have been delegated to us."""

    def __init__(self, name: str, root: Path = _ROOT) -> None:
        parent = root / _own_v2().lstrip("/")
        _delegate(parent)
        folder = parent / name
        self._folder = folder
        self._files: list[_File] = []
        self._base_bytes = self._cpu_us = self._kills = self._refused = self._failures = 0
        try:
            folder.mkdir()
            self._limit = self._open(folder / "memory.max", os.O_RDWR)
            self._usage = self._open(folder / "memory.current")
            self._events = self._open(folder / "memory.events")
            self._pids_max = self._open(folder / "pids.max", os.O_RDWR)
            self._pids_events = self._open(folder / "pids.events")
            self._cpu = self._open(folder / "cpu.stat")
        except OSError:
            self.close()
            raise
        # The peak can be reset from Linux 6.12 on; before that it is not reported.
        self._peak: _File | None = None
        with contextlib.suppress(OSError):
            self._peak = self._open(folder / "memory.peak", os.O_RDWR)
        self._reclaim: _File | None = None
        with contextlib.suppress(OSError):
            self._reclaim = self._open(folder / "memory.reclaim", os.O_WRONLY)
        with contextlib.suppress(OSError):
            (folder / "memory.swap.max").write_text("0")

    def _open(self, path: Path, flags: int = os.O_RDONLY) -> _File:
        self._files.append(_File(path, flags))
        return self._files[-1]

    def add(self, pid: int) -> None:  # noqa: D102
        (self._folder / "cgroup.procs").write_text(str(pid))

    def doors(self) -> list[int]:  # noqa: D102
        return []

    def settle(self) -> None:  # noqa: D102
        self._base_bytes = self._usage.number() + _SLACK_BYTES

    def begin(self, memory_bytes: int, processes: int) -> None:  # noqa: D102
        self._limit.write(str(self._base_bytes + memory_bytes))
        self._pids_max.write(str(processes + 1))
        cached = self._usage.number() - self._base_bytes
        if cached > _CACHE_BYTES and self._reclaim is not None:
            with contextlib.suppress(OSError):  # it could not free as much
                self._reclaim.write(str(cached))
        if self._peak is not None:
            self._peak.write("reset")
        self._cpu_us = self._cpu.keyed(b"usage_usec")

    def cpu_s(self) -> float:  # noqa: D102
        return (self._cpu.keyed(b"usage_usec") - self._cpu_us) / 1e6

    def used_bytes(self) -> int:  # noqa: D102
        return max(0, self._usage.number() - self._base_bytes)

    def peak_bytes(self) -> int:  # noqa: D102
        if self._peak is None:
            return 0
        return max(0, self._peak.number() - self._base_bytes)

    def memory_kills(self) -> int:  # noqa: D102
        before, self._kills = self._kills, self._events.keyed(b"oom_kill")
        failures, self._failures = self._failures, self._events.keyed(b"max")
        return self._kills - before if self._failures > failures else 0

    def refused_processes(self) -> int:  # noqa: D102
        before, self._refused = self._refused, self._pids_events.keyed(b"max")
        return self._refused - before

    def close(self) -> None:  # noqa: D102
        _close(self._files, (self._folder,))

    def remove(self) -> bool:  # noqa: D102
        return _remove(self._files, (self._folder,))


def open_group(name: str) -> tuple[ControlGroup | None, str]:
    """A group for a box, or None and why there is none."""
    try:
        if (_ROOT / "cgroup.controllers").exists():
            return GroupV2(name), ""
        return GroupV1(name), ""
    except (OSError, KeyError) as error:
        return None, f"no control group can be made: {error}"


def sweep(*, everywhere: bool) -> None:
    """Removes groups that were left behind, and ends what runs in them.

    Args:
        everywhere: look beneath every visible group, as the last service may have run in another
            one;
            else beneath our own only.
    """
    for parent in _parents(everywhere=everywhere):
        for folder in parent.glob(f"{owners.PREFIX}*"):
            if owners.is_left(folder):
                _empty(folder)
                _close([], (folder,))


def _parents(*, everywhere: bool) -> list[Path]:
    kinds = ("memory", "pids", "cpuacct", "cpu")
    if everywhere:
        tops = [_ROOT / kind for kind in kinds if (_ROOT / kind).exists()] or [_ROOT]
        return [Path(folder) for top in tops for folder, _, _ in os.walk(top)]
    parents: list[Path] = []
    with contextlib.suppress(OSError, KeyError):
        own = _own_v1()
        parents += [_ROOT / kind / own[kind].lstrip("/") for kind in kinds if kind in own]
    with contextlib.suppress(OSError, KeyError):
        parents.append(_ROOT / _own_v2().lstrip("/"))
    return parents


def _empty(folder: Path) -> None:
    """Kills what runs in a group whose owner is dead; where possible, it is frozen meanwhile."""
    with contextlib.suppress(OSError), (folder / "pids.max").open("r+") as most:
        most.write("0")
    with contextlib.suppress(OSError):
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            if pid > 1:  # 0 is one of another process namespace
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _delegate(parent: Path) -> None:
    """Lets the groups beneath count; a group that does may hold no processes itself."""
    wanted = {"memory", "pids", "cpu"}
    if wanted <= set((parent / "cgroup.subtree_control").read_text().split()):
        return
    service = parent / "assay-service"
    service.mkdir(exist_ok=True)
    for pid in (parent / "cgroup.procs").read_text().split():
        (service / "cgroup.procs").write_text(pid)
    (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(wanted)))


def _own_v1() -> dict[str, str]:
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, kinds, path = line.split(":", 2)
        if number != "0":
            groups.update(dict.fromkeys(kinds.split(","), path))
    return groups


def _own_v2() -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line[3:].removesuffix("/assay-service")
    raise KeyError("no version 2 group")


def _close(files: list[_File], folders: tuple[Path, ...]) -> None:
    for _ in range(50):  # the kernel frees a dead process's place a moment later
        if _remove(files, folders):
            break
        time.sleep(0.01)


def _remove(files: list[_File], folders: tuple[Path, ...]) -> bool:
    for file in files:
        file.close()
    files.clear()
    removed = True
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            removed = False
    return removed
