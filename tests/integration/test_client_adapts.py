"""One real server and ten clients of different greed, who know nothing of one another."""

from __future__ import annotations

import pytest
from bench.clients_adapt import GREED, Got, compete, jain, ratio, sleeping_server

WARM_S, ROUND_S = 2.0, 3.0


def judged(found: list[Got]) -> list[int]:
    return [got.judged for got in found]


@pytest.mark.slow
async def test_clients_that_adapt_share_a_server_that_greed_would_take() -> None:
    with sleeping_server() as address:
        adapting = await compete(address, lambda _: None, warm_s=WARM_S, round_s=ROUND_S)
        greedy = await compete(address, lambda n: n, warm_s=WARM_S, round_s=ROUND_S)
        fixed = await compete(address, lambda _: 8, warm_s=WARM_S, round_s=ROUND_S)
    for found in (adapting, greedy, fixed):
        assert [got.wrong for got in found] == [0] * len(GREED), "a fault is not a zero"
        assert [got.faults for got in found] == [0] * len(GREED), "who is refused comes again"
    assert min(judged(adapting)) > 0, "nobody starves"
    assert ratio(adapting) < 2 < ratio(greedy)
    assert jain(judged(adapting)) > max(0.9, jain(judged(greedy)))
    assert sum(judged(adapting)) > 0.8 * sum(judged(fixed)), "what a fixed limit gets through"
    assert sum(got.window for got in adapting) < sum(GREED) / 2, "and it asks for less at once"
    assert [got.window for got in fixed] == [8] * len(GREED)
