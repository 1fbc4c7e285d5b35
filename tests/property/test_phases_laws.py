"""Phases of Iterative-SPO: laws of the schedule, of its source and of the gate before the loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.trainer.core.batch import Scored
from assay.trainer.methods.phases.method import PhaseSource, decisions, due_tokens
from assay.trainer.methods.phases.schedule import Decisions, PhaseState
from assay.trainer.methods.phases.settings import PhasesConfig
from assay.trainer.rollouts.types import Collected, OneRank, Then, nothing_more
from assay.trainer.settings import config as configs
from episodes_credit_support import Said, Told, config_of, rollout_of

STEPS = st.builds(
    lambda right, unsure, wrong: Decisions(right + unsure + wrong, right, unsure),
    st.integers(0, 5), st.integers(0, 5), st.integers(0, 5),
)  # fmt: skip
RATIO = st.floats(0, 1)
CONFIGS = st.builds(
    lambda least, more, **given: PhasesConfig(
        ("voter",), least_steps=least, most_steps=least + more if more else 0, **given
    ),
    st.integers(1, 4),
    st.integers(0, 4),
    first=st.sampled_from(["play", "decide"]),
    smoothing=st.floats(0, 0.99),
    play_from_accuracy=RATIO,
    play_to_unsure=RATIO,
    decide_from_error=RATIO,
    decide_from_unsure=RATIO,
)
ROLES = ("spy", "civilian#1", "civilian#2", "voter#1", "voter#2")
TOLD = st.builds(
    Told,
    st.lists(st.builds(Said, st.sampled_from(ROLES), st.integers(1, 3)), min_size=1, max_size=6),
    st.sampled_from([0.0, 1.0, None]),
    st.dictionaries(st.sampled_from(ROLES), st.sampled_from([1.0, -0.5, -1.0, 0.3, None])),
)


def followed(config: PhasesConfig, seen: list[Decisions]) -> list[PhaseState]:
    states = [PhaseState(config.first)]
    for one in seen:
        states.append(states[-1].after(one, config))
    return states


@given(CONFIGS, st.lists(STEPS, max_size=30))
def test_a_phase_lasts_as_long_as_it_may(config: PhasesConfig, seen: list[Decisions]) -> None:
    states = followed(config, seen)
    lasted, lengths = 0, []
    for before, after in pairwise(states):
        lasted += 1
        assert after.steps == (lasted if after.phase == before.phase else 0)
        assert 0 <= after.accuracy <= 1
        assert 0 <= after.unsure <= 1
        if after.phase != before.phase:
            lengths.append(lasted)
            lasted = 0
    assert all(length >= config.least_steps for length in lengths)
    if config.most_steps:
        assert all(length <= config.most_steps for length in [*lengths, lasted])


@given(CONFIGS, st.lists(STEPS, max_size=20))
def test_it_changes_by_the_equations_and_by_nothing_else(
    config: PhasesConfig, seen: list[Decisions]
) -> None:
    """The paper's equations, written again: means of their own, and one condition a phase."""
    phase, steps, acc, unsure = config.first, 0, 0.0, 0.0
    for one, state in zip(seen, followed(config, seen)[1:], strict=True):
        if one.made:
            acc = config.smoothing * acc + (1 - config.smoothing) * (one.right / one.made)
            unsure = config.smoothing * unsure + (1 - config.smoothing) * (one.unsure / one.made)
        steps += 1
        easy = acc >= config.play_from_accuracy - 1e-9 and unsure <= config.play_to_unsure + 1e-9
        hard = 1 - acc >= config.decide_from_error - 1e-9
        hard = hard or unsure >= config.decide_from_unsure - 1e-9
        due = {"decide": easy, "play": hard}[phase] or (0 < config.most_steps <= steps)
        if due and steps >= config.least_steps:
            phase, steps = {"decide": "play", "play": "decide"}[phase], 0  # type: ignore[assignment]
        assert state == PhaseState(phase, steps, pytest.approx(acc), pytest.approx(unsure))


def test_by_hand() -> None:
    """rho 1/2: accuracy 1/2, 3/4, 7/8 and 15/16, above 0.9; then 15/32, an error above 0.4."""
    config = PhasesConfig(("voter",), first="decide", smoothing=0.5, least_steps=1, most_steps=0)
    right, wrong = Decisions(3, 3, 0), Decisions(3, 0, 0)
    states = followed(config, [right, right, right, right, wrong, Decisions()])
    assert [one.phase for one in states] == [*["decide"] * 4, "play", "decide", "decide"]
    assert [one.accuracy for one in states[4:]] == [15 / 16, 15 / 32, 15 / 32]


def test_who_says_unsure_ends_the_play_and_keeps_deciding() -> None:
    config = PhasesConfig(("voter",), smoothing=0.0, least_steps=1, most_steps=0)
    unsure = Decisions(2, 0, 2)
    assert followed(config, [unsure, unsure])[-1].phase == "decide"
    half = Decisions(10, 9, 1)  # 0.9 right and 0.1 unsure: both thresholds are reached
    assert followed(config, [unsure, half])[-1].phase == "play"


