"""The pool with real workers that die, hang, lie and grow: each costs its own job and no other."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from assay.kit.pool.forked import ForkedWorkers
from assay.kit.pool.frames import FrameError
from assay.kit.pool.jobs import End, Job
from assay.kit.pool.link import (
    ChildWorkers,
    Command,
    LinkError,
    LinkLimits,
    Workers,
    environment_of_a_worker,
)
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.kit.pool.worker import WorkerLimits
from waiting_support import exists, until

CHILD = '''
"""Does with its link what a job says."""
import argparse, json, os, socket, sys, time
from assay.kit.pool import frames

parser = argparse.ArgumentParser()
parser.add_argument("--link-fd", type=int)
parser.add_argument("how")
options, _ = parser.parse_known_args()
line = socket.socket(fileno=options.link_fd)
if options.how == "end":
    sys.exit(3)
if options.how == "garbage":
    line.sendall(b"\\xff" * 100)
    time.sleep(60)
if options.how == "refuse":
    line.sendall(frames.pack(frames.NOT_READY, 0, b"there is no model"))
    time.sleep(60)
if options.how == "hang":
    time.sleep(60)
line.sendall(frames.pack(frames.READY, 0, b"{}"))
reader = frames.FrameReader()
while data := line.recv(65536):
    for frame in reader.feed(data):
        if frame.kind in frames.COMMANDS:
            continue
        word, _, rest = frames.read_job(frame.payload)[0].decode().partition(" ")
        say = lambda kind, payload=b"": line.sendall(frames.pack(kind, frame.number, payload))
        if word == "silent":
            time.sleep(60)
        if word == "expired":
            say(frames.EXPIRED)
        say(frames.STARTED)
        if word == "die":
            os._exit(1)
        elif word == "sleep":
            time.sleep(float(rest))
        elif word == "stutter":
            say(frames.STARTED)
            line.sendall(frames.pack(frames.DONE, frame.number + 1000, b"of nobody"))
            say(frames.DONE, b"stutter")
        elif word == "flood":
            line.sendall(frames.HEADER.pack(2**31, b"D", frame.number) + bytes(2**16))
        elif word == "unknown":
            say(b"?")
        elif word == "environment":
            say(frames.DONE, json.dumps(sorted(os.environ)).encode())
        say(frames.DONE, word.encode())
'''

WORK = '''
"""Does what a job says, forked."""
import os, time

def prepare(settings):
    if settings == "broken":
        raise ImportError("no such library")
    return Work(settings, os.getpid())

class Work:
    def __init__(self, settings, loaded_in):
        self.settings, self.loaded_in = settings, loaded_in

    def take(self, body):
        word, _, rest = body.decode().partition(" ")
        if word == "hang":
            time.sleep(60)
        return lambda: self.do(word, rest)

    def do(self, word, rest):
        if word == "where":
            return f"{self.settings} {self.loaded_in} {os.getpid()}".encode()
        if word == "sleep":
            time.sleep(float(rest))
        elif word == "spin":
            while True:
                pass
        elif word == "die":
            os._exit(1)
        elif word == "raise":
            raise RuntimeError(rest)
        elif word == "fill":
            try:
                held = bytearray(8 * 2**30)
            except MemoryError:
                held = bytearray(int(0.95 * 2**30))
        elif word == "grow":
            Work.kept = b"x" * (64 * 2**20)
        elif word == "nonsense":
            return b"nonsense"
        return word.encode()
'''


class Codec:
    """Bytes are bytes, and the end of a job is its outcome."""

    def encode(self, task: bytes) -> tuple[bytes, bytes]:
        return b"X", task

    def decode(self, task: bytes, payload: bytes) -> bytes:
        if payload == b"nonsense":
            raise FrameError("nonsense")
        return payload

    def fault(self, job: Job[bytes, Any], end: End, detail: str) -> End:
        return end


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers' modules, importable in processes that are started."""
    (tmp_path / "assay_pool_child.py").write_text(CHILD)
    (tmp_path / "assay_pool_work.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ASSAY_SANDBOX_TOKEN", "secret")


QUICK = LinkLimits(start_s=20.0, take_s=1.0, answer_bytes=2**20)


def children(how: str = "serve", limits: LinkLimits = QUICK) -> ChildWorkers:
    def command(slot: int) -> Command:
        del slot
        return Command("a worker", "assay_pool_child", (how,), environment_of_a_worker())

    return ChildWorkers(command, limits)


def forked(settings: str = "as told", **limits: int) -> ForkedWorkers:
    bounds = WorkerLimits(**{"memory_bytes": 2**30, "jobs": 100, "growth_bytes": 2**29, **limits})
    return ForkedWorkers("assay_pool_work:prepare", settings, bounds, QUICK)


@asynccontextmanager
async def running(workers: Workers, **settings: Any) -> AsyncIterator[WorkerPool[bytes, Any]]:
    config = PoolConfig(**{"slots": 1, "queue_items": 100, "queue_bytes": 10**6, **settings})
    pool: WorkerPool[bytes, Any] = WorkerPool(config, workers, Codec())
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()


