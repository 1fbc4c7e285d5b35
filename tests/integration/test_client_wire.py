"""The clients over real gRPC, against a server that fails on purpose."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from assay.api.common.v1 import common_pb2
from assay.clients import (
    AsyncRewardClient,
    ClientConfig,
    ClientTls,
    Item,
    Result,
    RetryPolicy,
    RewardClient,
)
from assay.clients.testing import FakeRewardServer, Knobs
from assay.kit.calls import METADATA_KEY
from assay.kit.errors import (
    BadRequestError,
    ConfigError,
    DeadlineError,
    UnauthenticatedError,
    UnavailableError,
)
from assay.kit.tls import ServerTls

QUICK = ClientConfig(retry=RetryPolicy(max_attempts=5, base_s=0.01, cap_s=0.05))
GIVE_UP = ClientConfig(retry=RetryPolicy(max_attempts=2, base_s=0.01, cap_s=0.05))


def items(count: int) -> list[Item]:
    """Items of which every second is right."""
    return [Item(str(number % 2), "1", verifier="exact") for number in range(count)]


def reasons(results: list[Result]) -> list[str | None]:
    return [result.fault.reason if result.fault else None for result in results]


async def until(true: Callable[[], bool]) -> None:
    """Waits for something that is bound to happen; the test's time-out is the limit."""
    while not true():  # noqa: ASYNC110  # there is no event to wait for
        await asyncio.sleep(0.01)


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def test_score_keeps_order_and_matches_by_id() -> None:
    knobs = Knobs(
        shuffle=True,
        unknown_results=2,
        drop_ids=frozenset({"3"}),
        fault_ids=frozenset({"4"}),
        nan_ids=frozenset({"5"}),
        duplicate_ids=frozenset({"7"}),
    )
    async with (
        FakeRewardServer(knobs=knobs) as server,
        AsyncRewardClient(server.address, config=QUICK) as client,
    ):
        results = await client.score(items(10))
    assert [result.id for result in results] == [str(number) for number in range(10)]
    rewards = [result.reward for result in results]
    assert rewards == [0.0, 1.0, 0.0, None, None, None, 0.0, None, 0.0, 1.0]
    assert reasons(results)[3:8] == [
        "MISSING_RESULT",
        "VERIFIER_FAILED",
        "INTERNAL",
        None,
        "INTERNAL",
    ]


async def test_no_items_make_no_call() -> None:
    async with FakeRewardServer() as server, AsyncRewardClient(server.address) as client:
        assert await client.score([]) == []
    assert not server.requests


async def test_score_splits_at_the_servers_limits() -> None:
    limits = common_pb2.BatchLimits(max_items=3, max_message_bytes=2000, max_item_bytes=1000)
    long = [Item("x" * 700, "1", verifier="exact"), Item("x" * 5000, "1", verifier="exact")]
    async with (
        FakeRewardServer(batch_limits=limits) as server,
        AsyncRewardClient(server.address) as client,
    ):
        results = await client.score(items(7) + long * 3)
    assert reasons(results) == [None] * 7 + [None, "ITEM_TOO_LARGE"] * 3
    sizes = sorted(len(request) for request in server.requests)
    assert sum(sizes) == 10
    assert max(sizes) <= 3


async def test_concurrent_callers_share_calls_even_with_equal_ids() -> None:
    async with FakeRewardServer() as server, AsyncRewardClient(server.address) as client:
        await client.list_verifiers()
        pairs = [Item(str(number % 2), "1", verifier="exact", id="same") for number in range(200)]
        results = await asyncio.gather(*(client.score_one(item) for item in pairs))
    assert [result.reward for result in results] == [float(number % 2) for number in range(200)]
    assert {result.id for result in results} == {"same"}
    assert max(len(request) for request in server.requests) <= 64
    assert len(server.requests) < 20


async def test_unavailable_and_full_are_retried() -> None:
    knobs = Knobs(unavailable=2, queue_full=1, retry_after_s=0.02)
    async with (
        FakeRewardServer(knobs=knobs) as server,
        AsyncRewardClient(server.address, config=QUICK) as client,
    ):
        results = await client.score(items(2), on_error="raise")
    assert [result.reward for result in results] == [0.0, 1.0]
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("knobs", "reason", "calls"),
    [
        (Knobs(unavailable=9), "DRAINING", 2),
        (Knobs(queue_full=9), "QUEUE_FULL", 2),
        (Knobs(queue_full=9, retry_after_s=None), "QUEUE_FULL", 1),
        (Knobs(internal=9), "INTERNAL", 1),
    ],
)
async def test_when_retries_end_the_reason_stays(knobs: Knobs, reason: str, calls: int) -> None:
    async with (
        FakeRewardServer(knobs=knobs) as server,
        AsyncRewardClient(server.address, config=GIVE_UP) as client,
    ):
        results = await client.score(items(3))
    assert reasons(results) == [reason] * 3
    assert len(server.requests) == calls


