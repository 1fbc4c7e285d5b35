"""The processes of a server, for tests: found by who started them and by their command line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path


def children(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> set[int]:
    """Process ids of everything below a process."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        with contextlib.suppress(FileNotFoundError):
            fresh = set(children(todo.pop())) - found
            found |= fresh
            todo += fresh
    return found


def named(pids: Iterable[int], part: str) -> list[int]:
    """Those of some processes that live and whose command line holds a text."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if part.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
