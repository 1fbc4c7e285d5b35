"""Ray without Ray: how hosts are asked for, what is refused, what a loss costs."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError, StartupError
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame
from assay.kit.pool.jobs import End, Job
from assay.kit.pool.link import LinkError
from assay.kit.pool.places import Ask, Placement
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.ray_pool import cluster as ray_cluster
from assay.ray_pool.cluster import Berths, HostLost
from assay.ray_pool.workers import RayWorkers, WorkerHost
from assay.reward_server.config import ScorerConfig
from assay.sandbox.config import SandboxConfig
from assay.sandbox.languages import MissingLanguage, Toolchains
from assay.sandbox.languages.toolchains import Toolchain
from assay.sandbox.site import SurveyedMachine
from waiting_support import until


@pytest.mark.parametrize("make", [ScorerConfig, SandboxConfig])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pool": "slurm"}, "--pool 'slurm' is not installed here, where there is local, ray"),
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
        ConfigError, match=r"--pool ray needs Ray; .* pip install './plugins/ray_pool\[ray\]'"
    ):
        await ray_cluster.connect("auto")


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:port", "10.0.0.1:99999999"])
async def test_what_is_no_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.importlib, "import_module", lambda name: name)
    with pytest.raises((ConfigError, StartupError), match=r"neither auto nor|no Ray clust"):
        await ray_cluster.connect(address)


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
    host = ray_cluster.RayHost(ray, StandInActor())
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
        ({"version": "9.9"}, "it has assay-rl-sandbox 9.9, this server has 0.1.0"),
        ({"trouble": "no isolation works"}, "no isolation works"),
    ],
)
async def test_a_node_that_is_of_no_use_is_named_and_left_out(
    about: dict[str, str], words: str
) -> None:
    bad, good = FakeHost({"node": "bad", **about}), FakeHost({"node": "good"})
    cluster = FakeCluster([bad, good], {"bad", "good"})
    berths = Berths(cluster, "a supervisor")  # type: ignore[arg-type]  # a stand-in
    with pytest.raises(HostLost, match=f"Ray node bad .m. is refused: {words}"):
        await berths.place("assay-rl-sandbox", object)
    assert bad.ended.is_set()
    host, _ = await berths.place("assay-rl-sandbox", object)
    assert host is good
    assert cluster.avoided == [(), ("bad",)]


async def test_the_start_ends_when_every_node_is_refused_or_none_has_room() -> None:
    cluster = FakeCluster([FakeHost({"node": "bad", "trouble": "too weak"})], {"bad"})
    berths = Berths(cluster, "a supervisor")  # type: ignore[arg-type]  # a stand-in
    with pytest.raises(HostLost):
        await berths.place("assay-rl-sandbox", object)
    never = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(HostLost, match="too weak"):
        await berths.first_of([never], 5.0)
    cluster.alive = {"bad", "new"}
    with pytest.raises(HostLost, match=r"within 0.01 s; each takes one CPU, and the cluster has 2"):
        await berths.first_of([never], 0.01)
    done = asyncio.create_task(asyncio.sleep(0))
    await berths.first_of([never, done], 5.0)
    never.cancel()


class Echo:
    """What a service has on a node: workers that answer what they are told to."""

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.workers = EchoWorkers()

    async def about(self, ask: Ask) -> dict[str, Any]:
        answer = await ask(b"X", b"what is here?")
        if self.trouble:
            raise LinkError(self.trouble)
        return {"said": answer.payload.decode()}


async def open_echo(settings: str) -> Echo:
    return Echo(settings)


class EchoWorkers:
    async def start(self, wanted: int) -> int:
        return wanted

    def link(self, slot: int, on_frame: Any, on_lost: Any) -> EchoLink:
        return EchoLink(on_frame, on_lost)


class EchoLink:
    """A worker in this process: says what it is told, dies, or is at it for ever."""

    started = 0

    def __init__(self, on_frame: Any, on_lost: Any) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._ended = False

    async def start(self) -> None:
        EchoLink.started += 1

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        body, _, _ = frames.read_job(payload)
        loop = asyncio.get_running_loop()
        loop.call_soon(self._on_frame, Frame(frames.STARTED, number, b""), 0.0)
        if body == b"die":
            loop.call_soon(self.kill)
        elif body != b"for ever":
            loop.call_soon(self._on_frame, Frame(frames.DONE, number, body), 0.0)

    def kill(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_lost()

    async def close(self) -> None:
        self.kill()


class NearHost:
    """A host as a cluster gives it, whose actor is in this process."""

    def __init__(self, actor: WorkerHost) -> None:
        self.actor = actor
        self.ended = asyncio.Event()

    async def ask(self, method: str, *arguments: Any, timeout_s: float | None = None) -> Any:
        del timeout_s
        calling = asyncio.ensure_future(getattr(self.actor, method)(*arguments))
        ending = asyncio.ensure_future(self.ended.wait())
        await asyncio.wait([calling, ending], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not calling.done():
            calling.cancel()
            raise HostLost("ended")
        return calling.result()

    def end(self) -> None:
        self.ended.set()


class NearCluster:
    def __init__(self) -> None:
        self.hosts: list[NearHost] = []

    def place(self, kind: type, *arguments: Any, avoid: Sequence[str] = ()) -> NearHost:
        assert kind is WorkerHost
        self.hosts.append(NearHost(WorkerHost(*arguments)))
        return self.hosts[-1]

    async def cpus(self) -> int:
        return 1

    async def nodes(self) -> set[str]:
        return {"here"}

    async def close(self) -> None:
        pass


class Codec:
    """Bytes are bytes, and the end of a job is its outcome."""

    def encode(self, task: bytes) -> tuple[bytes, bytes]:
        return b"X", task

    def decode(self, task: bytes, payload: bytes) -> bytes:
        return payload

    def fault(self, job: Job[bytes, Any], end: End, detail: str) -> End:
        return end


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> NearCluster:
    """A cluster in this process."""
    near = NearCluster()

    async def connect(*_: object) -> NearCluster:
        return near

    monkeypatch.setattr(ray_cluster, "connect", connect)
    monkeypatch.setattr(ray_cluster, "this_node", lambda: "here")
    monkeypatch.setattr(EchoLink, "started", 0)
    return near


async def pool_on(settings: str = "", **facts: Any) -> WorkerPool[bytes, Any]:
    node = f"{__name__}:open_echo"
    placement = Placement("auto", "assay-rl-kit", "a worker", node, settings, **facts)
    pool: WorkerPool[bytes, Any] = WorkerPool(
        PoolConfig(0, 10, 10**6), RayWorkers(placement), Codec()
    )
    await pool.start()
    return pool


async def ended(pool: WorkerPool[bytes, Any], task: bytes) -> Any:
    job = pool.job(object(), task, size_bytes=1)
    pool.submit([job])
    return (await asyncio.wait_for(job.done, 10)).outcome


async def test_a_host_has_one_worker_after_the_other_and_a_slot_one_host_after_the_other(
    near: NearCluster,
) -> None:
    told: list[Mapping[str, Any]] = []
    pool = await pool_on(accept=lambda about: told.append(about) or "")  # type: ignore[func-returns-value]
    assert await ended(pool, b"hello") == b"hello"
    assert told[0]["said"] == "what is here?"
    # A worker that dies in a job is replaced on the same host, and the job is not tried again.
    assert await ended(pool, b"die") is End.DIED
    assert await ended(pool, b"still here") == b"still here"
    assert (len(near.hosts), pool.restarts, EchoLink.started) == (1, 1, 2)
    # What nobody waits for any more is killed on the node; the host stays.
    job = pool.job(object(), b"for ever", size_bytes=1)
    pool.submit([job])
    await until(lambda: pool.busy)
    pool.cancel(job)
    assert await ended(pool, b"next") == b"next"
    assert (len(near.hosts), pool.restarts, EchoLink.started) == (1, 2, 3)
    # A host that is lost is replaced by another, and what ran there runs once more, once.
    slow = pool.job(object(), b"for ever", size_bytes=1)
    pool.submit([slow])
    for turn in (1, 2):
        await until(lambda: pool.busy)
        near.hosts[-1].end()
        await until(lambda turn=turn: len(near.hosts) > turn)
    assert (await asyncio.wait_for(slow.done, 10)).outcome is End.LOST
    assert await ended(pool, b"after") == b"after"
    assert len(told) == 3
    await pool.close()
    assert all(host.ended.is_set() for host in near.hosts)


@pytest.mark.parametrize(
    ("settings", "facts"), [("too weak", {}), ("", {"accept": lambda _: "too weak"})]
)
async def test_a_pool_whose_every_node_is_refused_does_not_start(
    near: NearCluster, settings: str, facts: dict[str, Any]
) -> None:
    with pytest.raises(LinkError, match=r"Ray node here .* is refused: too weak"):
        await pool_on(settings, **facts)
    assert all(host.ended.is_set() for host in near.hosts)


def test_what_is_told_to_a_node_and_what_it_says_come_back_as_they_were() -> None:
    config = SandboxConfig(
        slots=3, languages=("python",), pool="ray", cache_dir=Path("/x y"), max_cpu_s=2.5
    )
    assert SandboxConfig.from_json(config.to_json()) == config
    assert SandboxConfig.from_json(SandboxConfig().to_json()) == SandboxConfig()
    chain = Toolchain("python", {"python": "/usr/bin/python3"}, ("/opt",), "f")
    lack = MissingLanguage("rust", "install rustc.", "rustc")
    versions = {"python": "Python 3.11.7"}
    site = SurveyedMachine(
        "uid", ("a", "b"), Toolchains({"python": chain}, {"rust": lack}), Path("/c"), versions
    )
    assert SurveyedMachine.from_json(site.to_json()) == site
    assert json.loads(site.to_json())["versions"] == versions
