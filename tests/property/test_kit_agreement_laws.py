"""Cohen's kappa, Krippendorff's alpha and the interval of the AUC: published values and laws."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.runs.agreement import cohen_kappa, interval, krippendorff_alpha
from assay.kit.runs.stats import auc, auc_interval, wilson

NONE = None
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part C: four observers.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3),
    (NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE),
)


def test_alpha_of_krippendorffs_example() -> None:
    units = list(zip(*OBSERVERS, strict=True))
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units, interval) == pytest.approx(0.849, abs=5e-4)


def test_kappa_of_a_table() -> None:
    """20 yes both, 5 and 10 apart, 15 no both: p_o = 0.7, p_e = 0.5."""
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)


def test_nothing_to_agree_about_has_no_number() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa([(1, 1)] * 5) is None
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([(1, None), (None, 2)]) is None
    assert krippendorff_alpha([(1, 1), (1, 1)]) is None


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40)


@given(PAIRS)
def test_agreement_is_symmetric_and_at_most_one(pairs: list[tuple[int, int]]) -> None:
    kappa = cohen_kappa(pairs)
    swapped = [(b, a) for a, b in pairs]
    assert cohen_kappa(swapped) == (None if kappa is None else pytest.approx(kappa))
    for spread in ({}, {"spread": interval}):
        alpha = krippendorff_alpha(pairs, **spread)
        again = krippendorff_alpha(swapped, **spread)
        assert (alpha is None) == (again is None)
        if alpha is not None:
            assert alpha == pytest.approx(again)
            assert alpha <= 1 + 1e-9
    if kappa is not None:
        assert -1 - 1e-9 <= kappa <= 1
        assert (kappa == 1) == all(a == b for a, b in pairs)


@given(PAIRS, st.floats(0.5, 3), st.floats(-5, 5))
def test_alpha_of_numbers_does_not_depend_on_their_scale(
    pairs: list[tuple[int, int]], scale: float, shift: float
) -> None:
    moved = [(a * scale + shift, b * scale + shift) for a, b in pairs]
    alpha = krippendorff_alpha(pairs, interval)
    if alpha is not None:
        assert krippendorff_alpha(moved, interval) == pytest.approx(alpha, abs=1e-6)


SCORED = st.lists(st.tuples(st.integers(0, 9).map(float), st.booleans()), min_size=2, max_size=40)


@given(SCORED)
def test_the_interval_of_an_area_holds_it(scored: list[tuple[float, bool]]) -> None:
    area, found = auc(scored), auc_interval([[one] for one in scored])
    assert (area is None) == (found is None)
    if area is not None and found is not None:
        assert 0 <= found[0] <= area + 1e-9
        assert area - 1e-9 <= found[1] <= 1


def test_a_perfect_judge_of_few_is_not_certain() -> None:
    found = auc_interval([[(1.0, True)]] * 4 + [[(0.0, False)]] * 30)
    assert found == pytest.approx(wilson(4, 4))
    assert auc_interval([[(1.0, True)]]) is None


@pytest.mark.parametrize("steps", [1, 6])
def test_the_interval_of_an_area_covers_the_truth(steps: int) -> None:
    """300 draws of 60 responses whose steps share an offset; the true area is about 0.76."""

    def drawn(seed: int, responses: int) -> list[list[tuple[float, bool]]]:
        dice = random.Random(seed)
        return [
            [
                (offset + dice.gauss(0, 0.6) + 1.2 * label, label)
                for label in (dice.random() < 0.5 for _ in range(steps))
            ]
            for offset in (dice.gauss(0, 1) for _ in range(responses))
        ]

    truth = auc([one for cluster in drawn(-1, 20_000 // steps) for one in cluster])
    assert truth is not None
    held = 0
    for seed in range(300):
        found = auc_interval(drawn(seed, 60))
        assert found is not None
        held += found[0] <= truth <= found[1]
    assert 0.91 <= held / 300 <= 0.99
