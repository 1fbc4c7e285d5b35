"""TMN-Reweight (GoLongRL, arXiv 2605.19577): scales of tasks, and weights of prompts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.advantages import group_advantages, rloo_advantages
from assay.trainer.algos.difficulty import smoothed, weights

P, G = 4, 5
HUGE = 2.0**27
"""Rewards in such a unit have deviations beside which the eps of 1e-4 is nothing."""
TASKS = torch.tensor([3, 8, 3, 8])
REWARDS = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, 1.0, math.nan]), min_size=G, max_size=G),
    min_size=P, max_size=P,
).map(lambda rows: torch.tensor(rows, dtype=torch.float64))  # fmt: skip


@given(rewards=REWARDS)
def test_advantages_of_a_task_have_mean_squares_of_one_and_a_fault_has_none(
    rewards: torch.Tensor,
) -> None:
    found = group_advantages(rewards * HUGE, scale="task", tasks_P=TASKS)
    assert not found[rewards.isnan()].any()
    for task in (3, 8):
        counts = (~rewards[task == TASKS].isnan()).sum(dim=1)
        rows = found[task == TASKS][counts >= 2]
        counts = counts[counts >= 2]
        if not len(rows) or not rows.any():
            continue
        variances = rows.square().sum(dim=1) / (counts - 1)
        assert float(variances.mean()) == pytest.approx(1.0, abs=1e-6)


@given(rewards=REWARDS, factor=st.floats(0.1, 50.0), shift=st.floats(-5, 5))
def test_the_scale_of_a_task_s_rewards_does_not_matter(
    rewards: torch.Tensor, factor: float, shift: float
) -> None:
    """Nor does that of one task matter to the other, as it does with the batch's deviation."""
    changed = torch.where((TASKS == 3)[:, None], rewards * factor + shift, rewards)
    for estimate in (group_advantages, rloo_advantages):
        one = estimate(rewards * HUGE, scale="task", tasks_P=TASKS)
        two = estimate(changed * HUGE, scale="task", tasks_P=TASKS)
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)


def test_with_one_prompt_the_task_is_the_group_and_without_tasks_there_is_one() -> None:
    rewards = torch.tensor([[0.0, 1.0, 1.0, math.nan]])
    torch.testing.assert_close(
        group_advantages(rewards, scale="task"), group_advantages(rewards, scale="group")
    )
    several = torch.tensor([[0.0, 1.0], [0.0, 4.0]])
    by_hand = torch.tensor([[-0.5, 0.5], [-2.0, 2.0]]) / (math.sqrt((0.5 + 8.0) / 2) + 1e-4)
    torch.testing.assert_close(group_advantages(several, scale="task"), by_hand)


@given(rewards=REWARDS, alpha=st.floats(0, 1), gamma=st.floats(0, 3))
def test_weights_are_bounded_and_opposite_on_both_sides(
    rewards: torch.Tensor, alpha: float, gamma: float
) -> None:
    correct = rewards > 0.5
    exp = weights(rewards, correct, TASKS, form="exp", alpha=alpha, gamma=gamma)
    assert bool((exp.log().abs() <= gamma / 2 + 1e-9).all())
    assert bool((exp[rewards.isnan()] == 1).all())
    for row, told in zip(exp, rewards, strict=True):
        above = row[told > told.nanmean()]
        below = row[told <= told.nanmean()]
        assert len(above.unique()) <= 1
        if len(above) and len(below):
            assert float(above[0] * below[0]) == pytest.approx(1.0)
    linear = weights(rewards, correct, TASKS, form="linear", alpha=alpha)
    assert bool(((linear >= 1 - 1e-9) & (linear <= 2 + 1e-9)).all())


@given(rewards=REWARDS, factor=st.floats(0.1, 50.0), shift=st.floats(-5, 5))
def test_weights_do_not_depend_on_a_task_s_scale(
    rewards: torch.Tensor, factor: float, shift: float
) -> None:
    """By exact factors, so that no reward crosses its smoothed mean by rounding."""
    factor, shift = 2.0 ** round(math.log2(factor)), float(round(shift))
    args = {"form": "exp", "alpha": 0.75, "gamma": 1.0}
    one = weights(rewards, rewards > 0.5, TASKS, **args)
    two = weights(rewards * factor + shift, rewards > 0.5, TASKS, **args)
    close = (rewards - smoothed(rewards, TASKS, 0.75)[:, None]).abs() < 1e-9
    unsure = close.any(dim=1) | (rewards - rewards.nanmean(dim=1, keepdim=True)).abs().lt(1e-9).any(
        dim=1
    )
    torch.testing.assert_close(one[~unsure], two[~unsure])


@given(rewards=REWARDS)
def test_a_fault_is_as_if_it_had_not_been_drawn(rewards: torch.Tensor) -> None:
    """A prompt's weights are those that its judged responses alone give."""
    for form in ("exp", "linear", "medium"):
        whole = weights(rewards, rewards > 0.5, TASKS, form=form)
        for row in range(P):
            kept = ~rewards[row].isnan()
            order = torch.cat([torch.nonzero(kept), torch.nonzero(~kept)]).squeeze(1)
            moved = rewards.clone()
            moved[row] = rewards[row][order]
            again = weights(moved, moved > 0.5, TASKS, form=form)
            torch.testing.assert_close(again[row][: kept.sum()], whole[row][kept])


@given(rewards=REWARDS)
def test_medium_weights_are_largest_at_one_half_and_the_same_for_p_and_1_minus_p(
    rewards: torch.Tensor,
) -> None:
    right = rewards > 0.5
    found = weights(rewards, right, TASKS, form="medium")
    other = weights(rewards, ~right, TASKS, form="medium")
    torch.testing.assert_close(found, other)
    for row, told, judged in zip(found, right, ~rewards.isnan(), strict=True):
        assert len(row.unique()) == 1
        assert 0 <= float(row[0]) <= 1
        if not judged.any():
            assert row[0] == 1
            continue
        rate = float(told[judged].double().mean())
        assert float(row[0]) == pytest.approx(1 - (2 * rate - 1) ** 2)


def test_harder_prompts_push_right_answers_more() -> None:
    rewards = torch.tensor([[1.0, 0, 0, 0], [1.0, 1, 1, 0]])
    tasks = torch.tensor([0, 0])
    exp = weights(rewards, rewards > 0.5, tasks, form="exp")
    assert exp[0, 0] == pytest.approx(math.exp(0.25))
    assert exp[1, 0] == pytest.approx(math.exp(-0.25))
    assert exp[0, 1] == pytest.approx(math.exp(-0.25))
    assert exp[1, 3] == pytest.approx(math.exp(0.25))
    linear = weights(rewards, rewards > 0.5, tasks, form="linear")
    # s = 0.8 * mean + 0.2 * 0.5
    torch.testing.assert_close(linear[:, 0], torch.tensor([2 - 0.3, 2 - 0.7]))


def test_the_smoothed_mean_is_the_formula() -> None:
    values = torch.tensor([[1.0, 0.0], [1.0, 1.0], [math.nan, math.nan], [0.0, 0.0]])
    tasks = torch.tensor([5, 5, 5, 7])
    found = smoothed(values, tasks, 0.8)
    torch.testing.assert_close(found[:2], torch.tensor([0.8 * 0.5 + 0.2 * 0.75, 0.8 + 0.15]))
    assert found[2].isnan()
    assert found[3] == 0
