"""Settings of background rollouts, their capabilities, and AReaL's gate.

bounded   weights that are some steps older may draw a batch: AReaL (arXiv 2505.24298)
periodic  a step's weights draw its whole batch, and move when all of it is in, while full
          micro-batches already train. The result is the synchronous one
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.methods.asynchrony.parts import METRICS, PARTS, objective_lines, sampling_lines
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class AsynchronyConfig(Strict):
    """Rollouts in a thread beside the training."""

    mode: Literal["off", "bounded", "periodic"] = "off"
    """bounded: batches are drawn ahead, by weights at most `max_staleness` steps old (AReaL).
    periodic: within a step only, by its own weights.
    """
    max_staleness: Annotated[int, Field(ge=0), only("method.asynchrony.mode", "bounded")] = 1
    """bounded: steps that a batch's weights may be behind those that learn from it; 0 draws nothing
    ahead. Up to so many batches, and copies of the trained weights, wait."""
    interrupt: Annotated[bool, only("method.asynchrony.mode", "bounded")] = False
    """bounded: open responses take each step's weights as it begins (AReaL's interruptible
    generation); elsewhere weights do not move while responses are drawn. Runs then depend on the
    clock and do not repeat to the bit."""


def admits(rollout: int, *, batch: int, version: int, max_staleness: int) -> bool:
    """AReaL's gate (arXiv 2505.24298): whether a rollout may begin.

    floor((n - 1) / B) <= i + eta: step floor((n - 1) / B) learns from rollout n.

    Args:
        rollout: n, counted from 1 over the run, open ones included.
        batch: B, rollouts of a step.
        version: i, steps made.
        max_staleness: eta, at least 0.
    """
    return (rollout - 1) // batch <= version + max_staleness


def portion_prompts(config: Config) -> int:
    """The fewest prompts whose samples fill micro-batches without a rest."""
    rows = math.lcm(config.rollout.group_size, config.optim.micro_batch or config.samples_per_step)
    return rows // config.rollout.group_size


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    if config.method.asynchrony.mode != "periodic":
        return ""
    if config.updates_per_rollout > 1:
        return (
            'method.asynchrony.mode = "periodic" needs optim.mini_batches = 1 and optim.epochs = '
            "1: the weights would move while they still draw"
        )
    if portion_prompts(config) >= config.rollout.prompts_per_step:
        return (
            'method.asynchrony.mode = "periodic" needs optim.micro_batch of which some are whole '
            "before all groups of the step are there: there is nothing else to train on while the "
            "rest is drawn"
        )
    if config.method.advantage.scale == "batch":
        return (
            'method.asynchrony.mode = "periodic" needs method.advantage.scale = "group" or "none": '
            "a deviation over the batch is of the whole batch"
        )
    return ""


METHOD = TrainingMethod(
    name="asynchrony",
    settings=AsynchronyConfig,
    is_on=other_than("method.asynchrony.mode", "off"),
    rank=90,
    hooks="assay.trainer.methods.asynchrony.method:Asynchrony",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 70, sampling_lines), Lines("Objective", 20, objective_lines)),
    check=check,
)