async def test_nobody_there(nobody: str) -> None:
    async with AsyncRewardClient(nobody, config=GIVE_UP) as client:
        (result,) = await client.score(items(1))
        assert result.fault is not None
        assert result.fault.reason == "UNREACHABLE"
        assert nobody in result.fault.message
        assert "assay serve reward" in result.fault.message
        one = await client.score_one(items(1)[0])
        assert reasons([one]) == ["UNREACHABLE"]
        with pytest.raises(UnavailableError, match=nobody):
            await client.score(items(1), on_error="raise")
        with pytest.raises(UnavailableError):
            await client.wait_ready(0.3)


async def test_wait_ready_meets_a_server_that_comes_late(nobody: str) -> None:
    async with AsyncRewardClient(nobody) as client:
        waiting = asyncio.create_task(client.wait_ready(20))
        await asyncio.sleep(0.3)
        async with FakeRewardServer(port=int(nobody.rpartition(":")[2])):
            assert (await waiting).version == "fake"


async def test_a_deadline_is_kept() -> None:
    async with (
        FakeRewardServer(knobs=Knobs(hang=3)) as server,
        AsyncRewardClient(server.address, config=QUICK) as client,
    ):
        started = time.monotonic()
        assert reasons(await client.score(items(2), timeout_s=0.4)) == ["DEADLINE_EXCEEDED"] * 2
        one = await client.score_one(items(1)[0], timeout_s=0.4)
        assert reasons([one]) == ["DEADLINE_EXCEEDED"]
        with pytest.raises(DeadlineError):
            await client.score(items(2), timeout_s=0.4, on_error="raise")
        assert time.monotonic() - started < 10


async def test_slow_answers_are_waited_for() -> None:
    async with (
        FakeRewardServer(knobs=Knobs(delay_s=0.2)) as server,
        AsyncRewardClient(server.address) as client,
    ):
        assert reasons(await client.score(items(2))) == [None, None]


@pytest.mark.parametrize("way", ["score", "score_one"])
async def test_a_cancelled_caller_cancels_its_call(way: str) -> None:
    async with (
        FakeRewardServer(knobs=Knobs(hang=1)) as server,
        AsyncRewardClient(server.address) as client,
    ):
        await client.list_verifiers()
        work = client.score(items(1)) if way == "score" else client.score_one(items(1)[0])
        task = asyncio.create_task(work)
        await until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bool(server.cancelled))
        assert reasons(await client.score(items(1))) == [None]


async def test_closing_with_calls_in_flight_is_clean() -> None:
    async with FakeRewardServer(knobs=Knobs(hang=2)) as server:
        client = AsyncRewardClient(server.address)
        await client.list_verifiers()
        batch = asyncio.create_task(client.score(items(2)))
        one = asyncio.create_task(client.score_one(items(1)[0]))
        await until(lambda: len(server.requests) == 2)
        await client.close()
        await client.close()
        assert reasons(await batch) == ["CANCELLED"] * 2
        assert reasons([await one]) == ["CANCELLED"]
        with pytest.raises(ConfigError, match="closed"):
            await client.score(items(1))


async def test_a_server_that_dies_and_comes_back_is_met_again(nobody: str) -> None:
    port = int(nobody.rpartition(":")[2])
    async with AsyncRewardClient(nobody) as client:
        async with FakeRewardServer(port=port, knobs=Knobs(die=1)):
            dying = asyncio.create_task(client.score(items(4)))
            await asyncio.sleep(0.5)
        async with FakeRewardServer(port=port):
            assert reasons(await dying) == [None] * 4


