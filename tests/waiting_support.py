"""Waiting for what has no event: a condition, the end of a process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path


async def until(condition: Callable[[], object], limit_s: float = 30.0) -> None:
    """Waits until a condition holds; fails the test where it does not within the limit."""
    ends_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_s, "the condition did not come to hold"
        await asyncio.sleep(0.01)


def exists(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
