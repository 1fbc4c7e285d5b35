"""Something that dies comes back, and whoever needs it waits."""

from __future__ import annotations

import asyncio

import pytest

from assay.genrm.engines import revival
from assay.genrm.engines.base import EngineError
from assay.genrm.engines.revival import Revival
from assay.kit.errors import StartupError


class Maker:
    """Makes numbers; fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.made = 0
        self.failures = failures
        self.ended: list[int] = []
        self.dead: set[int] = set()
        self.revivals = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def make(self) -> int:
        await self.gate.wait()
        if self.made and self.failures:
            self.failures -= 1
            raise StartupError("no memory")
        self.made += 1
        return self.made

    async def end(self, one: int) -> None:
        self.ended.append(one)

    def revival(self) -> Revival[int]:
        return Revival("m", self.make, self.end, self.dead.__contains__, self.revived)

    def revived(self) -> None:
        self.revivals += 1


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(revival, "_PAUSE_S", 0.001)


async def test_all_who_wait_get_the_next_one():
    maker = Maker()
    life = maker.revival()
    await life.start()
    maker.gate.clear()
    life.died(1)
    life.died(1)
    waiting = [asyncio.create_task(life.living()) for _ in range(5)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    maker.gate.set()
    assert await asyncio.gather(*waiting) == [2] * 5
    assert maker.ended == [1]
    life.died(1)
    assert await life.living() == 2
    await life.close()
    assert maker.ended == [1, 2]
    assert maker.revivals == 1


async def test_one_that_died_unnoticed_is_replaced():
    maker = Maker()
    life = maker.revival()
    await life.start()
    maker.dead.add(1)
    assert await life.living() == 2
    await life.close()


async def test_after_some_failures_users_are_refused_and_it_is_tried_again():
    maker = Maker(failures=4)
    life = maker.revival()
    await life.start()
    life.died(1)
    with pytest.raises(EngineError, match="no memory") as raised:
        await life.living()
    assert raised.value.reason == "ENGINE_DIED"
    async with asyncio.timeout(5):
        while True:
            try:
                assert await life.living() == 2
                break
            except EngineError:
                await asyncio.sleep(0.005)
    await life.close()


async def test_whoever_waits_when_it_is_closed_is_told():
    maker = Maker()
    life = maker.revival()
    await life.start()
    maker.gate.clear()
    life.died(1)
    waiting = asyncio.create_task(life.living())
    await asyncio.sleep(0.01)
    await life.close()
    with pytest.raises(EngineError, match="closed"):
        await waiting
    await life.close()
