"""The shipped Envoy configuration, by a real Envoy in front of two real reward servers."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import grpc
import pytest

from assay.clients import AsyncRewardClient, ClientConfig, Item
from assay.clients.config import RetryPolicy
from assay.kit.errors import CallError
from assay.kit.health import Health, check, wait_until_serving
from envoy_support import CONFIG, Envoy, binary, flags
from replicas_support import (
    Replica,
    call_until,
    item,
    replica_of,
    stream_past_a_kill,
    stream_until,
    until_used,
)

PROGRAM = binary()
pytestmark = [
    pytest.mark.envoy,
    pytest.mark.skipif(PROGRAM is None, reason="no Envoy: `make test-envoy` installs one"),
]
ONCE = ClientConfig(retry=RetryPolicy(max_attempts=1))


class Front(NamedTuple):
    envoy: Envoy
    pair: tuple[Replica, Replica]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Envoy before two replicas; a test leaves both serving."""
    first, second = (Replica(name, tmp_path_factory.mktemp(name), workers=1) for name in "ab")
    addresses = [first.address, second.address]
    assert PROGRAM is not None
    envoy = Envoy(PROGRAM, tmp_path_factory.mktemp("envoy"), addresses)
    try:
        for part in (first, second, envoy):
            part.start()
        for replica in (first, second):
            asyncio.run(replica.serving())
        asyncio.run(wait_until_serving(envoy.address))
        yield Front(envoy, (first, second))
    finally:
        for part in (first, second, envoy):
            part.stop()


def test_the_shipped_file_is_sound_and_up_to_date() -> None:
    """Envoy itself reads it, knows every field and warns of none."""
    done = subprocess.run(
        [str(PROGRAM), *flags(), "--mode", "validate", "-c", str(CONFIG)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr


async def test_calls_go_to_both_by_either_kind_of_target(front: Front) -> None:
    """Also by a name, where gRPC asks for a health watch, which Envoy does not pass on."""
    for target in (front.envoy.address, f"dns:///{front.envoy.address}"):
        async with AsyncRewardClient(target) as client:
            assert await check(target) is Health.SERVING
            await until_used(client, {"a", "b"})


async def test_calls_at_a_time_are_spread(front: Front) -> None:
    async with AsyncRewardClient(front.envoy.address) as client:
        await until_used(client, {"a", "b"})
        answers = await asyncio.gather(*(client.score([item(0, 0.05)]) for _ in range(40)))
    used = Counter(replica_of(result) for (result,) in answers)
    assert min(used["a"], used["b"]) >= 8, used


async def test_as_large_a_batch_passes_as_without_it(front: Front) -> None:
    """Some 48 MB in one call: Envoy passes it on as it comes."""
    texts = [f"{n} {'x' * 1_500_000}" for n in range(16)]
    items = [Item(text, reference=text, verifier="exact") for text in texts]
    async with AsyncRewardClient(front.envoy.address) as client:
        results = await client.score(items)
    assert [result.reward for result in results] == [1.0] * len(texts), results


async def test_2000_calls_at_a_time_all_end_well(front: Front) -> None:
    many = ClientConfig(max_concurrent_calls=2000)
    async with AsyncRewardClient(front.envoy.address, config=many) as client:
        answers = await asyncio.gather(
            *(client.score([Item("4", reference="4", verifier="exact")]) for _ in range(2000))
        )
    assert {result.reward for (result,) in answers} == {1.0}


async def test_a_stream_outlives_the_replica_that_is_killed_under_it(front: Front) -> None:
    async with AsyncRewardClient(front.envoy.address) as client:
        await stream_past_a_kill(client, front.pair)


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL], ids=["rolling", "killed"])
async def test_replicas_that_end_by_turns_under_load_fail_no_call(
    front: Front, kind: signal.Signals
) -> None:
    """With default settings, in calls and in a stream. Printed besides: what Envoy alone makes
    good, for a client that tries once."""
    calls, once = Counter[str](), Counter[str]()
    over = asyncio.Event()

    async def call_once(client: AsyncRewardClient) -> None:
        while not over.is_set():
            (result,) = await client.score([item(0, 0.005)])
            once[result.fault.message if result.fault else "well"] += 1

    target = front.envoy.address
    async with AsyncRewardClient(target) as client, AsyncRewardClient(target, config=ONCE) as hasty:
        await until_used(client, {"a", "b"})
        callers = [asyncio.create_task(call_until(over, client, calls)) for _ in range(3)]
        callers.append(asyncio.create_task(call_once(hasty)))
        streaming = asyncio.create_task(stream_until(over, client))
        for replica in front.pair:
            await replica.end(kind)
            replica.start()
            await replica.serving()
            await until_used(client, {replica.name})
        over.set()
        await asyncio.gather(*callers)
        streamed = await streaming
    assert sorted(int(result.id) for result in streamed) == list(range(len(streamed)))
    assert set(calls) == {"a", "b"}
    print(f"\n{calls.total()} items in calls, {len(streamed)} in a stream; tried once: {once}")


async def test_without_a_replica_callers_are_told_and_served_again_afterwards(front: Front) -> None:
    for replica in front.pair:
        await replica.end(signal.SIGTERM)
    async with AsyncRewardClient(front.envoy.address, config=ONCE) as hasty:
        with pytest.raises(CallError) as caught:
            await hasty.score([item(0)], on_error="raise")
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        (result,) = await hasty.score([item(0)])
        assert result.fault is not None
        assert result.reward is None
    async with AsyncRewardClient(front.envoy.address) as client:
        for replica in front.pair:
            replica.start()
        for replica in front.pair:
            await replica.serving()
        await wait_until_serving(front.envoy.address)
        await until_used(client, {"a", "b"})


def test_what_is_no_grpc_is_not_answered(front: Front) -> None:
    with socket.create_connection(("127.0.0.1", front.envoy.port), timeout=10) as caller:
        caller.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not caller.recv(4096).startswith(b"HTTP/1.1 2")


def test_metrics_are_shown_and_nothing_else_of_the_administration(front: Front) -> None:
    with urllib.request.urlopen(front.envoy.metrics, timeout=10) as page:
        text = page.read().decode()
    assert 'envoy_cluster_membership_healthy{envoy_cluster_name="reward_server"} 2' in text
    for path in ("/quitquitquit", "/config_dump", "/", "/stats", "/metrics/../config_dump"):
        assert status(front.envoy.metrics.replace("/metrics", path)) == 404
    assert status(front.envoy.metrics, b"") == 404
    assert (front.envoy._folder / "admin.sock").stat().st_mode & 0o777 == 0o600


def status(url: str, data: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(url, data, timeout=10) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
