"""The fair queue, the cache of judgements, the settings."""

from __future__ import annotations

import asyncio

import pytest

from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Component, Item, Judgement
from assay.reward_server.flights import JudgementCache, item_key
from assay.reward_server.verifiers.mathematics import MathVerifier
from assay.reward_server.workers.queue import FairQueue, Job, QueueFull
from assay.rpc.batches import answer_by_s
from assay.rpc.errors import ConfigError

SPEC = MathVerifier().spec


def job(lane: object, name: str, size_bytes: int = 1) -> Job:
    done = asyncio.get_running_loop().create_future()
    return Job(lane, SPEC, Item(Candidate(name)), 1.0, size_bytes, done)


async def test_lanes_take_turns() -> None:
    queue = FairQueue(100, 100)
    queue.put([job("a", f"a{i}") for i in range(4)])
    queue.put([job("b", f"b{i}") for i in range(2)])
    names = [(await queue.take()).item.candidate.text for _ in range(6)]
    assert names == ["a0", "b0", "a1", "b1", "a2", "a3"]


async def test_a_call_enters_whole_or_not_at_all() -> None:
    queue = FairQueue(3, 100)
    queue.put([job("a", "1"), job("a", "2")])
    with pytest.raises(QueueFull):
        queue.put([job("b", "3"), job("b", "4")])
    assert len(queue) == 2
    with pytest.raises(QueueFull):
        queue.put([job("b", "5", size_bytes=99)])
    queue.put([job("b", "6")])
    assert len(queue) == 3


async def test_a_discarded_job_makes_room_and_is_never_taken() -> None:
    queue = FairQueue(2, 100)
    first, second = job("a", "1"), job("a", "2")
    queue.put([first, second])
    waiter = asyncio.create_task(queue.wait_to_fit(1, 1))
    await asyncio.sleep(0)
    assert not waiter.done()
    assert queue.discard(first)
    assert not queue.discard(first)
    await waiter
    assert await queue.take() is second
    assert queue.clear() == []
    assert len(queue) == 0


async def test_a_taker_waits_for_a_job() -> None:
    queue = FairQueue(2, 100)
    takers = [asyncio.create_task(queue.take()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.put([job("a", "1"), job("a", "2")])
    assert {(await taker).item.candidate.text for taker in takers} == {"1", "2"}


def test_the_cache_keeps_what_was_used_last() -> None:
    cache = JudgementCache(2)
    judgement = Judgement.composed("correct", (Component("c", 1.0),))
    cache.put(b"1", judgement)
    cache.put(b"2", judgement)
    assert cache.get(b"1") is judgement
    cache.put(b"3", judgement)
    assert cache.get(b"2") is None
    assert cache.get(b"1") is judgement
    nothing = JudgementCache(0)
    nothing.put(b"1", judgement)
    assert nothing.get(b"1") is None


def test_items_are_equal_when_the_verifier_sees_the_same() -> None:
    parameters = SPEC.complete({})
    base = Item(Candidate("a"), references=("b",), parameters=parameters)
    key = item_key(SPEC, base)
    same = Item(Candidate("a"), references=("b",), parameters=parameters, group_id="g")
    assert item_key(SPEC, same) == key
    others = [
        Item(Candidate("b"), references=("b",), parameters=parameters),
        Item(Candidate("a"), references=("b", ""), parameters=parameters),
        Item(Candidate("a"), references=("b",), parameters=SPEC.complete({"format_weight": 1})),
        Item(Candidate("a"), references=("b",), parameters=parameters, truncated=True),
    ]
    assert len({key, *(item_key(SPEC, item) for item in others)}) == 5


@pytest.mark.parametrize(
    "setting",
    [
        {"workers": -1},
        {"queue_items": 0},
        {"queue_mb": 1},
        {"item_timeout_s": 0.0},
        {"item_timeout_s": 700.0},
        {"item_timeout_s": float("nan")},
        {"max_item_timeout_s": float("inf")},
        {"worker_memory_mb": 10},
        {"worker_items": 0},
        {"worker_growth_mb": 0},
        {"cache_entries": -1},
    ],
)
def test_a_wrong_setting_is_named(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting)).replace("_", "-")):
        ScorerConfig(**setting)  # type: ignore[arg-type]  # wrong on purpose


def test_the_batch_limit_never_exceeds_the_queue() -> None:
    assert ScorerConfig(queue_items=10).max_batch_items == 10
    assert ScorerConfig().max_batch_items == 1024
    assert ScorerConfig().worker_count >= 1


@pytest.mark.parametrize("timeout_s", [0.0, 0.01, 1.0, 60.0, 1e6])
def test_the_answer_comes_before_the_deadline(timeout_s: float) -> None:
    assert 100.0 + timeout_s / 2 <= answer_by_s(100.0, timeout_s) <= 100.0 + timeout_s
