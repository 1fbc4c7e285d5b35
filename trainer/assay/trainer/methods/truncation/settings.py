"""Settings of truncated rollouts (T-PPO, arXiv 2506.15050), and what they go with.

A slot draws at most `window` tokens in a step; a response that needs more goes on in the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.needs import Need, first_unmet

if TYPE_CHECKING:
    from assay.trainer.settings import Config


@dataclass(frozen=True, slots=True)
class TruncationConfig:
    """Responses that are drawn over several steps (T-PPO)."""

    __pydantic_config__ = STRICT

    window: Annotated[int, Field(ge=0)] = 0
    """Most tokens that a response is given in one step; 0 draws responses whole."""
    min_finished: Annotated[int, Field(ge=1)] = 1
    """The critic sits out a step in which fewer responses were finished and judged."""


def check(config: Config) -> str:
    """What truncation does not go with here, and what to do; empty where all is well."""
    algorithm, loss = config.algorithm, config.algorithm.loss
    if not algorithm.truncation.window:
        return ""
    kl_in_reward = bool(loss.kl_coef) and loss.kl_place == "reward"
    needs: tuple[Need, ...] = (
        (
            algorithm.has_critic,
            'algorithm.advantage.estimator = "gae"',
            "samples of a prompt end in different steps, and only a critic values what has not",
        ),
        (
            not algorithm.dynamic_sampling.enabled,
            "algorithm.dynamic_sampling.enabled = false",
            "which prompts to keep is known when all of their samples are judged",
        ),
        (
            algorithm.critic.pretrain_steps > 0,
            "algorithm.critic.pretrain_steps above 0",
            "an unfinished response is worth what the critic says; for a saved critic 1 will do",
        ),
        (
            algorithm.advantage.gamma == 1,
            "algorithm.advantage.gamma = 1",
            "a discount would punish the last token of every window",
        ),
        (
            not kl_in_reward,
            'algorithm.loss.kl_place = "loss", or kl_coef = 0',
            "rewards are given when a response ends",
        ),
        (
            loss.ratio == "token",
            'algorithm.loss.ratio = "token"',
            "the ratio of a response needs the whole response",
        ),
        (
            not config.rollout.fire.enabled,
            "rollout.fire.enabled = false",
            "a window would begin with a first token that is none",
        ),
        (
            config.algorithm.filter.prof == "none" and not config.algorithm.filter.min_group_std,
            "algorithm.filter as it is by default",
            "it compares the samples of a prompt, which end in different steps",
        ),
        (
            not algorithm.replay.groups,
            "algorithm.replay.groups = 0",
            "it keeps whole groups, and there are none",
        ),
        (
            config.data.selection.name == "uniform" and not config.data.selection.hints.enabled,
            'data.selection.name = "uniform", without hints',
            "a selector learns from whole groups, and there are none",
        ),
        (
            algorithm.pairwise.against != "group",
            'algorithm.pairwise.against other than "group"',
            "samples of a prompt end in different steps",
        ),
        (
            config.rollout.backend != "vllm",
            'rollout.backend = "hf" or "paged"',
            "vLLM, as TRL asks it, gives all prompts one limit",
        ),
    )
    return first_unmet("algorithm.truncation.window above 0", needs)
