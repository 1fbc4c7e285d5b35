"""The bandit of difficulties: what it counts and what moves it."""

from __future__ import annotations

import numpy as np
import pytest
from bench import selection as bench

from assay.trainer.selection.orders import Uniform
from assay.trainer.selection.types import Seen


def test_groups_that_are_all_alike_teach_nothing_and_even_ones_most() -> None:
    moved = []
    for correct in (0, 1, 4, 8):
        bandit = bench.Bandit(0)
        bandit.train([Seen(0, (1.0,) * correct + (0.0,) * (8 - correct), correct)])
        moved.append(bandit.ability[0])
    assert moved[0] == moved[3] == 0
    assert 0 < moved[1] < moved[2]
    assert bandit.chances().shape == (600,)


def test_the_gain_is_the_policy_gradient_of_a_logit() -> None:
    """Mean of A (r - p) over a group, with A = (r - mean) / deviation, is the deviation."""
    rewards = np.array([1.0, 0, 0, 1, 1, 0, 0, 0])
    advantages = (rewards - rewards.mean()) / rewards.std()
    for p in (0.1, 0.5):
        assert (advantages * (rewards - p)).mean() == pytest.approx(rewards.std())


@pytest.mark.parametrize("dynamic", [False, True])
def test_every_response_counts(dynamic: bool) -> None:
    bandit = bench.Bandit(1)
    drawn = list(bench.played(bandit, Uniform(range(600), 1), 12, dynamic=dynamic))
    groups = [group for step in drawn for group in step]
    assert bandit.made == len(groups) * bench.GROUP <= 12 * bench.PROMPTS * bench.GROUP
    if dynamic:
        assert len(drawn) < 12
        full = [sum(0 < g.correct < bench.GROUP for g in step) for step in drawn]
        assert set(full[:-1]) == {bench.PROMPTS}
    else:
        assert [len(step) for step in drawn] == [bench.PROMPTS] * 12


@pytest.mark.parametrize("name", bench.NAMES)
def test_every_contestant_plays_and_the_same_twice(name: str) -> None:
    steps = 60 if name == "limr" else 12  # its earlier run must come to problems twice
    first = bench.one_run(name, 3, steps)
    assert first == bench.one_run(name, 3, steps)
    assert 0 < (first["success"] or 0) < 1
    assert bench.TASKS[0] == "sums"
