"""The use of a tree of processes, read from /proc, for machines without control groups."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Use:
    """CPU seconds so far, resident bytes and number of a tree of processes."""

    cpu_s: float = 0.0
    resident_bytes: int = 0
    processes: int = 0


def descendants(pid: int) -> list[int]:
    """Every process beneath `pid`, without itself. Those that end meanwhile may be missing."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")  # noqa: PTH208  # half the time
            for task in tasks:
                text = Path(f"/proc/{parent}/task/{task}/children").read_text()
                waiting += (children := [int(child) for child in text.split()])
                found += children
        except OSError:
            continue
    return found


def use_beneath(pid: int) -> Use:
    """The use of the processes beneath `pid` together."""
    cpu, pages, count = 0, 0, 0
    for child in descendants(pid):
        try:
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        cpu += sum(int(field) for field in fields[11:15])
        pages += int(fields[21])
        count += int(fields[17])
    return Use(cpu / _TICKS, pages * _PAGE, count)


def runs_beneath(pid: int) -> bool:
    """Whether a process beneath `pid` is alive; zombies are not."""
    for child in descendants(pid):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in {"Z", "X"}:
            return True
    return False
