"""Progress of steps (SPA-RL): whatever is estimated, a response's steps earn what it earned."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.dense import contributions, ridge
from assay.trainer.methods.progress.method import ProgressEstimate

numbers = st.floats(-5, 5)
T = 6


@st.composite
def rows(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    count = draw(st.integers(1, 4))
    of_T = st.lists(numbers, min_size=T, max_size=T)
    ends_T = st.lists(st.booleans(), min_size=T, max_size=T)
    estimates = draw(st.lists(of_T, min_size=count, max_size=count))
    ends = draw(st.lists(ends_T, min_size=count, max_size=count))
    rewards = draw(st.lists(numbers, min_size=count, max_size=count))
    return (
        torch.tensor(estimates, dtype=torch.float64),
        torch.tensor(ends),
        torch.tensor(rewards, dtype=torch.float64),
    )


@given(rows())
def test_the_contributions_of_steps_sum_to_the_outcome(
    given_rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    estimates, ends, rewards = given_rows
    found = contributions(estimates, ends, rewards)
    assert not found[~ends].any()
    told = ends.any(dim=1)
    torch.testing.assert_close(found.sum(dim=1)[told], rewards[told])
    assert not found[~told].any()
    # what two steps of a row differ by is what their estimates differ by
    for row in range(len(rewards)):
        steps = ends[row].nonzero()[:, 0]
        for one, other in itertools.pairwise(steps):
            gap = estimates[row, one] - estimates[row, other]
            assert float(found[row, one] - found[row, other]) == pytest.approx(float(gap))


@given(rows())
def test_estimates_that_sum_to_the_outcome_are_what_steps_earn(
    given_rows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    estimates, ends, _ = given_rows
    exact = torch.where(ends, estimates, 0.0)
    torch.testing.assert_close(contributions(estimates, ends, exact.sum(dim=1)), exact)


@given(st.integers(1, 12), st.integers(1, 5), st.floats(0.1, 10), st.integers(0, 1000))
def test_the_ridge_is_where_its_gradient_is_zero(
    rows_M: int, width: int, strength: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows_M, width, generator=generator, dtype=torch.float64)
    targets = torch.randn(rows_M, generator=generator, dtype=torch.float64)
    weights = ridge(features, targets, strength)
    gradient = features.T @ (features @ weights - targets) + strength * weights
    assert float(gradient.abs().max()) < 1e-9


def test_an_estimator_learns_which_steps_bring_the_reward_and_remembers_the_latest() -> None:
    """Two kinds of steps, of which one is worth 1: estimated as such from sums alone."""
    generator = torch.Generator().manual_seed(0)
    worth = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    estimator = ProgressEstimate(memory=64, strength=1e-3)
    assert not estimator.of(worth).any()
    kinds = torch.randint(0, 2, (80, 5), generator=generator)
    for row in kinds:
        reward = (row == 0).sum().float().view(1)
        rows_N = torch.zeros(5, dtype=torch.long)
        estimator.learn(worth[row], rows_N, reward, torch.tensor([True]))
    torch.testing.assert_close(estimator.of(worth), torch.tensor([1.0, 0.0]), atol=1e-2, rtol=0)
    faulted = torch.tensor([math.nan])
    before = estimator.state_dict(lambda _groups: [])
    estimator.learn(worth, torch.zeros(2, dtype=torch.long), faulted, torch.tensor([False]))
    after = estimator.state_dict(lambda _groups: [])
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert after["earned"].tolist() == (kinds[-64:] == 0).sum(dim=1).tolist()
    again = ProgressEstimate(memory=64, strength=1e-3)
    again.load_state_dict(after, lambda _saved: [])
    assert torch.equal(again.of(worth), estimator.of(worth))