async def outcomes(pool: WorkerPool[bytes, Any], *tasks: str, timeout_s: float = 20.0) -> list[Any]:
    lane = object()
    jobs = [pool.job(lane, t.encode(), size_bytes=1, timeout_s=timeout_s) for t in tasks]
    pool.submit(jobs)
    return [(await asyncio.wait_for(job.done, 60)).outcome for job in jobs]


@pytest.mark.parametrize("workers", [children, forked])
async def test_a_death_and_a_time_out_cost_their_own_job(workers: Callable[[], Workers]) -> None:
    async with running(workers(), slots=2) as pool:
        tasks = ["a", "die", "b", "sleep 30", "c", "die", "d"]
        ends = await outcomes(pool, *tasks, timeout_s=1.0)
        assert ends == [b"a", End.DIED, b"b", End.EXPIRED, b"c", End.DIED, b"d"]
        assert pool.restarts >= 2


async def test_what_a_lying_worker_says_is_never_believed() -> None:
    async with running(children()) as pool:
        assert await outcomes(pool, "expired", "flood", "unknown", "stutter", "fine") == [
            # It may not say what the link says: it is killed, thrice, before the job had begun.
            End.UNTAKEN,
            End.DIED,
            End.DIED,
            b"stutter",
            b"fine",
        ]
        [names] = await outcomes(pool, "environment")
        assert b"PYTHONPATH" in names
        assert b"ASSAY_SANDBOX_TOKEN" not in names


@pytest.mark.parametrize("workers", [children, forked])
async def test_a_worker_that_does_not_take_its_job_is_replaced(
    workers: Callable[[], Workers],
) -> None:
    task = "silent" if workers is children else "hang"
    async with running(workers()) as pool:
        assert await outcomes(pool, task, "fine") == [End.UNTAKEN, b"fine"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("end", "it ended with 3 while it was starting"),
        ("garbage", "it was killed by signal 9 while it was starting"),
        ("refuse", "there is no model"),
        ("hang", "it was not ready within 2 s"),
    ],
)
async def test_a_worker_that_does_not_come_up_says_why(how: str, words: str) -> None:
    with pytest.raises(LinkError, match=f"a worker did not come up: {words}"):
        async with running(children(how, LinkLimits(start_s=2.0, stop_s=0.1))):
            pass


async def test_a_fork_server_that_cannot_load_its_work_does_not_come_up(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(LinkError, match="did not load its work"):
        async with running(forked("broken")):
            pass
    assert "no such library" in capfd.readouterr().err


async def test_the_work_is_loaded_once_and_workers_retire() -> None:
    workers = forked(jobs=2)
    async with running(workers) as pool:
        said = [end.decode().rsplit(" ", 2) for end in await outcomes(pool, *["where"] * 6)]
        assert {tuple(words[:2]) for words in said} == {("as told", str(workers.server_pid))}
        assert len({words[2] for words in said}) == 3
        assert pool.restarts >= 2


async def test_a_worker_that_fills_its_memory_or_grows_is_not_asked_again() -> None:
    async with running(forked()) as pool:
        assert await outcomes(pool, "fill", "fine") == [End.EXHAUSTED, b"fine"]
    async with running(forked(growth_bytes=2**25)) as pool:
        [before] = await outcomes(pool, "where")
        assert await outcomes(pool, "grow") == [b"grow"]
        [after] = await outcomes(pool, "where")
        assert before != after


async def test_a_worker_that_raises_or_talks_nonsense_is_replaced() -> None:
    async with running(forked()) as pool:
        assert await outcomes(pool, "raise x", "nonsense", "fine") == [
            End.DIED,
            End.UNREADABLE,
            b"fine",
        ]


async def test_a_job_that_nobody_waits_for_is_killed_and_a_closed_pool_leaves_nothing() -> None:
    workers = forked()
    async with running(workers, slots=2) as pool:
        job = pool.job(object(), b"spin", size_bytes=1)
        pool.submit([job])
        await until(lambda: pool.busy == 1)
        [pid] = pool.running_pids()
        pool.cancel(job)
        await until(lambda: not exists(pid))
        assert await outcomes(pool, "fine") == [b"fine"]
        await until(lambda: len(pool.worker_pids()) == 2)
        pids = [*pool.worker_pids(), workers.server_pid or 0]
        left = pool.job(object(), b"spin", size_bytes=1)
        pool.submit([left])
        await until(lambda: pool.busy == 1)
    assert (await left.done).outcome is End.DRAINING
    await until(lambda: not any(exists(pid) for pid in pids))


async def test_a_fork_server_that_dies_is_started_again() -> None:
    workers = forked()
    async with running(workers, slots=2) as pool:
        server, pids = workers.server_pid or 0, pool.worker_pids()
        job = pool.job(object(), b"sleep 30", size_bytes=1)
        pool.submit([job])
        await until(lambda: pool.busy == 1)
        os.kill(server, signal.SIGKILL)
        assert (await asyncio.wait_for(job.done, 20)).outcome is End.DIED
        assert await outcomes(pool, "a", "b") == [b"a", b"b"]
        assert workers.server_pid != server
        await until(lambda: not any(exists(pid) for pid in pids))
