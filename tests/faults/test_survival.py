"""What a whole run meets: backends that hang or babble, servers killed, a clock that jumps, slow
readers, trainers that vanish, thousands of calls at once.

One invariant over all: judgements plus faults are the items, and no fault is a 0. The services of
this file live with a clock that jumps by a day every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients import EmbeddedServices, Item, Result, RewardClient
from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.execution import (
    AsyncExecutionClient,
    CallTest,
    Limits,
    TestSuite,
    suite_to_proto,
)
from assay.kit.errors import reason_of, status_sent
from assay.kit.limits import channel_options
from assay.kit.reasons import Reason
from assay.kit.serving import ServeConfig, start
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Candidate,
    Component,
    Judgement,
    Verifier,
    VerifierExample,
    VerifierSpec,
)
from assay.reward_server.domain import VerifierItem as JudgedItem
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from assay.reward_server.verifiers.code import CodeVerifier
from chaos import install

# gRPC turns deadlines into times of day and back, in C and in Python. In a real jump both clocks
# leap together, so its Python does not see the one that is made here.
JUMPING_CLOCK = """
import sys, time
_time, _clock = time.time, time.monotonic
def jumping():
    caller = sys._getframe(1).f_code.co_filename.replace(chr(92), "/")
    steady = "/grpc/" in caller or caller.endswith("/kit/deadlines.py")
    return _time() + (0 if steady else 86400 * (int(_clock()) % 2))
time.time = jumping
"""
SUITE = suite_to_proto(TestSuite([CallTest("double", (3,), 6)], Limits(wall_time_s=20.0)))
SLOW = "```python\nimport time\n\n\ndef double(x):\n    time.sleep(0.3)\n    return x + x\n```"


def programs(count: int) -> list[Item]:
    """All right: whatever reward but 1 comes of one, it is not its own."""
    text = SLOW.replace("0.3", "0.3 + 0 * {}")
    return [
        Item(text.format(n), reference=SUITE, task="code", id=f"code-{n}") for n in range(count)
    ]


def answers(count: int) -> list[Item]:
    """Beside them, such as no other service is asked for."""
    return [
        Item(f"\\boxed{{{n}}}", reference=str(n), task="math", id=f"math-{n}") for n in range(count)
    ]


def faults(results: list[Result], items: list[Item]) -> Counter[str]:
    """The reasons of the faults; every item has one result, and every judgement is right."""
    assert sorted(result.id for result in results) == sorted(item.id for item in items)
    for result in results:
        assert (result.judgement is None) != (result.fault is None)
        assert result.reward == (1.0 if result.fault is None else None)
    return Counter(result.fault.reason for result in results if result.fault)


def until(condition: Callable[[], object], limit_s: float = 30.0) -> None:
    """Waits until a condition holds."""
    ends_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_s, "the condition did not come to hold"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServices]:
    """A reward server and its sandbox, whose clocks jump; all tests leave them alive."""
    with jumping(tmp_path_factory.mktemp("services")) as made:
        yield made


def path_with(folder: Path | str) -> str:
    """PYTHONPATH with a folder in front."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


@contextlib.contextmanager
def jumping(folder: Path) -> Iterator[EmbeddedServices]:
    """A reward server and its sandbox, whose clocks jump."""
    (folder / "sitecustomize.py").write_text(JUMPING_CLOCK)
    given = {
        "sandbox": ("--slots", "1", "--languages", "python", "--isolation-floor", "confined"),
        "reward": ("--workers", "1"),
    }
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", path_with(folder))
            made = stack.enter_context(
                EmbeddedServices(("sandbox", "reward"), arguments=given, log_dir=folder)
            )
        with RewardClient(made.address) as client:  # libraries are loaded at first use
            client.score([*answers(1), *programs(1)], timeout_s=60.0)
        yield made


