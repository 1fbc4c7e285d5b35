"""Settings of truncated rollouts (T-PPO, arXiv 2506.15050), and what they go with.

A slot draws at most `window` tokens in a step; longer responses continue in the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.methods.truncation.parts import (
    COLUMNS,
    METRICS,
    PARTS,
    advantage_lines,
    critic_lines,
    sampling_lines,
)
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Lines, TrainingMethod

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class TruncationConfig(Strict):
    """Responses that are drawn over several steps (T-PPO)."""

    window: Annotated[int, Field(ge=0)] = 0
    """Most tokens of a response in one step, over its turns; 0 draws responses whole."""
    min_finished: Annotated[int, Field(ge=1)] = 1
    """The critic skips steps with fewer finished and judged responses."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    method = config.method
    if not method.truncation.window:
        return ""
    if method.has_critic and not method.critic.pretrain_steps:
        return (
            "method.truncation.window above 0 needs method.critic.pretrain_steps above 0: an "
            "unfinished response has the value of the critic; for a saved critic 1 will do"
        )
    if method.advantage.gamma != 1:
        return (
            "method.truncation.window above 0 needs method.advantage.gamma = 1: a discount would "
            "punish the last token of every window"
        )
    if method.loss.kl_most and method.loss.kl_place == "reward":
        return (
            'method.truncation.window above 0 needs method.loss.kl_place = "loss", or kl_coef = '
            "0: rewards are given when a response ends"
        )
    return ""


METHOD = TrainingMethod(
    name="truncation",
    settings=TruncationConfig,
    is_on=lambda c: c.method.truncation.window > 0,
    rank=80,
    hooks="assay.trainer.methods.truncation.method:Truncation",
    parts=PARTS,
    metrics=METRICS,
    columns=COLUMNS,
    lines=(
        Lines("Sampling", 60, sampling_lines),
        Lines("Advantage", 30, advantage_lines),
        Lines("Critic", 20, critic_lines),
    ),
    check=check,
)
