"""pass@k, its intervals and paired changes: identities, and coverage by simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.runs.stats import (
    majority,
    mcnemar_exact,
    mean_over_problems,
    paired_change,
    pass_at_k,
    wilson,
)
from assay.trainer.core.estimates import (
    paired_mean_change,
    sign_flip_p,
)

counts = st.integers(1, 40).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


@given(counts)
def test_pass_at_k_is_the_ratio_of_binomials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert pass_at_k(n, c, k) == pytest.approx(float(exact), abs=1e-12)
    assert 0 <= pass_at_k(n, c, k) <= 1


@given(counts)
def test_pass_at_k_rises_with_k_and_with_what_is_correct(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_at_k(n, c, n) == (c > 0)
    if k < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c, k + 1) + 1e-12
    if c < n:
        assert pass_at_k(n, c, k) <= pass_at_k(n, c + 1, k) + 1e-12


@pytest.mark.parametrize(("n", "k", "p"), [(6, 2, 0.3), (5, 5, 0.1), (9, 3, 0.8)])
def test_pass_at_k_is_unbiased(n: int, k: int, p: float) -> None:
    mean = sum(
        math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1)
    )
    assert mean == pytest.approx(1 - (1 - p) ** k)


def test_pass_at_k_of_very_many_is_stable() -> None:
    assert pass_at_k(10**6, 1, 10**5) == pytest.approx(0.1)
    assert pass_at_k(10_000, 9_999, 2) == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0), (0, 0, 1)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be had"):
        pass_at_k(n, c, k)


shares = st.lists(st.integers(0, 8).map(lambda c: c / 8), min_size=1, max_size=60)


@given(shares)
def test_an_interval_holds_its_estimate_and_stays_within_bounds(values: list[float]) -> None:
    estimate = mean_over_problems(values, 8 * len(values))
    assert estimate.value is not None
    assert 0 <= estimate.low <= estimate.value + 1e-12
    assert estimate.value - 1e-12 <= estimate.high <= 1
    assert estimate.high - estimate.low > 0
    assert estimate.problems == len(values)
    narrowest = wilson(estimate.value * 8 * len(values), 8 * len(values))
    assert estimate.high - estimate.low >= narrowest[1] - narrowest[0] - 1e-12


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_one_response_a_problem_is_wilsons_interval(solved: list[bool]) -> None:
    estimate = mean_over_problems([float(right) for right in solved], len(solved))
    assert (estimate.low, estimate.high) == pytest.approx(wilson(sum(solved), len(solved)))


@given(st.integers(1, 40), st.integers(2, 8))
def test_like_responses_are_worth_one(problems: int, k: int) -> None:
    """Where all k responses to each problem came out alike, they say as much as one."""
    values = [float(n % 3 == 0) for n in range(problems)]
    several, one = mean_over_problems(values, k * problems), mean_over_problems(values, problems)
    assert several.high - several.low == pytest.approx(one.high - one.low, rel=0.05)


def test_nothing_judged_says_nothing() -> None:
    nothing = mean_over_problems([], 0)
    assert (nothing.value, nothing.low, nothing.high) == (None, 0.0, 1.0)
    assert paired_mean_change([], 1) == (0.0, -1.0, 1.0)
    assert sign_flip_p([0.0, 0.0]) == 1.0


@given(st.lists(st.sampled_from([-1, 0, 0, 1]), min_size=1, max_size=60))
def test_a_paired_change_of_single_responses_is_agresti_and_mins(flips: list[int]) -> None:
    gained, lost = flips.count(1), flips.count(-1)
    assert paired_mean_change(flips, 1) == pytest.approx(paired_change(gained, lost, len(flips)))


@given(st.lists(st.integers(-4, 4).map(lambda c: c / 4), min_size=1, max_size=20))
def test_a_change_the_other_way_round_is_the_opposite(differences: list[float]) -> None:
    change, low, high = paired_mean_change(differences, 4)
    back, back_low, back_high = paired_mean_change([-d for d in differences], 4)
    assert (back, back_low, back_high) == pytest.approx((-change, -high, -low))
    assert -1 <= low <= high <= 1
    assert sign_flip_p(differences) == pytest.approx(sign_flip_p([-d for d in differences]))


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 5))
def test_flipping_signs_of_single_responses_is_mcnemar(up: int, down: int, same: int) -> None:
    differences = [1.0] * up + [-1.0] * down + [0.0] * same
    assert sign_flip_p(differences) == pytest.approx(mcnemar_exact(up, down))


def test_drawn_flips_agree_with_all_of_them() -> None:
    differences = [
        0.5,
        -0.25,
        1.0,
        0.75,
        0.25,
        -0.5,
        0.25,
        0.5,
        0.25,
        0.75,
        -0.25,
        0.5,
        0.25,
        0.125,
    ]
    exact = (
        sum(
            abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            >= abs(sum(differences))
            for signs in itertools.product((1, -1), repeat=14)
        )
        / 2**14
    )
    assert sign_flip_p(differences) == pytest.approx(exact)
    # a fifteenth problem that hardly changed has them drawn
    assert sign_flip_p([*differences, 1e-9]) == pytest.approx(exact, abs=0.01)
    assert sign_flip_p([1.0] * 40) == pytest.approx(1 / 20_001)


@given(st.lists(st.tuples(st.sampled_from(["1", "2", "3", None]), st.booleans()), max_size=9))
def test_a_majority_is_a_share_of_what_is_answered_most(
    votes: list[tuple[str | None, bool]],
) -> None:
    answers, correct = [a for a, _ in votes], [c for _, c in votes]
    value = majority(answers, correct)
    assert 0 <= value <= 1
    assert majority(answers, [False] * len(votes)) == 0
    if any(answers):
        assert majority(answers, [True] * len(votes)) == pytest.approx(1)


def test_majorities() -> None:
    assert majority(["4", "4", "5"], [True, True, False]) == 1
    assert majority(["5", "5", "4"], [False, False, True]) == 0
    assert majority(["4", "5"], [True, False]) == 0.5
    assert majority([None, None, "4"], [False, False, True]) == 1
    assert majority([None], [False]) == majority([], []) == 0


# Difficulties of problems, as Beta distributions: hard and easy mixed, middling, mostly hard,
# mostly solved, all alike.
_DIFFICULTIES = [(0.3, 0.3), (2.0, 2.0), (0.2, 2.0), (5.0, 0.2), (1000.0, 1000.0)]


@pytest.mark.slow
@pytest.mark.parametrize("difficulty", _DIFFICULTIES)
@pytest.mark.parametrize(("problems", "samples", "k"), [(30, 8, 1), (30, 8, 4), (100, 4, 4)])
def test_intervals_cover(
    difficulty: tuple[float, float], problems: int, samples: int, k: int
) -> None:
    """Nominal 95 %; the bootstrap over problems falls far below where most are solved."""
    random = np.random.default_rng(0)
    truth = float(np.mean(1 - (1 - random.beta(*difficulty, 400_000)) ** k))
    covered = 0
    runs = 800
    for _ in range(runs):
        correct = random.binomial(samples, random.beta(*difficulty, problems))
        values = [pass_at_k(samples, int(c), k) for c in correct]
        estimate = mean_over_problems(values, problems * samples / k)
        covered += estimate.low <= truth <= estimate.high
    assert covered / runs > 0.9


@pytest.mark.slow
def test_the_bootstrap_covers_less() -> None:
    """Why the intervals are not those of a bootstrap over problems: where most are solved, many
    samples of problems hold no unsolved one, and every resample of those says "all"."""
    random = np.random.default_rng(0)
    truth = float(np.mean(1 - (1 - random.beta(5, 0.2, 400_000)) ** 4))
    ours = theirs = 0
    runs = 400
    for _ in range(runs):
        correct = random.binomial(8, random.beta(5, 0.2, 30))
        values_P = np.array([pass_at_k(8, int(c), 4) for c in correct])
        estimate = mean_over_problems(values_P.tolist(), 60)
        ours += estimate.low <= truth <= estimate.high
        means = values_P[random.integers(0, 30, (300, 30))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        theirs += bool(low <= truth <= high)
    assert ours / runs > 0.93
    assert theirs / runs < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("difficulty", _DIFFICULTIES)
@pytest.mark.parametrize(
    ("problems", "samples", "gain"), [(30, 1, 0.1), (30, 8, 0.1), (100, 4, 0.0)]
)
def test_intervals_of_a_change_cover(
    difficulty: tuple[float, float], problems: int, samples: int, gain: float
) -> None:
    random = np.random.default_rng(1)
    whole = random.beta(*difficulty, 400_000)
    truth = float(np.mean(np.clip(whole + gain, 0, 1) - whole))
    covered = 0
    runs = 1000
    for _ in range(runs):
        old = random.beta(*difficulty, problems)
        new = np.clip(old + gain, 0, 1)
        differences = (random.binomial(samples, new) - random.binomial(samples, old)) / samples
        _, low, high = paired_mean_change(differences.tolist(), samples)
        covered += low <= truth <= high
    assert covered / runs > 0.925


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 4])
def test_p_of_no_change_is_not_small_too_often(samples: int) -> None:
    random = np.random.default_rng(2)
    runs = 100
    small = 0
    for _ in range(runs):
        old = random.beta(1, 1, 40)
        differences = (random.binomial(samples, old) - random.binomial(samples, old)) / samples
        small += sign_flip_p(differences.tolist()) < 0.05
    assert small / runs < 0.12
