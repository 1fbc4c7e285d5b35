"""Laws of dynamic sampling's decisions."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.rollouts.dynamic import (
    KeepRate,
    draws_needed,
    rate_from_plain,
    rate_to_plain,
)

_ROUNDS = st.lists(
    st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=12
)


@given(_ROUNDS, st.integers(1, 64))
def test_the_rate_is_above_nought_and_at_most_one(
    rounds: list[tuple[int, int]], half_life: int
) -> None:
    rate = KeepRate(half_life)
    assert rate.value == 1
    for kept, judged in rounds:
        rate = rate.after(kept, judged)
        assert 0 < rate.value <= 1 + 1e-12
        assert rate_from_plain(rate_to_plain(rate), half_life) == rate


@given(_ROUNDS, st.integers(1, 64))
def test_a_round_without_judged_groups_leaves_the_rate(
    rounds: list[tuple[int, int]], half_life: int
) -> None:
    rate = KeepRate(half_life)
    for kept, judged in rounds:
        rate = rate.after(kept, judged)
    assert rate.after(0, 0) == rate


@given(_ROUNDS, st.integers(1, 64), st.integers(0, 20), st.integers(1, 20))
def test_more_kept_groups_never_lower_the_rate(
    rounds: list[tuple[int, int]], half_life: int, kept: int, more: int
) -> None:
    rate = KeepRate(half_life)
    for pair in rounds:
        rate = rate.after(*pair)
    assert rate.after(kept, kept + more).value < rate.after(kept + more, kept + more).value


def test_the_rate_follows_a_change() -> None:
    chance = random.Random(0)
    rate = KeepRate(half_life=200)
    for true in (0.9, 0.2, 0.6):
        for _ in range(100):
            rate = rate.after(sum(chance.random() < true for _ in range(20)), 20)
        # The discounted window holds 200 / ln 2 groups: three standard errors are below 0.1.
        assert abs(rate.value - true) < 0.1


@given(
    st.floats(0.01, 1000, allow_nan=False),
    st.floats(0.001, 1.0, exclude_min=True),
    st.integers(1, 5000),
)
def test_what_is_drawn_is_enough_in_expectation_and_no_more(
    missing: float, rate: float, most: int
) -> None:
    drawn = draws_needed(missing, rate, most=most)
    assert 1 <= drawn <= most
    assert drawn == most or drawn * rate >= missing * (1 - 1e-9)
    assert drawn == 1 or (drawn - 1) * rate < missing


@given(st.integers(1, 10_000), st.integers(1, 100))
def test_a_whole_quotient_costs_no_further_group(draws: int, parts: int) -> None:
    rate = 1 / parts
    assert draws_needed(draws * rate, rate, most=10**9) == draws
    assert math.isclose(draws * rate / rate, draws)
