"""A process of the pool is killed and reaped, whatever cancels who waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.kit.pool import forked, link
from assay.kit.pool.forked import ForkedWorkers
from assay.kit.pool.link import ChildLink, ChildWorkers, Command, LinkLimits, wait_or_kill
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.kit.pool.worker import WorkerLimits

# Ready at once, where it has a link, and deaf to everything.
DEAF = """
import socket, sys, time
from assay.kit.pool import frames
if sys.argv[-1] == "ready":
    line = socket.socket(fileno=int(sys.argv[2]))
    line.sendall(frames.pack(frames.READY, 0, b"{}"))
time.sleep(600)
"""
SLOW_TO_STOP = LinkLimits(start_s=60, stop_s=60)


@pytest.fixture
def spawned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Every process that is spawned in the test; deaf, and killed at its end if it lives."""
    made: list[subprocess.Popen[bytes]] = []
    script = tmp_path / "deaf.py"
    script.write_text(DEAF)

    def spawn(module: str, arguments: Any, environment: Any, end: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(script), *arguments]
        made.append(subprocess.Popen(command, env=environment, pass_fds=(end.fileno(),)))
        return made[-1]

    monkeypatch.setattr(link, "spawn", spawn)
    monkeypatch.setattr(forked, "spawn", spawn)
    yield made
    for process in made:
        process.kill()
        process.wait()


def child(how: str) -> Command:
    return Command("a worker", "deaf", (how,), link.environment_of_a_worker())


async def cancelled(work: Any, begun: Callable[[], object]) -> None:
    """Cancels work once it has begun; asks again, as an impatient caller does."""
    task = asyncio.ensure_future(work)
    ends_s = time.monotonic() + 10
    while not begun():
        assert time.monotonic() < ends_s, "it was not begun"
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def all_reaped(processes: list[subprocess.Popen[bytes]]) -> None:
    """Whether somebody waited for each, who is not this test."""
    ends_s = time.monotonic() + 5
    while any(process.returncode is None for process in processes):
        assert time.monotonic() < ends_s, "a process is still running, or nobody waited for it"
        await asyncio.sleep(0.01)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


async def test_a_wait_that_is_cancelled_kills_and_reaps(sleeper: subprocess.Popen[bytes]) -> None:
    await cancelled(wait_or_kill(sleeper, 60), lambda: True)
    await all_reaped([sleeper])


async def test_a_start_that_is_cancelled_leaves_no_process(
    spawned: list[subprocess.Popen[bytes]],
) -> None:
    one = ChildLink(child("mute"), SLOW_TO_STOP, lambda *_: None, lambda: None)
    await cancelled(one.start(), lambda: spawned)
    workers = ForkedWorkers("no:work", "", WorkerLimits(0, 1, 0), SLOW_TO_STOP)
    await cancelled(workers.start(1), lambda: len(spawned) == 2)
    await all_reaped(spawned)


async def test_a_close_that_is_cancelled_leaves_no_process(
    spawned: list[subprocess.Popen[bytes]],
) -> None:
    class Plain:
        """A codec that is not used."""

    workers = ChildWorkers(lambda slot: child("ready"), SLOW_TO_STOP)
    codec: Any = Plain()
    pool: WorkerPool[bytes, bytes] = WorkerPool(PoolConfig(2, 10, 10**6), workers, codec)
    await pool.start()
    assert [process.poll() for process in spawned] == [None, None]
    await cancelled(pool.close(), lambda: True)
    await all_reaped(spawned)
