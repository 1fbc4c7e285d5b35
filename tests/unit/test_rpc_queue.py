"""The fair queue's promises that the reward server's own tests do not cover."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from assay.rpc.queue import FairQueue, QueueFull


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


async def test_whoever_waits_gets_what_is_put_back() -> None:
    import asyncio

    queue: FairQueue[Job] = FairQueue(2, 100)
    waiting = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    queue.put_back(Job("a", "a1"))
    assert (await waiting).name == "a1"


def test_a_discarded_job_gives_its_room_back() -> None:
    queue: FairQueue[Job] = FairQueue(10, 10)
    job = Job("a", "a1", size_bytes=10)
    queue.put([job])
    assert not queue.fits(1, 1)
    assert queue.discard(job)
    assert not queue.discard(job)
    assert queue.fits(10, 10)
