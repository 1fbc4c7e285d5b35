"""Replicas behind one target, real processes: killed, restarted by turns, and found again."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from assay.clients import AsyncRewardClient, Item, Result
from replicas_support import Replica

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


def item(number: int, seconds: float = 0.0) -> Item:
    return Item(str(seconds), id=str(number), verifier="where")


def replica_of(result: Result) -> str:
    assert result.judgement is not None, result
    assert result.reward == 1.0
    return result.judgement.explanation


async def until_used(client: AsyncRewardClient, names: set[str]) -> None:
    """Calls until each of these replicas has answered; the test's time-out is the limit."""
    while names:
        (result,) = await client.score([item(0)])
        names = names - {replica_of(result)}


async def test_calls_go_round(pair: Pair) -> None:
    async with client_of(pair) as client:
        await until_used(client, {"a", "b"})
        used = Counter([replica_of((await client.score([item(0)]))[0]) for _ in range(20)])
    assert used == {"a": 10, "b": 10}


async def test_a_stream_outlives_the_replica_that_is_killed_under_it(pair: Pair) -> None:
    """Judgements and faults are the items, each once; here all are judgements."""
    count = 60

    async def items() -> AsyncIterator[Item]:
        for number in range(count):
            yield item(number, 0.02)
            await asyncio.sleep(0.002)

    results: list[Result] = []
    async with client_of(pair) as client:
        async for result in client.stream(items()):
            if not results:
                dead = next(replica for replica in pair if replica.name == replica_of(result))
                await dead.end(signal.SIGKILL)
            results.append(result)
        assert sorted(int(result.id) for result in results) == list(range(count))
        assert set(map(replica_of, results)) == {"a", "b"}
        dead.start()
        await until_used(client, {dead.name})


async def test_a_rolling_restart_under_load_fails_no_call(pair: Pair) -> None:
    calls = Counter[str]()
    over = asyncio.Event()

    async def call(client: AsyncRewardClient) -> None:
        while not over.is_set():
            results = await client.score([item(n, 0.005) for n in range(4)], on_error="raise")
            calls.update(map(replica_of, results))

    async def stream(client: AsyncRewardClient) -> list[Result]:
        async def items() -> AsyncIterator[Item]:
            for number in itertools.count():
                if over.is_set():
                    return
                yield item(number, 0.005)
                await asyncio.sleep(0.02)

        return [result async for result in client.stream(items(), on_error="raise")]

    async with client_of(pair) as client:
        await until_used(client, {"a", "b"})
        callers = [asyncio.create_task(call(client)) for _ in range(3)]
        streaming = asyncio.create_task(stream(client))
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
