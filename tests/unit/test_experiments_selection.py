"""The bandit of difficulties: what it counts and what moves it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from experiments.selection import contest as bench

from assay.trainer.selection.subsets import Subset
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
    drawn = list(bench.played(bandit, Subset(range(600), 1), 12, dynamic=dynamic))
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


def test_a_hint_leaves_the_gradient_of_its_own_chance() -> None:
    """A hinted group moves the ability by the gradient of p ^ (1 - h), as a plain one by that of p.

    Checked by numbers: s * d log-odds(p ^ (1 - h)) / d ability.
    """
    bandit = bench.Bandit(0)
    rewards, place = (1.0,) * 3 + (0.0,) * 5, 7
    gap = bandit.difficulty[place]

    def log_odds(ability: float, rest: float) -> float:
        chance = (1 / (1 + np.exp(gap - ability))) ** rest
        return float(np.log(chance / (1 - chance)))

    bandit.train([Seen(place, rewards, 3)])
    plain = bandit.ability[0]
    for level, share in enumerate(bench.HINTS.shares, start=1):
        hinted = bench.Bandit(0)
        hinted.train([Seen(place + level * 600, rewards, 3)])
        slope = (log_odds(1e-5, 1 - share) - log_odds(-1e-5, 1 - share)) / 2e-5
        assert hinted.ability[0] / plain == pytest.approx(slope, rel=1e-4)
        assert 0 < hinted.ability[0] < plain


def test_hints_make_hopeless_problems_likelier_and_count() -> None:
    bandit = bench.Bandit(0)
    place = int(np.argmax(bandit.difficulty))
    right = [bandit.answer(place + level * 600, 4000).correct for level in range(4)]
    assert right == sorted(right)
    assert right[3] > right[0] + 100
    assert bandit.made == 16_000
    selector, hinted = bench.contestant("hints", bench.Bandit(1), 12), bench.Bandit(1)
    steps = list(bench.played(hinted, selector, 12, dynamic=False, hints=bench.HINTS.shares))
    assert hinted.made == sum(map(len, steps)) * bench.GROUP
    for step in steps:
        assert sum(group.place < 600 for group in step) == bench.PROMPTS
        for group, after in itertools.pairwise([*step, Seen(0)]):
            again = not group.correct and group.place < 3 * 600
            assert (after.place == group.place + 600) == again, "in the same step"


def test_the_filter_and_the_replay_are_the_trainers() -> None:
    silent, some, later = (
        Seen(3, (0.0,) * 8), Seen(5, (1.0, 1.0) + (0.0,) * 6, 2), Seen(9, (1.0,) * 8, 8)
    )  # fmt: skip
    bandit = bench.Bandit(0)
    assert bench.Batch().of([silent, some], 0, bandit) == [silent, some]
    spread = bench.batch_of("spread filter", 0)
    assert spread.of([silent, some], 0, bandit) == [some]
    assert spread.of([silent, later], 2, bandit) == []
    chance = bandit.asked(5)[1]
    for name in ("replay", "replay, no ratio"):
        replay = bench.batch_of(name, 0)
        assert replay.of([silent, some], 0, bandit) == [silent, some], "nothing to replay yet"
        first, second = replay.of([silent, later], 2, bandit)
        assert (first.place, first.rewards, second) == (5, some.rewards, later)
        if name == "replay":
            assert isinstance(first, bench.Replayed)
            assert first.chance == pytest.approx(chance)
        else:
            assert first == some


def test_a_replayed_group_pushes_as_a_fresh_one_until_the_ratio_is_clipped() -> None:
    group = bench.Replayed(0, (1.0, 1.0) + (0.0,) * 6, 2, chance=0.25)
    assert group.push(0.25) == pytest.approx(float(np.std(group.rewards)))
    near, far = group.push(0.29), group.push(0.31)
    assert far < 0.5 * near, "the right ones are clipped"
    assert group.push(0.45) == 0, "and then the wrong ones"
