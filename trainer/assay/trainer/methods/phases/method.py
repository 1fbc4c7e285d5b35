"""The hooks of phases: a source that follows the schedule, and the gate before the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from assay.environments.types import role_of
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.build import Workshop
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.phases.schedule import Decisions, Phase, PhaseState
from assay.trainer.methods.phases.settings import PhasesConfig
from assay.trainer.rollouts.types import (
    Acted,
    Collected,
    Ranks,
    Rollout,
    Source,
    Then,
    nothing_more,
)

NAME = "phases"
_NEAR = 1e-6


class Phases(Hooks):
    """Agents that play and agents that decide train in turns (arXiv 2509.25541).

    L_t = m_t L_play + (1 - m_t) L_decide: the episodes are whole in both phases, and the tokens of
    agents that are not due leave the loss. Rewards and baselines are as without phases.
    """

    def around(self, source: Source, shop: Workshop) -> Source:
        """See Hooks."""
        return PhaseSource(source, self.config.method.phases, shop.ranks)

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; a step without a phase, of value pre-training, stays as it is."""
        phase: Phase | None = collected.notes.get(NAME)
        if phase is None:
            return batch
        decides = self.config.method.phases.decides
        rows = [due_tokens(item, phase, decides) for item in scored]
        due_BT = filled(rows, False, torch.bool).to(batch["loss_mask"].device)
        return {**batch, "loss_mask": batch["loss_mask"] & due_BT}


class PhaseSource:
    """A Source whose steps have a phase; it goes on by what they decided.

    Args:
        inner: the source of the steps.
        config: of the schedule.
        ranks: whose decisions count together.
    """

    def __init__(self, inner: Source, config: PhasesConfig, ranks: Ranks) -> None:
        self._inner = inner
        self._config = config
        self._ranks = ranks
        self.state = PhaseState(config.first)

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source; the phase is in the notes, the running means in the metrics."""
        following = self.state

        def note(collected: Collected) -> None:
            nonlocal following
            rollouts = [one for group in collected.groups for one in group]
            mine = decisions(rollouts, self._config)
            whole = self._ranks.gather(np.array([[mine.made, mine.right, mine.unsure]], float))
            made, right, unsure = map(int, whole.sum(0))
            following = self.state.after(Decisions(made, right, unsure), self._config)
            collected.notes[NAME] = self.state.phase
            collected.metrics |= {
                "phases_play": float(self.state.phase == "play"),
                "phases_accuracy": following.accuracy,
                "phases_unsure": following.unsure,
            }
            then(collected)

        collected = self._inner.collect(policy_step, note)
        self.state = following
        return collected

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        return {"inner": self._inner.state_dict(), NAME: self.state.to_json()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See Source."""
        self._inner.load_state_dict(state["inner"])
        self.state = PhaseState(**state[NAME])


def decisions(rollouts: Sequence[Rollout], config: PhasesConfig) -> Decisions:
    """What agents of `decides` decided; faults are no decisions."""
    earned = [
        reward
        for rollout in rollouts
        if rollout.acted is not None and rollout.result.fault is None
        for agent, reward in rollout.acted.rewards.items()
        if role_of(agent) in config.decides and reward is not None
    ]
    return Decisions(
        len(earned),
        _counted(earned, lambda one: one >= config.right - _NEAR),
        _counted(earned, lambda one: abs(one - config.unsure) <= _NEAR),
    )


def _counted(earned: Sequence[float], fits: Callable[[float], bool]) -> int:
    return sum(map(fits, earned))


def due_tokens(item: Scored, phase: Phase, decides: Sequence[str]) -> list[bool]:
    """Whether each token is of an agent that the phase trains; all of what is no episode's."""
    length = len(item.rollout.response.ids)
    acted: Acted | None = getattr(item.rollout, "acted", None)
    if acted is None:
        return [True] * length
    due = [False] * length
    for turn in acted.turns:
        if (role_of(turn.agent) in decides) == (phase == "decide"):
            due[turn.start : turn.end] = [True] * (turn.end - turn.start)
    return due
