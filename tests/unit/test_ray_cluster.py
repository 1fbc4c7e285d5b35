"""Ray without Ray: how hosts are asked for, what is refused, what a loss costs."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Component, Item, Judgement, VerifierSpec
from assay.reward_server.workers import frames as worker_frames
from assay.reward_server.workers.on_ray import RaySeat
from assay.reward_server.workers.pool import Pool, PoolConfig
from assay.reward_server.workers.queue import Done, Job
from assay.reward_server.workers.seat import End, Report, Seat
from assay.rpc import ray_cluster
from assay.rpc.errors import ConfigError, StartupError
from assay.rpc.ray_cluster import Berths, HostLost
from assay.sandbox.config import RunnerConfig
from assay.sandbox.languages import Missing, Toolchains
from assay.sandbox.languages.toolchains import Toolchain
from assay.sandbox.site import Site
from assay.sandbox.slots import frames as warden_frames
from assay.sandbox.slots import pool as warden_pool
from assay.sandbox.slots.frames import Frame

SPEC = VerifierSpec("v", "1", "Judges.", ("v",), 0.0, 1.0, ("fine",), needs_reference=False)
ANSWER = worker_frames.pack(
    {
        **worker_frames.outcome_to_json(Judgement.composed("fine", (Component("a", 1.0),))),
        "retire": False,
    },
    10**6,
)[worker_frames.HEADER.size :]


@pytest.mark.parametrize("make", [ScorerConfig, RunnerConfig])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pool": "slurm"}, "--pool must be one of local, ray"),
        ({"ray_address": "10.0.0.1:6379"}, "--ray-address needs --pool ray"),
        ({"pool": "ray", "ray_address": "ray://10.0.0.1:10001"}, "start a node beside the service"),
        ({"pool": "ray", "ray_address": ""}, "--ray-address is empty"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(
    make: Callable[..., object], settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make(**settings)


def test_a_host_takes_a_cpu_of_any_node_that_is_not_refused() -> None:
    options = ray_cluster.host_options()
    # What is lost is for us to say and to repeat: Ray restarts nothing and tries nothing again.
    assert (options["num_cpus"], options["max_restarts"], options["max_task_retries"]) == (1, 0, 0)
    assert "label_selector" not in options
    avoiding = ray_cluster.host_options(["b", "a"])
    assert avoiding["label_selector"] == {"ray.io/node-id": "!in(a,b)"}


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is here")
async def test_without_ray_it_says_what_to_install() -> None:
    with pytest.raises(
        ConfigError, match=r"--pool ray needs Ray: pip install 'assay-sandbox\[ray\]'"
    ):
        await ray_cluster.connect("auto", "assay-sandbox[ray]")


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port", "10.0.0.1:99999999"])
async def test_what_is_no_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.importlib, "import_module", lambda name: name)
    with pytest.raises((ConfigError, StartupError), match=r"neither auto nor|no Ray clust"):
        await ray_cluster.connect(address, "assay-sandbox[ray]")


class StandInRay:
    """As much of Ray as one host needs."""

    class exceptions:  # noqa: N801 - Ray's own name
        RayError = OSError

    def __init__(self) -> None:
        self.killed = 0

    def is_initialized(self) -> bool:
        return True

    def kill(self, _: object, *, no_restart: bool) -> None:
        assert no_restart
        self.killed += 1
        raise OSError("it is gone already")


class StandInActor:
    """Its method `say` gives what it is asked for: a value, an exception, or nothing ever."""

    class say:  # noqa: N801 - a method of Ray's kind
        @staticmethod
        def remote(answer: object) -> asyncio.Future[object]:
            future = asyncio.get_running_loop().create_future()
            if isinstance(answer, Exception):
                future.set_exception(answer)
            elif answer is not None:
                future.set_result(answer)
            return future


async def test_a_host_answers_or_is_lost_and_who_waits_hears_of_its_end_at_once() -> None:
    ray = StandInRay()
    host = ray_cluster.Host(ray, StandInActor())
    assert await host.ask("say", 7) == 7
    with pytest.raises(HostLost, match=r"the node died$"):
        await host.ask("say", OSError("the node died.\nAnd a page of advice."))
    with pytest.raises(HostLost, match="no answer within"):
        await host.ask("say", None, timeout_s=0.01)
    waiting = asyncio.create_task(host.ask("say", None))
    await asyncio.sleep(0)
    host.end()
    with pytest.raises(HostLost, match="ended"):
        await asyncio.wait_for(waiting, 5)
    host.end()
    assert ray.killed == 2


class FakeHost:
    """A host that answers as it is told, and ends when it is ended."""

    def __init__(self, about: dict[str, Any] | None = None, answers: Iterable[object] = ()) -> None:
        self.about = {"node": "n" * 40, "name": "m", "version": "0.1.0", **(about or {})}
        self.answers = deque(answers)
        self.ended = asyncio.Event()
        self.asked: list[str] = []

    async def ask(self, method: str, *_: object, timeout_s: float | None = None) -> Any:
        del timeout_s
        self.asked.append(method)
        if method == "start":
            return self.about
        if method == "watch":
            await self.ended.wait()
            raise HostLost("gone")
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        self.ended.set()


class FakeCluster:
    """Gives hosts in turn, and remembers which nodes were to be avoided."""

    def __init__(self, hosts: Iterable[FakeHost], nodes: set[str]) -> None:
        self.hosts = deque(hosts)
        self.alive = nodes
        self.avoided: list[tuple[str, ...]] = []

    def place(self, *_: object, avoid: Sequence[str] = ()) -> FakeHost:
        self.avoided.append(tuple(avoid))
        return self.hosts.popleft()

    async def nodes(self) -> set[str]:
        return self.alive

    async def room(self) -> str:
        return "2 CPUs, 0 of them free"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"version": "9.9"}, "it has assay-sandbox 9.9, this server has 0.1.0"),
        ({"trouble": "no isolation works"}, "no isolation works"),
    ],
)
async def test_a_node_that_is_of_no_use_is_named_and_left_out(
    about: dict[str, str], words: str
) -> None:
    bad, good = FakeHost({"node": "bad", **about}), FakeHost({"node": "good"})
    cluster = FakeCluster([bad, good], {"bad", "good"})
    berths = Berths(cluster, "a warden")  # type: ignore[arg-type]  # a stand-in
    with pytest.raises(HostLost, match=f"Ray node bad .m. is refused: {words}"):
        await berths.place("assay-sandbox", object)
    assert bad.ended.is_set()
    host, _ = await berths.place("assay-sandbox", object)
    assert host is good
    assert cluster.avoided == [(), ("bad",)]


async def test_the_start_ends_when_every_node_is_refused_or_none_has_room() -> None:
    cluster = FakeCluster([FakeHost({"node": "bad", "trouble": "too weak"})], {"bad"})
    berths = Berths(cluster, "a warden")  # type: ignore[arg-type]  # a stand-in
    with pytest.raises(HostLost):
        await berths.place("assay-sandbox", object)
    never = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(HostLost, match="too weak"):
        await berths.first_of([never], 5.0)
    cluster.alive = {"bad", "new"}
    with pytest.raises(HostLost, match=r"within 0.01 s; each takes one CPU, and the cluster has 2"):
        await berths.first_of([never], 0.01)
    done = asyncio.create_task(asyncio.sleep(0))
    await berths.first_of([never, done], 5.0)
    never.cancel()


def answered(workers: int = 1) -> tuple[str, float, bytes, int]:
    return End.ANSWERED.value, 0.01, ANSWER, workers


async def test_a_seat_takes_one_host_after_the_other_and_counts_their_workers() -> None:
    hosts = [FakeHost(answers=[answered(3), HostLost("node")]), FakeHost(answers=[answered(1)])]
    queue: asyncio.Queue[FakeHost] = asyncio.Queue()
    seat = RaySeat(queue.get)  # type: ignore[arg-type]  # stand-ins
    assert (await seat.run(b"", 1.0)).end is End.ABSENT
    queue.put_nowait(hosts[0])
    await seat.fill()
    assert (await seat.run(b"", 1.0)).data == ANSWER
    assert seat.spawned == 3
    assert (await seat.run(b"", 1.0)).end is End.LOST
    assert hosts[0].ended.is_set()
    assert (await seat.run(b"", 1.0)).end is End.ABSENT
    queue.put_nowait(hosts[1])
    await seat.fill()
    assert (await seat.run(b"", 1.0)).end is End.ANSWERED
    assert seat.spawned == 4
    # One that is lost while it is idle is missed at once, and costs no item anything.
    hosts[1].end()
    await asyncio.sleep(0.01)
    assert (await seat.run(b"", 1.0)).end is End.ABSENT
    await seat.close()


class ScriptedSeat:
    """Reports what it is told to; has a worker only while the script goes on."""

    busy, pid, spawned = False, None, 1

    def __init__(self, reports: Iterable[End]) -> None:
        self.reports = deque(reports)

    async def fill(self) -> None:
        if not self.reports:
            await asyncio.Event().wait()

    async def run(self, frame: bytes, timeout_s: float) -> Report:
        del frame, timeout_s
        end = self.reports.popleft()
        return Report(end, 0.5, ANSWER if end is End.ANSWERED else b"")

    def stop(self) -> None:
        raise AssertionError("nothing is given up here")


class ScriptedSeats:
    nursery_pid = None

    def __init__(self, *scripts: Iterable[End]) -> None:
        self.seats: list[Seat] = [ScriptedSeat(script) for script in scripts]

    async def start(self, wanted: int) -> Sequence[Seat]:
        assert wanted == 0
        return self.seats

    def worker_pids(self) -> list[int]:
        return []

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("scripts", "outcome"),
    [
        ([[End.LOST], [End.ANSWERED]], "fine"),
        ([[End.LOST], [End.LOST, End.ANSWERED]], "WORKER_DIED"),
        ([[End.ABSENT, End.ABSENT, End.LOST, End.ABSENT, End.ANSWERED]], "fine"),
        ([[End.DIED, End.ANSWERED]], "WORKER_DIED"),
        ([[End.EXPIRED, End.ANSWERED]], "ITEM_TIMEOUT"),
        ([[End.UNTAKEN, End.ANSWERED]], "WORKER_DIED"),
    ],
)
async def test_a_lost_machine_costs_an_item_a_second_try_and_a_dead_worker_a_fault(
    scripts: list[list[End]], outcome: str
) -> None:
    pool = Pool(PoolConfig(0, 10, 10**6), ScriptedSeats(*scripts))
    await pool.start()
    done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
    pool.submit([Job(object(), SPEC, Item(Candidate("x")), 1.0, 1, done)])
    result = (await asyncio.wait_for(done, 5)).outcome
    assert (result.verdict if isinstance(result, Judgement) else result.reason) == outcome
    await pool.close()


class ScriptedWardens:
    """Each link begins the job that it is handed, then is lost with its machine or alone."""

    patient = True

    def __init__(self, machines: Iterable[bool | None]) -> None:
        self.machines = deque(machines)

    async def start(self, wanted: int) -> int:
        return wanted

    async def wait_for_one(self, coming: Sequence[asyncio.Task[Any]]) -> None:
        await asyncio.wait(coming)

    def link(self, slot: int, on_frame: Any, on_lost: Any) -> Any:
        del slot
        return ScriptedLink(self.machines.popleft(), on_frame, on_lost)

    async def close(self) -> None:
        pass


class ScriptedLink:
    level, pid = "confined", None

    def __init__(self, machine: bool | None, on_frame: Any, on_lost: Any) -> None:
        self.machine_lost = machine is True
        self._answers = machine is None
        self._on_frame = on_frame
        self._on_lost = on_lost

    async def start(self) -> None:
        pass

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        del kind, payload
        loop = asyncio.get_running_loop()
        # An age, as of a frame that waited on the node for the other one.
        loop.call_soon(self._on_frame, Frame(warden_frames.STARTED, number, b""), 0.25)
        if self._answers:
            loop.call_soon(self._on_frame, Frame(warden_frames.DONE, number, b"done"), 0.0)
        else:
            loop.call_soon(self._on_lost)

    def kill(self) -> None:
        pass

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("machines", "outcome"),
    [([True, None], b"done"), ([True, True, None], "WORKER_DIED"), ([False, None], "WORKER_DIED")],
)
async def test_a_lost_machine_costs_a_program_a_second_run_and_a_dead_warden_a_fault(
    machines: list[bool | None], outcome: bytes | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warden_pool, "_MIN_BACKOFF_S", 0.001)
    wardens: Any = ScriptedWardens(machines)
    pool = warden_pool.Pool(warden_pool.PoolConfig(1, 10, 10**6), wardens)
    await pool.start()
    job = pool.job(object(), warden_frames.EXECUTE, b"x")
    pool.submit([job])
    done = await asyncio.wait_for(job.done, 5)
    assert (done.outcome if isinstance(done.outcome, bytes) else done.outcome.reason) == outcome
    if isinstance(done.outcome, bytes):
        assert 0.25 <= done.execution_s < 0.5
    assert pool.restarts == len(machines) - 1 - len(wardens.machines)
    await pool.close()


def test_what_is_told_to_a_node_and_what_it_says_come_back_as_they_were() -> None:
    config = RunnerConfig(
        slots=3, languages=("python",), pool="ray", cache_dir=Path("/x y"), max_cpu_s=2.5
    )
    assert RunnerConfig.from_json(config.to_json()) == config
    assert RunnerConfig.from_json(RunnerConfig().to_json()) == RunnerConfig()
    chain = Toolchain("python", {"python": "/usr/bin/python3"}, ("/opt",), "f")
    lack = Missing("rust", "install rustc.", "rustc")
    versions = {"python": "Python 3.11.7"}
    site = Site(
        "uid", ("a", "b"), Toolchains({"python": chain}, {"rust": lack}), Path("/c"), versions
    )
    assert Site.from_json(site.to_json()) == site
    assert json.loads(site.to_json())["versions"] == versions
