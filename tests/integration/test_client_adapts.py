"""One real server and ten clients of different greed, who know nothing of one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bench.clients_adapt import GREED, Got, compete, jain, ratio, sleeping_server

WARM_S, ROUND_S = 2.0, 3.0
LEAST_ITEMS = 2000
"""Limits have settled, and shares mean something, after so many. A busy machine takes longer."""


async def settled(address: str, limit: Callable[[int], int | None]) -> list[Got]:
    return await compete(address, limit, warm_s=WARM_S, round_s=ROUND_S, least_items=LEAST_ITEMS)


def rate(found: list[Got]) -> float:
    return sum(judged(found)) / found[0].counted_s


def judged(found: list[Got]) -> list[int]:
    return [got.judged for got in found]


@pytest.mark.slow
async def test_clients_that_adapt_share_a_server_that_greed_would_take() -> None:
    with sleeping_server() as address:
        adapting = await settled(address, lambda _: None)
        greedy = await settled(address, lambda n: n)
        fixed = await settled(address, lambda _: 8)
    for found in (adapting, greedy, fixed):
        assert [got.wrong for got in found] == [0] * len(GREED), "a fault is not a zero"
        assert [got.faults for got in found] == [0] * len(GREED), "who is refused comes again"
    assert min(judged(adapting)) > 0, "nobody starves"
    assert 2 * ratio(adapting) < ratio(greedy)
    assert 1 - jain(judged(adapting)) < 0.75 * (1 - jain(judged(greedy)))
    assert rate(adapting) > 0.8 * rate(fixed), "what a fixed limit gets through"
    assert sum(got.window for got in adapting) < sum(GREED) / 2, "and it asks for less at once"
    assert [got.window for got in fixed] == [8] * len(GREED)
