"""The pool's policy, with workers that follow a script: turns, retries, what each end means."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from assay.kit.pool import frames
from assay.kit.pool import pool as pool_module
from assay.kit.pool.frames import Frame, FrameError
from assay.kit.pool.jobs import Done, End, Job
from assay.kit.pool.link import LinkError
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.kit.queue import QueueFull
from waiting_support import until

RUN = b"X"


class Codec:
    """Bytes are bytes, and the end of a job is its outcome."""

    def encode(self, task: bytes) -> tuple[bytes, bytes]:
        if task == b"too large":
            raise FrameError("too large")
        if task == b"defect":
            raise KeyError("a defect")
        return RUN, task

    def decode(self, task: bytes, payload: bytes) -> bytes:
        if payload == b"nonsense":
            raise FrameError("nonsense")
        if payload == b"defect":
            raise KeyError("a defect")
        return payload

    def fault(self, job: Job[bytes, Any], end: End, detail: str) -> End:
        assert isinstance(detail, str)
        return end


ALONE = "dies alone"
MACHINE = "is lost with its machine"


class ScriptedWorkers:
    """Each link follows the next script: what it does with each job that it is handed.

    bytes      begins, and answers with them
    ALONE      begins, and dies
    MACHINE    begins, and is lost with its machine
    None       does not begin, and dies
    ...        begins, and goes on until it is asked to let go
    "refuse"   does not come up
    """

    def __init__(self, *scripts: Iterable[object], patient: bool = True) -> None:
        self.patient = patient
        self.scripts = deque(scripts)
        self.links: list[ScriptedLink] = []

    async def start(self, wanted: int) -> int:
        return wanted or 2

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)

    def link(self, slot: int, on_frame: Any, on_lost: Any) -> Any:
        del slot
        script = deque(self.scripts.popleft()) if self.scripts else deque()
        self.links.append(ScriptedLink(script, on_frame, on_lost))
        return self.links[-1]

    async def close(self) -> None:
        pass


class ScriptedLink:
    pid = None

    def __init__(self, script: deque[object], on_frame: Any, on_lost: Any) -> None:
        self.machine_lost = False
        self.script = script
        self.sent: list[tuple[bytes, int]] = []
        self.running: int | None = None
        self.killed = self.ended = False
        self._on_frame = on_frame
        self._on_lost = on_lost

    async def start(self) -> None:
        if self.script and self.script[0] == "refuse":
            raise LinkError("it does not come up")
        if self.script and self.script[0] == "stay away":
            await asyncio.Event().wait()

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        self.sent.append((kind, number))
        loop = asyncio.get_running_loop()
        if kind == frames.GIVE_BACK and number != self.running:
            loop.call_soon(self.say, frames.UNSTARTED, number)
        if kind == RUN and self.running is None:
            step = self.script.popleft()
            if step is not None:
                # An age, as of a frame that waited on a node for the other one.
                loop.call_soon(self._on_frame, Frame(frames.STARTED, number, b""), 0.25)
            if step is ...:
                self.running = number
            elif isinstance(step, bytes):
                loop.call_soon(self.say, frames.DONE, number, step)
            else:
                self.machine_lost = step == MACHINE
                loop.call_soon(self.end)

    def say(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        self._on_frame(Frame(kind, number, payload), 0.0)

    def kill(self) -> None:
        self.killed = self.killed or not self.ended
        asyncio.get_running_loop().call_soon(self.end)

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self._on_lost()

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_MIN_BACKOFF_S", 0.001)
    monkeypatch.setattr(pool_module, "_MAX_BACKOFF_S", 0.002)


async def started(workers: ScriptedWorkers, **settings: Any) -> WorkerPool[bytes, Any]:
    config = PoolConfig(**{"slots": 1, "queue_items": 100, "queue_bytes": 10**6, **settings})
    pool: WorkerPool[bytes, Any] = WorkerPool(config, workers, Codec())
    await pool.start()
    return pool


def jobs_of(pool: WorkerPool[bytes, Any], *tasks: bytes) -> list[Job[bytes, Any]]:
    lane = object()
    return [pool.job(lane, task, size_bytes=len(task)) for task in tasks]


async def outcome(job: Job[bytes, Any]) -> Any:
    return (await asyncio.wait_for(job.done, 5)).outcome


@pytest.mark.parametrize(
    ("scripts", "expected", "restarts"),
    [
        ([[b"done"]], b"done", 0),
        ([[MACHINE], [b"done"]], b"done", 1),
        ([[MACHINE], [MACHINE], [b"done"]], End.LOST, 2),
        ([[None], [None], [MACHINE], [b"done"]], b"done", 3),
        ([[ALONE], [b"done"]], End.DIED, 1),
        ([[MACHINE], [ALONE], [b"done"]], End.DIED, 2),
        ([[None], [None], [b"done"]], b"done", 2),
        ([[None], [None], [None], [b"done"]], End.UNTAKEN, 3),
        ([["refuse"], ["refuse"], [b"done"]], b"done", 0),
    ],
)
async def test_a_lost_machine_costs_a_second_try_and_a_dead_worker_a_fault(
    scripts: list[list[object]], expected: object, restarts: int
) -> None:
    workers = ScriptedWorkers(*scripts)
    pool = await started(workers)
    [job] = jobs_of(pool, b"x")
    pool.submit([job])
    done: Done[Any] = await asyncio.wait_for(job.done, 5)
    assert done.outcome == expected
    if isinstance(expected, bytes):
        assert 0.25 <= done.execution_s < 0.5
    assert (done.started_s is None) == (expected is End.UNTAKEN)
    await until(lambda: pool.restarts == restarts)
    await pool.close()


async def test_a_poison_job_is_fed_to_one_worker_only() -> None:
    workers = ScriptedWorkers([ALONE], [b"good"])
    pool = await started(workers)
    jobs = jobs_of(pool, b"poison", b"good")
    pool.submit(jobs)
    assert [await outcome(job) for job in jobs] == [End.DIED, b"good"]
    begun = [number for link in workers.links for kind, number in link.sent if kind == RUN]
    assert begun == [job.number for job in jobs]
    await pool.close()


@pytest.mark.parametrize(
    ("task", "answer", "end"),
    [
        (b"too large", b"", End.UNSENDABLE),
        (b"defect", b"", End.FAILED),
        (b"x", b"nonsense", End.UNREADABLE),
        (b"x", b"defect", End.FAILED),
    ],
)
async def test_what_cannot_be_sent_or_read_costs_its_own_job(
    task: bytes, answer: bytes, end: End
) -> None:
    script = [answer, b"fine"] if answer else [b"fine"]
    workers = ScriptedWorkers(script, [b"fine"])
    pool = await started(workers)
    jobs = jobs_of(pool, task, b"good")
    pool.submit(jobs)
    assert [await outcome(job) for job in jobs] == [end, b"fine"]
    # Who sends what cannot be read is not asked again.
    assert workers.links[0].killed == (end is End.UNREADABLE)
    await pool.close()


async def test_one_job_is_handed_ahead_and_asked_back_for_an_idle_slot() -> None:
    workers = ScriptedWorkers([..., b"late"], [b"first", b"second"])
    pool = await started(workers, slots=2, depth=2, let_go_s=5.0)
    await asyncio.sleep(0)
    slow, quick, ahead = jobs_of(pool, b"slow", b"quick", b"ahead")
    pool.submit([slow, quick, ahead])
    assert pool.queued == 0
    assert await outcome(quick) == b"first"
    # It was behind the slow one.
    assert await outcome(ahead) == b"second"
    assert (frames.GIVE_BACK, ahead.number) in workers.links[0].sent
    assert not slow.done.done()
    assert pool.busy == 1
    await pool.close()
    assert await outcome(slow) is End.DRAINING


async def test_a_job_that_is_given_up_is_let_go_or_its_worker_is_killed() -> None:
    workers = ScriptedWorkers([...], [..., ...], [b"next"])
    pool = await started(workers, let_go_s=0.05)
    for lets_go in (False, True):
        link = workers.links[-1]
        [job] = jobs_of(pool, b"x")
        pool.submit([job])
        await until(lambda: pool.busy)
        pool.cancel(job)
        pool.cancel(job)
        assert link.sent.count((frames.CANCEL, job.number)) == 1
        if lets_go:
            link.running = None
            link.say(frames.FAULT, job.number, frames.pack_fault("CANCELLED", "given up", {}))
        await until(lambda: not pool.busy)
        assert link.killed == (not lets_go)
        await until(lambda: len(workers.links) == 2)
    await pool.close()


async def test_a_worker_that_does_not_listen_is_killed_at_once_for_a_job_that_is_given_up() -> None:
    workers = ScriptedWorkers([...], [b"next"])
    pool = await started(workers)
    first, second = jobs_of(pool, b"x", b"y")
    pool.submit([first, second])
    await asyncio.sleep(0)
    pool.cancel(first)
    assert workers.links[0].killed
    assert await outcome(second) == b"next"
    assert first.done.cancelled()
    await pool.close()


async def test_a_worker_that_takes_no_further_job_is_handed_none() -> None:
    workers = ScriptedWorkers([...], [b"second"])
    pool = await started(workers)
    first, second = jobs_of(pool, b"x", b"y")
    pool.submit([first, second])
    await asyncio.sleep(0)
    link = workers.links[0]
    link.say(frames.LAST, 0)
    link.say(frames.DONE, first.number, b"first")
    assert await outcome(first) == b"first"
    assert [number for _, number in link.sent] == [first.number]
    link.kill()
    assert await outcome(second) == b"second"
    await pool.close()


async def test_a_job_whose_time_is_over_is_a_fault_and_its_worker_gets_no_other() -> None:
    workers = ScriptedWorkers([...], [b"second"])
    pool = await started(workers)
    first, second = jobs_of(pool, b"x", b"y")
    pool.submit([first, second])
    await asyncio.sleep(0)
    link = workers.links[0]
    link.say(frames.EXPIRED, first.number)
    link.kill()
    assert await outcome(first) is End.EXPIRED
    assert await outcome(second) == b"second"
    assert len(link.sent) == 1
    await pool.close()


@pytest.mark.parametrize("kind", [frames.DONE, frames.STARTED, frames.UNSTARTED, frames.EXHAUSTED])
async def test_what_is_said_of_a_job_that_nobody_has_changes_nothing(kind: bytes) -> None:
    workers = ScriptedWorkers([b"done"])
    pool = await started(workers)
    workers.links[0].say(kind, 99, b"x")
    [job] = jobs_of(pool, b"x")
    pool.submit([job])
    assert await outcome(job) == b"done"
    workers.links[0].say(kind, job.number, b"again")
    assert job.done.result().outcome == b"done"
    await pool.close()


async def test_a_pool_that_closes_ends_what_runs_and_what_waits() -> None:
    workers = ScriptedWorkers([...])
    pool = await started(workers, depth=2, let_go_s=5.0)
    jobs = jobs_of(pool, *[b"x"] * 4)
    pool.submit(jobs)
    await asyncio.sleep(0)
    assert pool.queued == 2
    await pool.close()
    assert [await outcome(job) for job in jobs] == [End.DRAINING] * 4


async def test_a_start_that_fails_fails_unless_workers_may_come_later() -> None:
    with pytest.raises(LinkError, match="does not come up"):
        await started(ScriptedWorkers([b""], ["refuse"], patient=False), slots=2)
    pool = await started(ScriptedWorkers(["stay away"], [b"done"]), slots=2)
    [job] = jobs_of(pool, b"x")
    pool.submit([job])
    assert await outcome(job) == b"done"
    await pool.close()


async def test_jobs_enter_together_or_not_at_all() -> None:
    pool = await started(ScriptedWorkers([...]), queue_items=2)
    with pytest.raises(QueueFull):
        pool.submit(jobs_of(pool, b"1", b"2", b"3"))
    assert pool.queued == 0
    pool.submit(jobs_of(pool, b"1", b"2"))
    fits = asyncio.create_task(pool.wait_to_fit(2, 2))
    await asyncio.sleep(0)
    assert not fits.done()
    pool.cancel(next(iter(pool._queue._tenants[""].values())).copy().popitem()[0])
    await asyncio.wait_for(fits, 5)
    assert 0.1 <= pool.retry_after_s() <= 5.0
    await pool.close()


@pytest.mark.parametrize("settings", [{"depth": 0}, {"depth": 2}])
def test_a_depth_that_its_workers_cannot_have_is_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="let_go_s"):
        PoolConfig(1, 1, 1, **settings)


def test_what_is_loaded_in_workers_loads_no_grpc_and_no_loop() -> None:
    modules = "assay.kit.pool.fork_server, assay.kit.pool.worker, assay.kit.pool.frames"
    code = f"import sys, {modules}; print({{'grpc', 'asyncio'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
