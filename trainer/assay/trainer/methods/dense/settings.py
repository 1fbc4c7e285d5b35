"""Settings of rewards within a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.clients.toml_config import STRICT
from assay.trainer.methods.dense.metrics import METRICS
from assay.trainer.methods.dense.parts import PARTS, advantage_lines, earns, reward_lines
from assay.trainer.settings.kinds import NonNegativeFloat, Ratio
from assay.trainer.settings.method import Lines, Method

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """Rewards within a response: the spans of its judgement (steps, lines, turns)."""

    __pydantic_config__ = STRICT

    weight: NonNegativeFloat = 0.0
    """0 leaves spans out."""
    decay_to: NonNegativeFloat = 0.0
    """Above 0, the weight changes exponentially from `weight` at the first step to this at the last
    (Tango: from 0.1 to 1e-3)."""
    mix: Literal["add", "interpolate"] = "add"
    """How the advantages of steps meet that of the outcome in a group: A + weight * A_steps, or (1
    - weight) * A + weight * A_steps (Tango)."""
    normalise: bool = True
    """Divides by the number of spans, so that more of them give no more reward."""
    correct_share: Ratio = 1.0
    """How much of it stays where the verdict is "correct" (arXiv 2410.17621: 0.025 of 0.25)."""

    def weight_at(self, step: int, steps: int) -> float:
        """The weight of a step.

        Args:
            step: from 0.
            steps: of the run, at least 1.
        """
        if not self.decay_to or steps == 1:
            return self.weight
        return self.weight * (self.decay_to / self.weight) ** (min(step, steps - 1) / (steps - 1))


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    dense = config.method.dense
    if dense.mix == "interpolate" and not 0 < dense.weight <= 1:
        return (
            f'method.dense.mix = "interpolate" needs a weight above 0 and of at most 1, and '
            f"method.dense.weight = {dense.weight:g}"
        )
    if dense.decay_to and not dense.weight:
        return "method.dense.decay_to needs method.dense.weight above 0"
    return ""


METHOD = Method(
    name="dense",
    settings=DenseConfig,
    is_on=lambda c: c.method.dense.weight > 0,
    rank=120,
    hooks="assay.trainer.methods.dense.method:Dense",
    parts=PARTS,
    metrics=METRICS,
    earns=earns,
    lines=(Lines("Reward", 40, reward_lines), Lines("Advantage", 50, advantage_lines)),
    check=check,
)
