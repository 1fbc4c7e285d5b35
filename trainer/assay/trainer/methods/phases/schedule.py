"""When self-play gives way to verifiable rewards, and back. Pure.

Iterative-SPO of Vision-Zero (arXiv 2509.25541), equations 7 to 10:

    acc_t, na_t       shares of decisions that are right, and that say "unsure"           (7)
    x'_t = rho x'_(t-1) + (1 - rho) x_t, from 0                                            (8)
    decide -> play    acc'_t >= play_from_accuracy  and  na'_t <= play_to_unsure           (9)
    play -> decide    1 - acc'_t >= decide_from_error  or  na'_t >= decide_from_unsure     (10)

and no change before `least_steps` of a phase.

1. The paper takes acc and na on a held-out batch, as the policy's likeliest decision; here they are
   those of the step's own episodes, as sampled. [ours]
2. It names a patience and no rule for it: here a phase of `most_steps` ends anyway. [ours]
3. Its text does not say which phase comes first. [ours: `first`]
4. A step without a decision moves no mean. [ours]
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from assay.trainer.methods.phases.settings import PhasesConfig

Phase = Literal["play", "decide"]
_NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions of a step: how many, and how many of them were right, or unsure."""

    made: int = 0
    right: int = 0
    unsure: int = 0


@dataclass(frozen=True, slots=True)
class PhaseState:
    """Where the schedule is, before a step.

    Attributes:
        phase: that the step trains.
        steps: that the phase has had.
        accuracy: acc', in [0, 1].
        unsure: na', in [0, 1].
    """

    phase: Phase
    steps: int = 0
    accuracy: float = 0.0
    unsure: float = 0.0

    def after(self, seen: Decisions, config: PhasesConfig) -> PhaseState:
        """The state after a step with these decisions."""
        rho, moved = config.smoothing, self
        if seen.made:
            moved = replace(
                self,
                accuracy=rho * self.accuracy + (1 - rho) * seen.right / seen.made,
                unsure=rho * self.unsure + (1 - rho) * seen.unsure / seen.made,
            )
        steps = self.steps + 1
        overdue = 0 < config.most_steps <= steps
        if steps >= config.least_steps and (overdue or _is_over(moved, config)):
            return replace(moved, phase="decide" if self.phase == "play" else "play", steps=0)
        return replace(moved, steps=steps)

    def to_json(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)


def _is_over(state: PhaseState, config: PhasesConfig) -> bool:
    if state.phase == "decide":
        return (
            state.accuracy >= config.play_from_accuracy - _NEAR
            and state.unsure <= config.play_to_unsure + _NEAR
        )
    return (
        1 - state.accuracy >= config.decide_from_error - _NEAR
        or state.unsure >= config.decide_from_unsure - _NEAR
    )
