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

from assay.clients.toml_config import STRICT
from assay.trainer.needs import Need, first_unmet

if TYPE_CHECKING:
    from assay.trainer.settings import Config


@dataclass(frozen=True, slots=True)
class AsynchronyConfig:
    """Rollouts in a thread beside the training."""

    __pydantic_config__ = STRICT

    mode: Literal["off", "bounded", "periodic"] = "off"
    """bounded: batches are drawn ahead, by weights at most `max_staleness` steps old (AReaL).
    periodic: within a step only, by its own weights."""
    max_staleness: Annotated[int, Field(ge=0)] = 1
    """bounded: steps that the weights which drew a batch may be behind those that learn from it;
    0 draws nothing ahead. As many batches are drawn ahead, and as many copies of the weights that
    learn may wait for their turn."""


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
    rows = math.lcm(config.rollout.group_size, config.micro_batch())
    return rows // config.rollout.group_size


def check(config: Config) -> str:
    """What asynchrony does not go with here, and what to do; empty where all is well."""
    algorithm, mode = config.algorithm, config.algorithm.asynchrony.mode
    if mode == "off":
        return ""
    selection = config.data.selection
    needs: tuple[Need, ...] = (
        (
            config.rollout.backend == "hf",
            'rollout.backend = "hf"',
            "paged sets torch's random state beside the training, and TRL moves vLLM's weights",
        ),
        (
            not algorithm.dynamic_sampling.enabled,
            "algorithm.dynamic_sampling.enabled = false",
            "which prompts to draw next depends on judgements that are still out",
        ),
        (
            selection.name == "uniform" and not selection.hints.enabled,
            'data.selection.name = "uniform", without hints',
            "a selector learns from judgements that are still out",
        ),
        (
            not algorithm.replay.groups,
            "algorithm.replay.groups = 0",
            "it brings back groups of any age",
        ),
        (
            not algorithm.recomposition.groups,
            "algorithm.recomposition.groups = 0",
            "what waits for a later batch may be of any age",
        ),
        (
            algorithm.advantage.estimator != "segments",
            'algorithm.advantage.estimator other than "segments"',
            "responses would be continued by other weights than drew them",
        ),
        (
            not algorithm.truncation.window,
            "algorithm.truncation.window = 0",
            "a slot goes on under the weights of the next step",
        ),
        (
            not config.cotraining.enabled,
            "cotraining.enabled = false",
            "the verifier reads a step's solutions before the next are drawn",
        ),
        (
            not algorithm.turns.on,
            'algorithm.turns.mode = "off"',
            "the turns of a dialogue are drawn in lockstep with their reading",
        ),
    )
    if mode == "periodic":
        needs += _of_periodic(config)
    return first_unmet(f'algorithm.asynchrony.mode = "{mode}"', needs)


def _of_periodic(config: Config) -> tuple[Need, ...]:
    """Nothing may be taken over the whole batch before the whole batch is there."""
    algorithm, advantage = config.algorithm, config.algorithm.advantage
    return (
        (
            config.updates_per_rollout == 1,
            "optim.mini_batches = 1 and optim.epochs = 1",
            "the weights would move while they still draw",
        ),
        (
            portion_prompts(config) < config.rollout.prompts_per_step,
            "optim.micro_batch of which some are whole before all groups of the step are there",
            "there is nothing else to train on while the rest is drawn",
        ),
        (
            not algorithm.has_critic,
            'algorithm.advantage.estimator other than "gae"',
            "the mean of its loss has a denominator of its own",
        ),
        (
            not algorithm.loss.positive_lm_coef,
            "algorithm.loss.positive_lm_coef = 0",
            "its mean has a denominator of its own",
        ),
        (
            advantage.scale in ("group", "none")
            and (advantage.normalise, advantage.difficulty) == ("none", "none")
            and not advantage.max_sigma,
            'algorithm.advantage.scale = "group" or "none"; no normalise, difficulty, max_sigma',
            "they are of the whole batch",
        ),
        (
            algorithm.dense.mix == "add" and not algorithm.dense.decay_to,
            'algorithm.dense.mix = "add" and decay_to = 0',
            "steps that are scaled beside their outcomes have not been tried with it",
        ),
        (
            algorithm.filter.prof == "none",
            'algorithm.filter.prof = "none"',
            "it looks for judged steps in the whole batch",
        ),
    )
