"""Settings of rollouts that are drawn beside the training, what they go with, and their gate.

bounded   a batch is drawn by weights that may be some steps older than those that learn from
          it: AReaL (arXiv 2505.24298)
periodic  the weights of a step draw all of its batch, while micro-batches that are whole are
          trained on already; they move when all are in. The result is the synchronous one
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.methods.asynchrony.parts import METRICS, PARTS, objective_lines, sampling_lines
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Lines, TrainingMethod

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class AsynchronyConfig(Strict):
    """Rollouts in a thread beside the training."""

    mode: Literal["off", "bounded", "periodic"] = "off"
    """bounded: batches are drawn ahead, by weights at most `max_staleness` steps old (AReaL).
    periodic: within a step only, by its own weights."""
    max_staleness: Annotated[int, Field(ge=0)] = 1
    """bounded: steps that the weights which drew a batch may be behind those that learn from it;
    0 draws nothing ahead. As many batches are drawn ahead, and as many copies of the weights that
    learn may wait for their turn."""
    interrupt: bool = False
    """bounded: responses under way go on under the weights of each step as it begins (AReaL's
    interruptible generation), and no batch begins with older ones. What is drawn by which weights
    then depends on the clock: a run does not repeat to the bit."""


def admits(rollout: int, *, batch: int, version: int, max_staleness: int) -> bool:
    """AReaL's gate (arXiv 2505.24298): whether a rollout may begin.

    floor((n - 1) / B) <= i + eta: rollout n is of the batch that step floor((n - 1) / B) learns
    from, and by then i is at most eta steps back.

    Args:
        rollout: n, counted from 1 over the run, those under way included.
        batch: B, rollouts of a step.
        version: i, steps made.
        max_staleness: eta, at least 0.
    """
    return (rollout - 1) // batch <= version + max_staleness


def portion_prompts(config: Config) -> int:
    """Prompts whose samples are micro-batches without a rest: the fewest of which that is true."""
    rows = math.lcm(config.rollout.group_size, config.optim.micro_batch or config.samples_per_step)
    return rows // config.rollout.group_size


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    if config.method.asynchrony.interrupt and config.method.asynchrony.mode != "bounded":
        return (
            'method.asynchrony.interrupt goes with method.asynchrony.mode = "bounded": elsewhere '
            "weights do not move while responses are drawn"
        )
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
    is_on=lambda c: c.method.asynchrony.mode != "off",
    rank=90,
    hooks="assay.trainer.methods.asynchrony.method:Asynchrony",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 70, sampling_lines), Lines("Objective", 20, objective_lines)),
    check=check,
)
