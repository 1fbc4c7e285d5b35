"""The fair queue: turns, room, and what is put back."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.queue import FairQueue, Lane, QueueFull


@dataclass(eq=False)
class Job:
    lane: object
    name: str
    size_bytes: int = 1


def drained(queue: FairQueue[Job]) -> list[str]:
    names = []
    while (job := queue.take_now()) is not None:
        names.append(job.name)
    return names


def test_what_is_put_back_is_next_of_all() -> None:
    queue: FairQueue[Job] = FairQueue(10, 100)
    queue.put([Job("a", "a1"), Job("a", "a2")])
    queue.put([Job("b", "b1"), Job("b", "b2")])
    first = queue.take_now()
    assert first is not None
    queue.put_back(first)
    assert len(queue) == 4
    assert drained(queue) == ["a1", "b1", "a2", "b2"]


def test_what_is_put_back_need_not_fit() -> None:
    queue: FairQueue[Job] = FairQueue(2, 100)
    queue.put([Job("a", "a1"), Job("a", "a2")])
    first = queue.take_now()
    assert first is not None
    queue.put([Job("b", "b1")])
    with pytest.raises(QueueFull):
        queue.put([Job("c", "c1")])
    queue.put_back(first)
    assert len(queue) == 3
    assert drained(queue) == ["a1", "b1", "a2"]
    assert queue.take_now() is None


def test_lanes_take_turns() -> None:
    queue: FairQueue[Job] = FairQueue(100, 100)
    queue.put([Job("a", f"a{i}") for i in range(4)])
    queue.put([Job("b", f"b{i}") for i in range(2)])
    assert drained(queue) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_a_call_enters_whole_or_not_at_all() -> None:
    queue: FairQueue[Job] = FairQueue(3, 100)
    queue.put([Job("a", "1"), Job("a", "2")])
    with pytest.raises(QueueFull):
        queue.put([Job("b", "3"), Job("b", "4")])
    assert len(queue) == 2
    with pytest.raises(QueueFull):
        queue.put([Job("b", "5", size_bytes=99)])
    queue.put([Job("b", "6")])
    assert len(queue) == 3


async def test_a_discarded_job_makes_room_and_is_never_taken() -> None:
    queue: FairQueue[Job] = FairQueue(2, 100)
    first, second = Job("a", "1"), Job("a", "2")
    queue.put([first, second])
    waiter = asyncio.create_task(queue.wait_to_fit(1, 1))
    await asyncio.sleep(0)
    assert not waiter.done()
    assert queue.discard(first)
    assert not queue.discard(first)
    await waiter
    assert queue.take_now() is second
    assert queue.clear() == []
    assert len(queue) == 0


def test_a_discarded_job_gives_its_room_back() -> None:
    queue: FairQueue[Job] = FairQueue(10, 10)
    job = Job("a", "a1", size_bytes=10)
    queue.put([job])
    assert not queue.fits(1, 1)
    assert queue.discard(job)
    assert not queue.discard(job)
    assert queue.fits(10, 10)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(1, 4)), max_size=12)
)
def test_tenants_take_turns_whatever_they_bring(calls: list[tuple[str, int, int]]) -> None:
    queue: FairQueue[Job] = FairQueue(100, 1000)
    waiting: Counter[str] = Counter()
    for number, (tenant, drop, count) in enumerate(calls):
        lane = Lane(tenant)
        jobs = [Job(lane, f"{number}.{part}") for part in range(count)]
        queue.put(jobs)
        for job in jobs[:drop]:
            assert queue.discard(job)
            assert not queue.discard(job)
        waiting[tenant] += count - len(jobs[:drop])
    total = sum(waiting.values())
    assert len(queue) == total
    since: Counter[str] = Counter()
    for _ in range(total):
        job = queue.take_now()
        assert job is not None
        assert isinstance(job.lane, Lane)
        mine = job.lane.tenant
        waiting[mine] -= 1
        since[mine] = 0
        for other in "abc":
            if other != mine and waiting[other]:
                since[other] += 1
                assert since[other] < 3  # each of the two others goes first once at most
    assert queue.take_now() is None
    assert len(queue) == 0
