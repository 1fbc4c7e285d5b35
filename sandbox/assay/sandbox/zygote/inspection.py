"""What a process of a family holds that a copy of it would share or lose. Runs in the keeper.

Read from /proc, from outside of the process, so that it cannot lie; each finding is a few words for
the caller. The process is dumpable, else nothing of it can be read, which is a finding too.
"""

from __future__ import annotations

import math
import os
import stat

_SHARED_BY_ALL = ("/gconv-modules.cache",)  # glibc's, read only, in every process
_NAMES = 8  # findings of one kind that are named


class Hidden(Exception):
    """The process does not let itself be looked at."""


def status_of(process: int) -> dict[str, str]:
    """The fields of /proc/PID/status.

    Raises:
        Hidden: it has ended, or hides.
    """
    try:
        return _status(f"/proc/{process}/status", None)
    except OSError as error:
        raise Hidden from error


def _status(path: str, folder: int | None) -> dict[str, str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        pairs = (line.split(":", 1) for line in file)
        return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


def cpu_limit_s(processes: int, process: int) -> float:
    """The hard limit of its CPU time, which it may have lowered; also of one that nobody reaped."""
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC
        with open(os.open(f"{process}/limits", flags, dir_fd=processes)) as file:
            for line in file:
                if line.startswith("Max cpu time"):
                    hard = line.split()[4]
                    return math.inf if hard == "unlimited" else float(hard)
    except OSError:
        pass
    return math.inf


def threads(process: int) -> list[str]:
    """Its other threads."""
    try:
        others = len(os.listdir(f"/proc/{process}/task")) - 1
    except OSError as error:
        raise Hidden from error
    return [f"{others} thread{'s' if others > 1 else ''}"] if others else []


def strangers(processes: int, known: set[int]) -> list[tuple[int, int, str]]:
    """Processes of the family that are not known, the dead that nobody reaped among them.

    Each with id, user and name. `processes` is a folder of all, as a process may hide from /proc.
    """
    found = []
    for entry in os.listdir(processes):
        if not entry.isdigit() or int(entry) in known:
            continue
        try:
            status = _status(f"{entry}/status", processes)
            user = int(status["Uid"].split()[0])
        except (OSError, KeyError):
            continue  # it has ended meanwhile
        found.append((int(entry), user, status.get("Name", "?")[:32]))
    return found


class Allowed:
    """What a copy may hold.

    Attributes:
        inodes: device and inode of the pipes and sockets that it was given.
        folder_device: device of its own folders.
        mount_space: where its mounts are listed.
    """

    def __init__(self, inodes: set[tuple[int, int]], folder_device: int) -> None:
        self.inodes = inodes
        self.folder_device = folder_device
        self.proc_device = os.stat("/proc").st_dev


def descriptors(process: int, allowed: Allowed) -> list[str]:
    """Descriptors that it shares with another process.

    A file that was opened again lies on a mount of the copy's own mount namespace.
    """
    found: list[str] = []
    folder = f"/proc/{process}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError as error:
        raise Hidden from error
    mounts: set[int] | None = None
    for number in numbers:
        try:
            status = os.stat(f"{folder}/{number}")
        except OSError as error:
            raise Hidden from error
        if (status.st_dev, status.st_ino) in allowed.inodes or _is_memory_device(status):
            continue
        named = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        if named and status.st_nlink and status.st_dev != allowed.proc_device:
            mounts = _mounts(process) if mounts is None else mounts
            if _mount_of(process, number) in mounts:
                continue
        found.append(_name(f"{folder}/{number}", status))
    return found[:_NAMES]


def working_folder(process: int, allowed: Allowed) -> list[str]:
    """Its working directory, where that is no folder of its own."""
    path = f"/proc/{process}/cwd"
    try:
        own = os.stat(path).st_dev == allowed.folder_device
        if own or os.statvfs(path).f_flag & os.ST_RDONLY:
            return []
    except OSError as error:
        raise Hidden from error
    return ["a working directory outside of its files"]


def mappings(process: int, folder_device: int) -> list[str]:
    """Memory that it shares with other processes, and mapped files of a session's folders."""
    device = f"{os.major(folder_device):02x}:{os.minor(folder_device):02x}"
    found: list[str] = []
    try:
        with open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.rstrip("\n").split(None, 5)
                name = fields[5] if len(fields) > 5 else ""
                if fields[1][3] == "s":
                    if not name.endswith(_SHARED_BY_ALL) or fields[1][1] == "w":
                        found.append("shared memory")
                elif fields[3] == device:
                    found.append(f"a mapped file ({os.path.basename(name)[:64]})")
    except OSError as error:
        raise Hidden from error
    return list(dict.fromkeys(found))[:_NAMES]


def _is_memory_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) == 1


def _mount_of(process: int, number: str) -> int:
    try:
        with open(f"/proc/{process}/fdinfo/{number}") as file:
            for line in file:
                if line.startswith("mnt_id:"):
                    return int(line.split()[1])
    except OSError as error:
        raise Hidden from error
    return -1


def _mounts(process: int) -> set[int]:
    try:
        with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="replace") as file:
            return {int(line.split(None, 1)[0]) for line in file}
    except OSError as error:
        raise Hidden from error


def _name(path: str, status: os.stat_result) -> str:
    try:
        target = os.readlink(path)
    except OSError:
        target = "?"
    kind = target.partition(":")[0]
    if kind in {"pipe", "socket"}:
        return f"a {kind}"
    if kind == "anon_inode":
        return f"a descriptor of {target.partition(':')[2].strip('[]')}"
    if target.endswith(" (deleted)") or not status.st_nlink:
        return f"a deleted open file ({os.path.basename(target.removesuffix(' (deleted)'))[:64]})"
    return f"an open file ({os.path.basename(target)[:64]})"