async def test_restarts_again_and_again_fail_no_call(nobody: str) -> None:
    """Calls that come while gRPC's server ends are CANCELLED by it, without a reason."""
    port = int(nobody.rpartition(":")[2])
    over = asyncio.Event()
    quick = ClientConfig(retry=RetryPolicy(base_s=0.01, cap_s=0.05))

    async def call(client: AsyncRewardClient) -> int:
        calls = 0
        while not over.is_set():
            assert reasons(await client.score(items(1))) == [None]
            calls += 1
        return calls

    async with AsyncRewardClient(nobody, config=quick) as client:
        callers = []
        for _ in range(5):
            async with FakeRewardServer(port=port):
                await client.wait_ready()
                callers = callers or [asyncio.create_task(call(client)) for _ in range(12)]
                await asyncio.sleep(0.1)
        async with FakeRewardServer(port=port):
            over.set()
            assert min(await asyncio.gather(*callers)) > 0


async def test_wrong_use_is_refused_before_anything_is_sent() -> None:
    async with FakeRewardServer() as server, AsyncRewardClient(server.address) as client:
        with pytest.raises(BadRequestError, match="'a'"):
            await client.score([Item("1", id="a"), Item("2", id="a")])
        with pytest.raises(BadRequestError):
            await client.score_one(Item("1", id="a" * 300))
        with pytest.raises(ConfigError, match="time-out"):
            await client.score(items(1), timeout_s=0)
    assert not server.requests
    with pytest.raises(ConfigError, match="address"):
        AsyncRewardClient("")
    with pytest.raises(ConfigError, match="address"):
        RewardClient("")


async def test_a_request_id_and_a_token_travel() -> None:
    async with FakeRewardServer(token="sesame") as server:
        async with AsyncRewardClient(server.address, token="sesame") as client:
            assert reasons(await client.score(items(1))) == [None]
        assert server.metadata[0]["authorization"] == "Bearer sesame"
        assert server.metadata[0][METADATA_KEY]
        async with AsyncRewardClient(server.address, token="wrong") as client:
            assert reasons(await client.score(items(1))) == ["UNAUTHENTICATED"]
            with pytest.raises(UnauthenticatedError):
                await client.list_verifiers()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ServerTls:
    """A certificate that signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: it makes the certificate of this test")
    folder: Path = tmp_path_factory.mktemp("tls")
    tls = ServerTls(folder / "server.pem", folder / "server.key")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    command += f" -subj /CN=here -addext subjectAltName=IP:127.0.0.1 -keyout {tls.key_file}"
    command += f" -out {tls.cert_file}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return tls


async def test_tls(certificate: ServerTls) -> None:
    trusting = ClientTls(ca_file=certificate.cert_file)
    async with FakeRewardServer(tls=certificate) as server:
        async with AsyncRewardClient(server.address, tls=trusting) as client:
            assert reasons(await client.score(items(1))) == [None]
        async with AsyncRewardClient(server.address, config=GIVE_UP) as client:
            assert reasons(await client.score(items(1))) == ["UNREACHABLE"]


async def source(count: int) -> AsyncIterator[Item]:
    for item in items(count):
        yield item
        await asyncio.sleep(0)


async def test_a_stream_yields_each_result_once() -> None:
    knobs = Knobs(unavailable=1, shuffle=True, drop_ids=frozenset({"9"}))
    async with (
        FakeRewardServer(knobs=knobs) as server,
        AsyncRewardClient(server.address, config=QUICK) as client,
    ):
        results = {result.id: result async for result in client.stream(source(150))}
    assert len(results) == 150
    rewards = [results[str(number)].reward for number in range(150)]
    assert rewards == [None if number == 9 else float(number % 2) for number in range(150)]


async def test_a_stream_gives_results_while_items_still_come() -> None:
    async with FakeRewardServer() as server, AsyncRewardClient(server.address) as client:
        answered = asyncio.Event()

        async def waits_for_the_first_result() -> AsyncIterator[Item]:
            yield items(1)[0]
            await answered.wait()
            yield items(2)[1]

        rewards = []
        async for result in client.stream(waits_for_the_first_result()):
            answered.set()
            rewards.append(result.reward)
    assert rewards == [0.0, 1.0]


@pytest.mark.parametrize("on_error", ["fault", "raise"])
async def test_a_broken_stream(on_error: str) -> None:
    async with (
        FakeRewardServer(knobs=Knobs(unavailable=9)) as server,
        AsyncRewardClient(server.address, config=GIVE_UP) as client,
    ):
        if on_error == "fault":
            results = [result async for result in client.stream(source(70))]
            assert reasons(results) == ["DRAINING"] * 70
        else:
            with pytest.raises(UnavailableError):
                _ = [r async for r in client.stream(source(70), on_error="raise")]


async def test_a_source_that_fails_ends_its_stream() -> None:
    async def failing() -> AsyncIterator[Item]:
        yield items(1)[0]
        raise ZeroDivisionError

    async with FakeRewardServer() as server, AsyncRewardClient(server.address) as client:
        with pytest.raises(ZeroDivisionError):
            _ = [result async for result in client.stream(failing())]
        with pytest.raises(BadRequestError, match="'a'"):
            _ = [result async for result in client.stream(two_of_one_id())]


async def two_of_one_id() -> AsyncIterator[Item]:
    yield Item("1", "1", id="a")
    yield Item("1", "1", id="a")


async def test_a_group_travels_whole_in_a_stream() -> None:
    async def groups() -> AsyncIterator[list[Item]]:
        for group in range(10):
            yield [Item("1", "1", verifier="exact", group_id=str(group)) for _ in range(3)]

    limits = common_pb2.BatchLimits(max_items=4)
    async with (
        FakeRewardServer(batch_limits=limits) as server,
        AsyncRewardClient(server.address) as client,
    ):
        assert len([result async for result in client.stream(groups())]) == 30
    for request in server.requests:
        assert len({item.group_id for item in request}) == 1
        assert len(request) == 3


def test_sync_client_works_from_many_threads() -> None:
    with FakeRewardServer() as server, RewardClient(server.address) as client:
        assert client.wait_ready(10).version == "fake"
        assert [result.reward for result in client.score(items(3))] == [0.0, 1.0, 0.0]
        found: list[float | None] = []

        def ask() -> None:
            found.append(client.score_one(Item("1", "1", verifier="exact")).reward)

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1.0] * 16
        streamed = {result.id: result.reward for result in client.stream(items(5))}
        assert streamed == {str(number): float(number % 2) for number in range(5)}


def test_sync_client_closes_while_another_thread_waits() -> None:
    with FakeRewardServer(knobs=Knobs(hang=1)) as server:
        client = RewardClient(server.address)
        client.list_verifiers()
        found: list[Result] = []
        thread = threading.Thread(target=lambda: found.extend(client.score(items(2))))
        thread.start()
        while not server.requests:
            time.sleep(0.01)
        client.close()
        thread.join(10)
        assert reasons(found) == ["CANCELLED"] * 2
        with pytest.raises(ConfigError, match="closed"):
            client.score(items(1))


WAITS_FOR_EVER = """
import queue, sys
from assay.clients import Item, RewardClient

