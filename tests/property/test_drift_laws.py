"""Laws of what notices drift: exact intervals cover, a watch never gains by chance, and it sees."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from assay.kit.runs.drift import RiseWatch
from assay.kit.runs.stats import clopper_pearson


@pytest.mark.slow
@given(st.integers(1, 60), st.floats(0.001, 0.999), st.sampled_from([0.8, 0.95, 0.995]))
def test_an_exact_interval_covers(trials: int, chance: float, confidence: float) -> None:
    covered = 0.0
    for successes in range(trials + 1):
        low, high = clopper_pearson(successes, trials, confidence)
        assert 0 <= low <= successes / trials <= high <= 1
        covered += binom.pmf(successes, trials, chance) * (low <= chance <= high)
    assert covered >= confidence - 1e-9


@given(st.data())
def test_it_is_the_interval_of_the_beta_quantiles(data: st.DataObject) -> None:
    trials = data.draw(st.integers(1, 5_000))
    successes = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(successes, trials)
    rest = trials - successes
    assert low == pytest.approx(beta.ppf(0.025, successes, rest + 1) if successes else 0.0)
    assert high == pytest.approx(beta.ppf(0.975, successes + 1, rest) if rest else 1.0)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="no proportion"):
        clopper_pearson(2, 1)


def wealth(watch: RiseWatch, chance: float) -> float:
    return math.exp(watch.evidence * -math.log(chance / 2))


@settings(max_examples=25)
@given(st.integers(0, 20), st.floats(0, 1))
def test_wealth_has_a_mean_of_at_most_one(errors: int, part: float) -> None:
    """Over all sequences, for any rate that the reference does not rule out."""
    mean = 0.0
    for sequence in itertools.product((False, True), repeat=6):
        watch = RiseWatch(errors, 20, 0.01)
        rate = part * watch.bound
        for error in sequence:
            watch.add(error=error)
        mean += math.prod(rate if error else 1 - rate for error in sequence) * wealth(watch, 0.01)
    assert mean <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "trials"), [(0.0, 200), (0.05, 500), (0.4, 100)])
def test_false_alarms_are_rare_at_all_times(rate: float, trials: int) -> None:
    """At 20 % each of 150 runs may alarm ever; more than 45 of them would have a chance of 1e-3."""
    alarms = 0
    for number in range(150):
        rng = random.Random(number)
        watch = RiseWatch(sum(rng.random() < rate for _ in range(trials)), trials, 0.2)
        for _ in range(600):
            watch.add(error=rng.random() < rate)
        alarms += watch.alarm
    assert alarms <= 45


def test_a_rise_is_seen_and_the_alarm_stays() -> None:
    delays = []
    for number in range(50):
        rng = random.Random(number)
        watch = RiseWatch(sum(rng.random() < 0.05 for _ in range(500)), 500, 0.005)
        for _ in range(500):
            watch.add(error=rng.random() < 0.05)
        delay = 0
        while not watch.alarm:
            watch.add(error=rng.random() < 0.35)
            delay += 1
        delays.append(delay)
        for _ in range(300):
            watch.add(error=False)
        assert watch.alarm
    assert max(delays) <= 500


@given(st.integers(1, 100))
def test_what_always_errs_can_get_no_worse(trials: int) -> None:
    watch = RiseWatch(trials, trials, 0.01)
    for _ in range(50):
        watch.add(error=True)
    assert not watch.alarm


def test_no_wealth_grows_past_what_numbers_hold() -> None:
    watch = RiseWatch(0, 1000, 0.01)
    for _ in range(2_000):
        watch.add(error=True)
    assert watch.alarm
    assert math.isfinite(watch.evidence)
