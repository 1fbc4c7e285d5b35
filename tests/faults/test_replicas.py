"""Replicas behind one target, real processes: killed, restarted by turns, and found again."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from assay.clients import AsyncRewardClient
from replicas_support import (
    Replica,
    call_until,
    item,
    replica_of,
    stream_past_a_kill,
    stream_until,
    until_used,
)

Pair = tuple[Replica, Replica]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two replicas; a test leaves both serving."""
    first, second = (Replica(name, tmp_path_factory.mktemp(name)) for name in "ab")
    replicas = first, second
    try:
        for replica in replicas:
            replica.start()
        for replica in replicas:
            asyncio.run(replica.serving())
        yield replicas
    finally:
        for replica in replicas:
            replica.stop()


def client_of(pair: Pair) -> AsyncRewardClient:
    """A client with its default settings."""
    return AsyncRewardClient(",".join(replica.address for replica in pair))


async def test_calls_go_round(pair: Pair) -> None:
    async with client_of(pair) as client:
        await until_used(client, {"a", "b"})
        used = Counter([replica_of((await client.score([item(0)]))[0]) for _ in range(20)])
    assert used == {"a": 10, "b": 10}


@pytest.mark.slow
async def test_a_stream_outlives_the_replica_that_is_killed_under_it(pair: Pair) -> None:
    """Judgements and faults are the items, each once; here all are judgements."""
    async with client_of(pair) as client:
        await stream_past_a_kill(client, pair)


@pytest.mark.slow
async def test_a_rolling_restart_under_load_fails_no_call(pair: Pair) -> None:
    calls = Counter[str]()
    over = asyncio.Event()

    async with client_of(pair) as client:
        await until_used(client, {"a", "b"})
        callers = [asyncio.create_task(call_until(over, client, calls)) for _ in range(3)]
        streaming = asyncio.create_task(stream_until(over, client))
        for replica in pair:
            await replica.end(signal.SIGTERM)
            replica.start()
            await replica.serving()
        over.set()
        await asyncio.gather(*callers)
        streamed = await streaming
        await until_used(client, {"a", "b"})
    assert sorted(int(result.id) for result in streamed) == list(range(len(streamed)))
    assert set(map(replica_of, streamed)) == {"a", "b"}
    assert set(calls) == {"a", "b"}
