"""The reward server as a process, over the wire: the contract, the command line, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc import status_pb2

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.errors import error_info, reason_of
from assay.kit.health import Health, check
from assay.kit.limits import MAX_BATCH_ITEMS, MAX_ITEM_BYTES, channel_options
from chaos import install


def launch(*flags: str, **environment: str) -> subprocess.Popen[str]:
    """Starts the server as a user does."""
    return subprocess.Popen(
        [sys.executable, "-m", "assay.reward_server", "--port", "0", "--workers", "2", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def ready(process: subprocess.Popen[str]) -> str:
    """The address from the line that says that it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("assay reward_server ready on ")
    return line.split()[-1]


@contextlib.contextmanager
def running(*flags: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with launch(*flags, **environment) as process:
        try:
            yield ready(process), process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def plug_ins(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of plug-ins that misbehave on demand."""
    return str(install(tmp_path_factory.mktemp("plug-ins")))


@pytest.fixture(scope="module")
def address(plug_ins: str) -> Iterator[str]:
    with running(PYTHONPATH=plug_ins) as (address, _):
        yield address


@contextlib.asynccontextmanager
async def calling(address: str) -> AsyncIterator[reward_pb2_grpc.RewardServiceAsyncStub]:
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        yield reward_pb2_grpc.RewardServiceStub(channel)


def item(
    item_id: str, response: str = "42", verifier: str = "exact", reference: str = "42"
) -> reward_pb2.Item:
    message = reward_pb2.Item(id=item_id, verifier=verifier, response=response)
    message.reference.text = reference
    return message


def batch(*items: reward_pb2.Item) -> reward_pb2.BatchScoreRequest:
    return reward_pb2.BatchScoreRequest(items=items)


async def read(
    call: AsyncIterable[reward_pb2.StreamScoreResponse],
    results: list[reward_pb2.Result],
    received: asyncio.Event,
) -> None:
    """Reads a stream to its end, into a list."""
    async for part in call:
        results += list(part.results)
        received.set()


def reason(error: grpc.aio.AioRpcError) -> str:
    pairs = dict(error.trailing_metadata() or ())
    found: str = error_info(status_pb2.Status.FromString(pairs["grpc-status-details-bin"])).reason
    return found


async def test_it_says_what_it_serves(address: str) -> None:
    async with calling(address) as stub:
        listed = await stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10)
    infos = {info.name: info for info in listed.verifiers}
    assert list(infos) == sorted(infos)
    assert {"exact", "math"} < infos.keys()
    assert infos["math"].tasks == ["math", "gsm8k"]
    [weight] = [p for p in infos["math"].parameters if p.name == "format_weight"]
    assert (weight.minimum, weight.maximum, weight.default_value.float_value) == (0.0, 1.0, 0.0)
    assert infos["exact"].parameters[0].default_value.WhichOneof("kind") == "bool_value"
    assert listed.limits.max_items == MAX_BATCH_ITEMS
    assert listed.limits.max_item_bytes == MAX_ITEM_BYTES
    assert listed.limits.default_item_timeout.seconds == 10
    assert listed.server_version


async def test_one_batch_with_every_kind_of_item(address: str) -> None:
    bare = item("bare")
    bare.ClearField("reference")
    silent = item("silent")
    silent.ClearField("response")
    listed = item("texts", "b")
    listed.reference.texts.values.extend(["a", "b"])
    untimely, overdue = item("untimely"), item("overdue")
    untimely.timeout.seconds = 0
    overdue.timeout.seconds = 10_000
    odd = item("odd")
    odd.parameters["colour"].string_value = "red"
    weighted = item("weighted", r"\boxed{42}", "math")
    weighted.parameters["format_weight"].float_value = 0.5
    routed = item("routed", "#### 42", "")
    routed.task = "gsm8k"
    lost = item("lost", "x", "")
    lost.task = "poetry"
    turns = item("turns")
    turns.turns.turns.add(from_policy=True).message.content = "42"
    tests = item("tests")
    tests.reference.tests.SetInParent()
    expected = {
        "right": 1.0,
        "wrong": 0.0,
        "empty": 0.0,
        "texts": 1.0,
        "weighted": 1.5,
        "routed": 1.0,
        "bare": "MISSING_REFERENCE",
        "silent": "MISSING_RESPONSE",
        "untimely": "INVALID_TIMEOUT",
        "overdue": "INVALID_TIMEOUT",
        "odd": "INVALID_PARAMETER",
        "lost": "UNKNOWN_TASK",
        "unknown": "UNKNOWN_VERIFIER",
        "huge": "ITEM_TOO_LARGE",
        "turns": "UNSUPPORTED_INPUT",
        "tests": "UNSUPPORTED_INPUT",
        "blank": "UNUSABLE_REFERENCE",
    }
    made = {
        m.id: m
        for m in (
            item("right"), item("wrong", "41"), item("empty", ""), listed, weighted, routed, bare,
            silent, untimely, overdue, odd, lost, item("unknown", verifier="maths"),
            item("huge", "x" * (MAX_ITEM_BYTES + 1)), turns, tests,
            item("blank", r"\boxed{1}", "math", " "),
        )
    }  # fmt: skip
    async with calling(address) as stub:
        response = await stub.BatchScore(batch(*made.values()), timeout=30)
    assert [r.id for r in response.results] == list(made)
    found = {
        r.id: r.judgement.reward if r.HasField("judgement") else reason_of(r.fault)
        for r in response.results
    }
    assert found == expected
    messages = {r.id: r.fault.message for r in response.results}
    assert "colour" in messages["odd"]
    assert "exact, " in messages["unknown"]
    assert "gsm8k" in messages["lost"]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], "EMPTY_BATCH"),
        ([item("a"), item("a")], "DUPLICATE_ITEM_ID"),
        ([item("a"), item("")], "MISSING_ITEM_ID"),
        ([item("a" * 257)], "MISSING_ITEM_ID"),
        ([item(str(i)) for i in range(MAX_BATCH_ITEMS + 1)], "BATCH_TOO_LARGE"),
    ],
)
async def test_a_malformed_request_is_refused_whole(
    address: str, items: list[reward_pb2.Item], expected: str
) -> None:
    async with calling(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.BatchScore(batch(*items), timeout=10)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert reason(refused.value) == expected


async def test_a_thousand_items_with_repeats(address: str) -> None:
    answers = [i % 50 for i in range(1000)]
    items = [item(f"{n}", f"word {a}", "chaos") for n, a in enumerate(answers)]
    async with calling(address) as stub:
        response = await stub.BatchScore(batch(*items), timeout=60)
        again = await stub.BatchScore(batch(*items), timeout=60)
    assert [r.id for r in response.results] == [i.id for i in items]
    assert all(r.judgement.reward == 1.0 for r in response.results)
    assert sum(not r.from_cache for r in response.results) == 50
    assert all(r.from_cache and not r.timings.execution.nanos for r in again.results)
    assert all(r.judgement.reward == 1.0 for r in again.results)


async def test_a_stream_returns_every_item_once(address: str) -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for k in range(6):
            kinds = ["exact", "math"] * 10
            made = [item(f"{k}-{i}", str(9000 + i), kind, "9001") for i, kind in enumerate(kinds)]
            made.append(item(f"{k}-worker", "word", "chaos"))
            yield reward_pb2.StreamScoreRequest(items=made)
            await asyncio.sleep(0.01)

    async with calling(address) as stub:
        call = stub.StreamScore(chunks(), timeout=30)
        results = [result async for part in call for result in part.results]
    each = [*range(20), "worker"]
    assert sorted(r.id for r in results) == sorted(f"{k}-{i}" for k in range(6) for i in each)
    right = {r.id.partition("-")[2] for r in results if r.judgement.reward == 1.0}
    assert right == {"1", "worker"}


async def test_a_stream_keeps_what_came_before_a_refused_chunk(address: str) -> None:
    sent = asyncio.Event()

    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        yield reward_pb2.StreamScoreRequest(items=[item("a")])
        await sent.wait()
        yield reward_pb2.StreamScoreRequest(items=[item("a")])

    async with calling(address) as stub:
        results: list[reward_pb2.Result] = []
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await read(stub.StreamScore(chunks(), timeout=30), results, sent)
    assert [r.id for r in results] == ["a"]
    assert reason(refused.value) == "DUPLICATE_ITEM_ID"


async def test_a_stream_ends_at_its_deadline(address: str) -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        slow = item("slow", "sleep 60", "chaos")
        yield reward_pb2.StreamScoreRequest(items=[item("a"), slow])
        await asyncio.sleep(30)

    async with calling(address) as stub:
        received: list[reward_pb2.Result] = []
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await read(stub.StreamScore(chunks(), timeout=1.5), received, asyncio.Event())
    assert ended.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    results = {result.id: result for result in received}
    assert results["a"].judgement.reward == 1.0
    assert reason_of(results["slow"].fault) == "DEADLINE_EXCEEDED"


async def test_a_call_without_a_deadline_is_refused(address: str) -> None:
    async with calling(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.BatchScore(batch(item("a")))
    assert reason(refused.value) == "DEADLINE_REQUIRED"


async def test_health_is_per_service(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        for name in ("", "assay.api.reward.v1.RewardService"):
            assert await check(channel, name) is Health.SERVING


def descendants(pid: int) -> set[int]:
    """Process ids of the children of a process, and of theirs."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found |= {int(child)} | descendants(int(child))
    return found


def alive(pids: set[int]) -> set[int]:
    living = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if ") Z" not in Path(f"/proc/{pid}/stat").read_text():
                living.add(pid)
    return living


def gone(pids: set[int]) -> bool:
    ends_s = time.monotonic() + 20
    while alive(pids) and time.monotonic() < ends_s:
        time.sleep(0.02)
    return not alive(pids)


async def score_in_background(address: str, request: reward_pb2.BatchScoreRequest) -> object:
    async with calling(address) as stub:
        return await stub.BatchScore(request, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_killed_server_leaves_no_process(plug_ins: str) -> None:
    with running("--item-timeout-s", "60", PYTHONPATH=plug_ins) as (address, process):
        poison = batch(*(item(f"{i}", f"sleep 6{i}", "chaos") for i in range(2)))
        call = asyncio.create_task(score_in_background(address, poison))
        await asyncio.sleep(0.5)
        family = descendants(process.pid)
        assert len(family) == 3  # the nursery and two workers, both busy
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert gone(family)
        with pytest.raises(grpc.aio.AioRpcError):
            await call


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_terminated_server_ends_its_calls_first(tmp_path: Path, plug_ins: str) -> None:
    port_file = tmp_path / "port"
    flags = ("--item-timeout-s", "2", "--port-file", str(port_file))
    with running(*flags, PYTHONPATH=plug_ins) as (address, process):
        assert port_file.read_text() == address.rpartition(":")[2] + "\n"
        family = descendants(process.pid)
        slow = item("slow", "sleep 60", "chaos")
        call = asyncio.create_task(score_in_background(address, batch(slow, item("quick"))))
        await asyncio.sleep(0.5)
        process.terminate()
        response = await call
        assert isinstance(response, reward_pb2.BatchScoreResponse)
        assert reason_of(response.results[0].fault) == "ITEM_TIMEOUT"
        assert response.results[1].judgement.reward == 1.0
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert gone(family)
        assert not port_file.exists()


def test_a_token_is_required_where_one_is_set() -> None:
    async def check(address: str) -> None:
        async with calling(address) as stub:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.BatchScore(batch(item("a")), timeout=10)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
            metadata = (("authorization", "Bearer open-sesame"),)
            response = await stub.BatchScore(batch(item("a")), timeout=10, metadata=metadata)
            assert response.results[0].judgement.reward == 1.0

    with running(ASSAY_REWARD_TOKEN="open-sesame") as (address, process):
        asyncio.run(check(address))
        for pid in descendants(process.pid):
            assert b"open-sesame" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--workers", "-3"], "--workers"),
        (["--item-timeout-s", "900"], "--item-timeout-s"),
        (["--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"], "/nowhere.pem"),
        (["--tls-cert", "/nowhere.pem"], "--tls-key"),
        (["--token-file", "/nowhere"], "/nowhere"),
        (["--port-file", "/nowhere/port"], "/nowhere/port"),
        (["--host", "no.such.host.invalid"], "no.such.host.invalid"),
        (["--host", "0.0.0.0"], "--trusted-network"),
    ],
)
def test_a_wrong_setting_is_one_line(flags: list[str], names: str) -> None:
    with launch(*flags) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output == ""
    assert "Traceback" not in errors
    last = errors.strip().splitlines()[-1]
    assert last.startswith("assay reward_server: ")
    assert names in last


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with launch("--port", port) as process:
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert f"port {port}" in errors.strip().splitlines()[-1]