items = queue.SimpleQueue()
items.put(Item("x", reference="x", verifier="exact"))
for result in RewardClient(sys.argv[1]).stream(iter(items.get, None)):
    sys.exit(7 if result.judgement else 1)
"""


def test_a_process_ends_whatever_its_stream_waits_for() -> None:
    with FakeRewardServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", WAITS_FOR_EVER, server.address],
            timeout=60, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (7, "")


def test_sync_client_survives_a_fork() -> None:
    with FakeRewardServer() as server, RewardClient(server.address, timeout_s=20) as client:
        assert reasons(client.score(items(1))) == [None]
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                rewards = [result.reward for result in client.score(items(4))]
                os.write(writer, repr(rewards).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            assert pipe.read() == "[0.0, 1.0, 0.0, 1.0]"
        os.waitpid(pid, 0)
        assert reasons(client.score(items(1))) == [None]


def test_sync_client_can_be_pickled() -> None:
    program = """
import pickle, sys
from assay.clients import Item
client = pickle.load(sys.stdin.buffer)
print(client.score_one(Item("1", "1", verifier="exact")).reward)
"""
    with (
        FakeRewardServer(token="t") as server,
        RewardClient(server.address, token="t", timeout_s=20) as client,
    ):
        client.list_verifiers()
        frozen = pickle.dumps(client)
        with pickle.loads(frozen) as copy:
            assert copy.score_one(Item("1", "1", verifier="exact")).reward == 1.0
        command = [sys.executable, "-c", program]
        child = subprocess.run(command, input=frozen, capture_output=True, timeout=60, check=True)
    assert child.stdout == b"1.0\n"
    assert child.stderr == b""


async def test_one_client_is_of_one_loop() -> None:
    async with FakeRewardServer() as server:
        client = AsyncRewardClient(server.address)
        await client.list_verifiers()
        with pytest.raises(ConfigError, match="event loop"):
            await asyncio.to_thread(lambda: asyncio.run(client.score(items(1))))
        await client.close()


async def test_a_knob_that_nobody_met_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="nan_ids, unavailable"):
        async with FakeRewardServer(knobs=Knobs(unavailable=1, nan_ids=frozenset({"x"}))):
            pass