def test_the_published_values_are_the_defaults() -> None:
    """ "Training and Hyperparameter Settings" of arXiv 2509.25541."""
    config = PhasesConfig()
    thresholds = (
        config.play_from_accuracy,
        config.decide_from_error,
        config.decide_from_unsure,
        config.play_to_unsure,
    )
    assert thresholds == (0.9, 0.4, 0.5, 0.1)
    assert (config.smoothing, config.least_steps, config.most_steps) == (0.95, 5, 20)
    assert (config.right, config.unsure) == (1.0, -0.5)


@given(TOLD)
def test_each_of_the_policys_tokens_is_due_in_one_phase(told: Told) -> None:
    item = Scored(rollout_of(told, 0, 0), told.reward)
    play = due_tokens(item, "play", ["voter"])
    decide = due_tokens(item, "decide", ["voter"])
    acted = item.rollout.acted  # type: ignore[union-attr]
    assert acted is not None
    for turn in acted.turns:
        voter = turn.agent.startswith("voter")
        assert decide[turn.start : turn.end] == [voter] * (turn.end - turn.start)
    own = {at for turn in acted.turns for at in range(turn.start, turn.end)}
    for at, (one, other) in enumerate(zip(play, decide, strict=True)):
        assert one + other == (at in own)


@given(st.lists(TOLD, max_size=6))
def test_decisions_are_counted_once_and_faults_never(told: list[Told]) -> None:
    rollouts = [rollout_of(one, 0, n) for n, one in enumerate(told)]
    found = decisions(rollouts, PhasesConfig(("voter",)))
    earned = [
        reward
        for one in told
        if one.reward is not None
        for agent, reward in one.rewards.items()
        if agent.startswith("voter") and reward is not None
    ]
    assert found == Decisions(len(earned), earned.count(1.0), earned.count(-0.5))


@dataclass
class Steps:
    """A source that gives these episodes, one group a step."""

    told: list[Told]
    at: int = 0

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        collected = Collected([(rollout_of(self.told[self.at], self.at, 0),)], [])
        then(collected)
        self.at += 1
        return collected

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


@given(st.lists(TOLD, min_size=1, max_size=8), CONFIGS, st.integers(0, 8))
def test_a_resumed_source_goes_on_as_it_would_have(
    told: list[Told], config: PhasesConfig, cut: int
) -> None:
    def phases(source: PhaseSource, count: int) -> list[Any]:
        steps = [source.collect(n) for n in range(count)]
        return [(one.notes["phases"], one.metrics) for one in steps]

    whole = phases(PhaseSource(Steps(told), config, OneRank()), len(told))
    first = PhaseSource(Steps(told), config, OneRank())
    count = min(cut, len(told))
    before = phases(first, count)
    again = PhaseSource(Steps(told), config, OneRank())
    again.load_state_dict(first.state_dict())
    assert before + phases(again, len(told) - count) == whole
    assert [one == "play" for one, _ in whole] == [m["phases_play"] for _, m in whole]


def test_a_step_that_fails_leaves_the_schedule_as_it_was() -> None:
    config = PhasesConfig(("voter",), smoothing=0.0, least_steps=1, most_steps=1)
    source = PhaseSource(Steps([Told([Said("voter#1")], 1.0, {"voter#1": 1.0})]), config, OneRank())
    before = source.state_dict()

    def breaks(_collected: Collected) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        source.collect(0, breaks)
    assert source.state_dict() == before


def test_processes_decide_together() -> None:
    """One has a right decision, the other three wrong ones: the accuracy is 1/4 on both."""

    @dataclass(frozen=True)
    class Two(OneRank):
        def gather(self, rows: Any) -> Any:
            return np.concatenate([rows, np.array([[3.0, 0.0, 0.0]])])

    config = PhasesConfig(("voter",), smoothing=0.0)
    told = [Told([Said("voter#1")], 1.0, {"voter#1": 1.0})]
    source = PhaseSource(Steps(told), config, Two())
    assert source.collect(0).metrics["phases_accuracy"] == 0.25


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method.phases.decides=[\"voter\"]"], "set method.episodes.environment"),
        (["method.phases.decides=[\"voter\"]", "method.episodes.environment=spy",
          "method.phases.most_steps=2"], "most_steps = 2 is below least_steps = 5"),
        (["method.phases.decides=[\"voter\"]", "method.episodes.environment=spy",
          "method.asynchrony.mode=bounded", "method.asynchrony.max_staleness=1"],
         "which agents train follows from the steps before"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configs.build({}, ["data=rows.jsonl", *overrides], origin="t")


def test_it_is_off_without_roles() -> None:
    assert config_of(2).method.phases.decides == ()