def test_a_clock_that_jumps_by_days_changes_nothing(
    services: EmbeddedServices, tmp_path_factory: pytest.TempPathFactory
) -> None:
    items = [*answers(20), *programs(5)]
    with RewardClient(services.address_of("reward")) as client:
        assert not faults(client.score(items, timeout_s=60.0), items)
    # The jumps are real: the log's times, which nothing else looks at, have both days.
    environment = Path(f"/proc/{services.pid('reward')}/environ").read_bytes().decode()
    found = re.search("PYTHONPATH=([^:\0]*)", environment)
    assert found is not None
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            "import time; a = time.time(); time.sleep(1); print(time.time() - a)",
        ],
        env={**os.environ, "PYTHONPATH": found[1]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert abs(float(shown.stdout)) > 80_000


@pytest.mark.slow
def test_a_sandbox_that_hangs_costs_its_own_items(services: EmbeddedServices) -> None:
    items = [*programs(3), *answers(10)]
    pid = services.pid("sandbox")
    with RewardClient(services.address_of("reward")) as client:
        os.kill(pid, signal.SIGSTOP)
        try:
            found = faults(client.score(items, timeout_s=8.0), items)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert found.total() == 3, found
        assert not faults(client.score(items, timeout_s=60.0), items)


@pytest.mark.slow
def test_a_sandbox_killed_in_mid_batch_costs_its_own_items(tmp_path: Path) -> None:
    """Its processes die with it; what it had not answered is a fault."""
    items = [*answers(10), *programs(12)]
    results: list[Result] = []
    with jumping(tmp_path) as services, RewardClient(services.address_of("reward")) as client:
        kill = threading.Timer(1.0, os.kill, (services.pid("sandbox"), signal.SIGKILL))
        for result in client.stream(items, timeout_s=6.0):
            if not results:
                kill.start()
            results.append(result)
    found = faults(results, items)
    assert 0 < found.total() <= 12, found
    assert all(result.reward == 1.0 for result in results if result.id.startswith("math-"))
    assert found.keys() <= {Reason.UNREACHABLE, Reason.DEADLINE_EXCEEDED, Reason.WORKER_DIED}


@pytest.mark.slow
def test_a_reward_server_killed_in_mid_batch_is_met_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that may try often enough loses nothing when the server is back within its time."""
    patient = ClientConfig(retry=RetryPolicy(max_attempts=100, cap_s=1.0))
    monkeypatch.setenv("PYTHONPATH", path_with(install(tmp_path)))
    items = [Item(f"sleep 0.2 {n}", verifier="chaos", id=str(n)) for n in range(20)]
    flags = {"reward": ("--workers", "1")}
    with EmbeddedServices(arguments=flags) as first:
        port = int(first.address.rpartition(":")[2])
        with RewardClient(first.address, config=patient) as client:
            results: list[Result] = []
            failed: list[BaseException] = []

            def score() -> None:
                try:
                    results.extend(client.score(items, timeout_s=60.0))
                except BaseException as error:  # noqa: BLE001 - shown below
                    failed.append(error)

            asking = threading.Thread(target=score)
            asking.start()
            time.sleep(1.0)
            assert asking.is_alive(), (failed, results)
            os.kill(first.pid("reward"), signal.SIGKILL)
            until(first.dead)
            with EmbeddedServices(arguments=flags, ports={"reward": port}):
                asking.join()
    assert not failed
    assert not faults(results, items)


async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)
    writer.close()


async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"ok": 1}')
    with contextlib.suppress(OSError):
        await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def serving(
    scorer: RewardScorer,
) -> AsyncIterator[tuple[reward_pb2_grpc.RewardServiceAsyncStub, str]]:
    async with (
        await start([reward_service(scorer)], ServeConfig()) as server,
        grpc.aio.insecure_channel(server.address, options=channel_options()) as channel,
    ):
        yield reward_pb2_grpc.RewardServiceStub(channel), server.address


def message(item_id: str, response: str, verifier: str = "chaos") -> reward_pb2.Item:
    made = reward_pb2.Item(id=item_id, verifier=verifier, response=response)
    made.reference.text = response
    return made


@pytest.mark.parametrize(
    "backend", [hang, *(pytest.param(each, marks=pytest.mark.slow) for each in (hang_up, babble))]
)
async def test_a_backend_that_is_no_sandbox_costs_its_own_items(
    backend: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    behaviour = hang_up  # at the start, where the verifier is tested and may fail

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await behaviour(reader, writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    once = ClientConfig(retry=RetryPolicy(max_attempts=1))
    verifier = CodeVerifier(AsyncExecutionClient(f"127.0.0.1:{port}", config=once))
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry([verifier]))
    async with serving(scorer) as (stub, _):
        behaviour = backend
        code = reward_pb2.Item(id="code", verifier="code", response=SLOW)
        code.reference.tests.CopyFrom(SUITE)
        items = [code, message("exact", "42", "exact")]
        response = await stub.BatchScore(reward_pb2.BatchScoreRequest(items=items), timeout=4)
    server.close()
    found, judged = response.results
    assert found.WhichOneof("outcome") == "fault"
    assert reason_of(found.fault) in (Reason.UNREACHABLE, Reason.DEADLINE_EXCEEDED)
    assert judged.judgement.reward == 1.0


async def test_two_thousand_calls_at_once_are_each_answered(services: EmbeddedServices) -> None:
    """None is dropped without a reason; what the server cannot take it refuses by QUEUE_FULL."""

    async def ask(stub: reward_pb2_grpc.RewardServiceAsyncStub, number: int) -> float:
        item = message("a", str(number), "exact")
        item.reference.text = str(number - number % 2)
        request = reward_pb2.BatchScoreRequest(items=[item])
        while True:
            try:
                [result] = (await stub.BatchScore(request, timeout=60)).results
            except grpc.aio.AioRpcError as error:
                status = status_sent(error)
                assert status is not None, error  # noqa: PT017 - any other call must not fail
                assert reason_of(status) == Reason.QUEUE_FULL
                await asyncio.sleep(0.2)
            else:
                assert result.HasField("judgement")
                return result.judgement.reward

    address = services.address_of("reward")
    channels = [grpc.aio.insecure_channel(address, options=channel_options()) for _ in range(8)]
    stubs = [reward_pb2_grpc.RewardServiceStub(channel) for channel in channels]
    rewards = await asyncio.gather(*(ask(stubs[n % 8], n) for n in range(2000)))
    for channel in channels:
        await channel.close()
    assert rewards == [1.0, 0.0] * 1000


class Echo(Verifier):
    """Answers with all of the response."""

    spec = VerifierSpec(
        "echo", "1", "Repeats.", (), 0.0, 1.0, ("fine",), isolation="inline", needs_reference=False
    )
    judged = 0
    examples = (VerifierExample(JudgedItem(Candidate("fine")), "fine"),)

    def judge(self, item: JudgedItem) -> Judgement:
        Echo.judged += 1
        said = item.response()
        return Judgement(1.0, "fine", (Component("a", 1.0),), extracted_answer=said)


async def test_a_slow_reader_fills_nobodys_memory_and_loses_nothing() -> None:
    """The server stops taking chunks from who does not read, serves others, and goes on later."""
    chunks = 150

    async def requests() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for k in range(chunks):
            items = [message(f"{k}-{i}", f"{k}-{i}" + "x" * 15_000, "echo") for i in range(10)]
            yield reward_pb2.StreamScoreRequest(items=items)

    scorer = RewardScorer(ScorerConfig(workers=1, queue_items=10), registry=load_registry([Echo()]))
    async with serving(scorer) as (stub, _):
        call = stub.StreamScore(requests(), timeout=100)
        before = -1
        while before != Echo.judged or not before:
            before = Echo.judged
            await asyncio.sleep(0.4)
        assert before < 10 * chunks // 2, f"{before} items were judged while nobody read"
        request = reward_pb2.BatchScoreRequest(items=[message("other", "42", "exact")])
        other = await stub.BatchScore(request, timeout=10)
        assert other.results[0].judgement.reward == 1.0
        results = [result async for part in call for result in part.results]
    assert sorted(r.id for r in results) == sorted(
        f"{k}-{i}" for k in range(chunks) for i in range(10)
    )
    assert all(r.judgement.reward == 1.0 for r in results)


TRAINER = """
import sys
from assay.clients import Item, RewardClient
with RewardClient(sys.argv[1]) as client:
    items = [Item(f"sleep 50 {n}", verifier="chaos", id=str(n)) for n in range(9)]
    list(client.stream(items, timeout_s=90.0))
"""


async def test_a_trainer_that_is_killed_in_mid_stream_takes_its_jobs_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(install(tmp_path))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", path_with(folder))
    scorer = RewardScorer(ScorerConfig(workers=1, item_timeout_s=60.0), registry=load_registry())
    async with serving(scorer) as (stub, address):
        trainer = subprocess.Popen(  # noqa: ASYNC220 - returns at once
            [sys.executable, "-c", TRAINER, address]
        )
        try:
            await asyncio.to_thread(
                until, lambda: scorer.pool.running_pids() and scorer.pool.queued == 8
            )
        finally:
            trainer.kill()
            trainer.wait()
        await asyncio.to_thread(
            until, lambda: not scorer.pool.running_pids() and scorer.pool.queued == 0
        )
        request = reward_pb2.BatchScoreRequest(items=[message("next", "fine")])
        response = await stub.BatchScore(request, timeout=20)
        assert response.results[0].HasField("judgement")
