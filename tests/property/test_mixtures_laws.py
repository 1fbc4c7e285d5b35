"""Weights of a mixture (MoDoMoDo): what a surrogate gives back, and that its maximum is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.mixtures import MixtureScore, best_mixture, fit_mixture, terms

SOURCES = st.integers(2, 4)
SEEDS = st.integers(0, 10_000)


def drawn(seed: int, count: int, sources: int) -> Any:
    """Weights of runs, and what they are drawn by."""
    roll = np.random.default_rng(seed)
    return roll.dirichlet(np.ones(sources), count), roll


@given(SEEDS, SOURCES, st.sampled_from(["linear", "quadratic"]))
def test_scores_of_its_own_form_are_given_back(seed: int, sources: int, form: Any) -> None:
    weights, roll = drawn(seed, 4 * terms(sources, form), sources)
    q = roll.normal(size=(sources, sources))
    b = roll.normal(size=sources)
    scores = weights @ b
    if form == "quadratic":
        scores = scores + np.einsum("nd,de,ne->n", weights, q, weights) + 0.3
    fitted = fit_mixture(weights, scores, form=form, strength=1e-9)
    asked, _ = drawn(seed + 1, 5, sources)
    truth = asked @ b
    if form == "quadratic":
        truth = truth + np.einsum("nd,de,ne->n", asked, q, asked) + 0.3
    assert fitted.of(asked) == pytest.approx(truth, abs=1e-3)
    assert (fitted.q_DD == fitted.q_DD.T).all()


@given(SEEDS, SOURCES)
def test_nothing_on_the_simplex_is_better_than_the_best(seed: int, sources: int) -> None:
    others, roll = drawn(seed, 500, sources)
    q = roll.normal(size=(sources, sources))
    surrogate = MixtureScore("quadratic", 0.5, q + q.T)
    best = best_mixture(surrogate)
    assert best.sum() == pytest.approx(1)
    assert (best >= 0).all()
    corners = np.eye(sources)
    top = surrogate.of(np.vstack([others, corners])).max()
    assert float(surrogate.of(best[None])[0]) >= top - 1e-9


def test_a_maximum_inside_is_found_and_a_line_has_its_at_a_corner() -> None:
    fitted = fit_mixture(
        np.array([[1.0, 0], [0.75, 0.25], [0.5, 0.5], [0, 1.0]]),
        np.array([0.0, 0.25 * 0.75, 0.25, 0.0]),
        form="quadratic",
        strength=1e-9,
    )
    assert best_mixture(fitted) == pytest.approx([0.5, 0.5], abs=1e-6)
    runs = np.array([[1.0, 0], [0.5, 0.5], [0, 1.0]])
    line = fit_mixture(runs, np.array([0.1, 0.2, 0.3]), form="linear")
    assert best_mixture(line) == pytest.approx([0, 1])
