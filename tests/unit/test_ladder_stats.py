"""Means over seeds: against scipy, and laws."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from assay.trainer.recipes.ladder.stats import difference, estimate, t975

values = st.lists(st.floats(-100, 100), min_size=2, max_size=8)


@pytest.mark.parametrize("degrees", [*range(1, 61), 100, 1000])
def test_quantiles_are_students(degrees: int) -> None:
    assert t975(degrees) == pytest.approx(scipy_stats.t.ppf(0.975, degrees), abs=1e-5)


def test_no_degrees_of_freedom_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two values"):
        t975(0)


@given(values)
def test_an_estimate_is_scipys(numbers: list[float]) -> None:
    found = estimate(numbers)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.mean == pytest.approx(statistics.fmean(numbers))
    assert found.n == len(numbers)
    half = (
        scipy_stats.t.ppf(0.975, len(numbers) - 1) * statistics.stdev(numbers) / len(numbers) ** 0.5
    )
    assert found.high - found.mean == pytest.approx(half, rel=1e-4, abs=1e-9)
    assert found.mean - found.low == pytest.approx(half, rel=1e-4, abs=1e-9)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    single = estimate([0.25])
    assert single is not None
    assert (single.mean, single.low, single.high, single.n) == (0.25, None, None, 1)
    assert estimate([]) is None


def test_a_difference_is_paired_by_seed() -> None:
    # A seed that helps both alike does not widen the interval.
    theirs = {0: 0.1, 1: 0.5, 2: 0.9}
    found = difference({0: 0.2, 1: 0.6, 2: 1.0, 7: 5.0}, theirs)
    assert found is not None
    assert (found.mean, found.n) == (pytest.approx(0.1), 3)
    assert found.low == pytest.approx(0.1)
    assert difference({3: 1.0}, theirs) is None


@given(st.dictionaries(st.integers(0, 5), st.floats(-1, 1), min_size=2))
def test_a_difference_from_itself_is_nothing_and_turns_its_sign(ours: dict[int, float]) -> None:
    zero = difference(ours, ours)
    assert zero is not None
    assert (zero.mean, zero.low, zero.high) == (0.0, 0.0, 0.0)
    other = {seed: value / 2 for seed, value in ours.items()}
    there, back = difference(ours, other), difference(other, ours)
    assert there is not None
    assert back is not None
    assert there.mean == pytest.approx(-back.mean)
    assert there.high == pytest.approx(-back.low)
