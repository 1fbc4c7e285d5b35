"""Laws of the stream of prompts."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import OneRank
from rollouts_collecting_support import stream

_COUNTS = st.integers(1, 20)
_SEEDS = st.integers(0, 5)


def training_order(count: int, needed: int, seed: int) -> list[int]:
    """Which problem comes when: pass after pass, each shuffled by the seed and its number."""
    order: list[int] = []
    while len(order) < needed:
        one_pass = list(range(count))
        random.Random(f"{seed}-{len(order) // count}").shuffle(one_pass)
        order += one_pass
    return order[:needed]


@given(_COUNTS, _SEEDS, st.lists(st.integers(0, 15), max_size=6))
def test_however_it_is_cut_into_takes_the_order_is_that_of_the_data(
    count: int, seed: int, takes: list[int]
) -> None:
    of = stream(count, seed=seed)
    drawn = [draw for size in takes for draw in of.take(size)]
    assert [draw.number for draw in drawn] == list(range(sum(takes)))
    assert [draw.problem.id for draw in drawn] == [
        f"train-{n}" for n in training_order(count, sum(takes), seed)
    ]


@given(_COUNTS, _SEEDS, st.integers(1, 4))
def test_every_pass_has_each_problem_once(count: int, seed: int, passes: int) -> None:
    drawn = Counter(draw.problem.id for draw in stream(count, seed=seed).take(count * passes))
    assert set(drawn.values()) == {passes}
    assert len(drawn) == count


@given(_COUNTS, _SEEDS, st.integers(0, 60), st.integers(0, 30))
def test_resumed_it_goes_on(count: int, seed: int, before: int, after: int) -> None:
    whole = stream(count, seed=seed).take(before + after)
    first, second = stream(count, seed=seed), stream(count, seed=seed)
    taken = first.take(before)
    second.load_state_dict(first.state_dict())
    assert taken + second.take(after) == whole


@given(_COUNTS, st.integers(0, 30), st.integers(0, 30))
def test_what_is_given_back_comes_again(count: int, taken: int, returned: int) -> None:
    of = stream(count)
    drawn = of.take(taken)
    returned = min(returned, taken)
    of.give_back(returned)
    assert of.cursor == taken - returned
    assert of.take(returned) == drawn[taken - returned :]


@given(st.integers(1, 6), st.integers(0, 5))
def test_the_shares_together_are_the_whole_in_order(ranks: int, share: int) -> None:
    items = list(range(ranks * share))
    assert [n for rank in range(ranks) for n in deal(items, OneRank(rank, ranks))] == items
