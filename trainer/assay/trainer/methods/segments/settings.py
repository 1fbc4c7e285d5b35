"""Settings of advantages of segments (SPO, arXiv 2505.23564), and what they go with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.needs import Need, first_unmet

if TYPE_CHECKING:
    from assay.trainer.settings import Config


@dataclass(frozen=True, slots=True)
class SegmentsConfig:
    """Where responses are cut, and how the states there are valued (SPO-chain).

    The numbers are those of the authors' repository.
    """

    __pydantic_config__ = STRICT

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The policy was not sure of a token that it drew with a probability below this."""
    unsure_per_segment: Annotated[int, Field(ge=1)] = 5
    """Tokens of that kind in a segment: it begins at one, and ends before the one that begins the
    next."""
    continuations: Annotated[int, Field(ge=1)] = 9
    """Responses that are written to the end from each cut, and judged."""
    mask_sure: bool = True
    """Only tokens that the policy was not sure of are in the loss."""


def segments_problem(config: Config) -> str:
    """What advantages of segments do not go with, and what to do; empty where all is well."""
    algorithm, rollout = config.algorithm, config.rollout
    if algorithm.advantage.estimator != "segments":
        return ""
    needs: tuple[Need, ...] = (
        (
            algorithm.advantage.scale == "none" and algorithm.advantage.difficulty == "none",
            'algorithm.advantage.scale = "none" and difficulty = "none"',
            "a difference of values is not compared within a group",
        ),
        (
            not algorithm.changes_rewards and not algorithm.dense.weight,
            "no penalties, cosine, dense rewards or forms of them",
            "continuations earn what the judgement says",
        ),
        (
            algorithm.pairwise.against == "none",
            'algorithm.pairwise.against = "none"',
            "a continuation is judged by itself",
        ),
        (
            not algorithm.truncation.window and not algorithm.turns.on,
            'algorithm.truncation.window = 0 and algorithm.turns.mode = "off"',
            "it values responses of one turn that are whole",
        ),
        (
            not algorithm.replay.groups
            and not algorithm.recomposition.groups
            and not algorithm.dynamic_sampling.keep_surplus,
            "no replay, recomposition or kept surplus",
            "states are valued by the policy that came to them",
        ),
        (
            algorithm.filter.prof == "none" and not algorithm.filter.min_group_std,
            "algorithm.filter.prof and min_group_std as they are by default",
            "they go by the group",
        ),
        (
            not rollout.fire.enabled,
            "rollout.fire.enabled = false",
            "a continuation would begin with a first token that is none",
        ),
        (
            rollout.backend != "vllm",
            'rollout.backend = "hf" or "paged"',
            "vLLM, as TRL asks it, gives all prompts one limit",
        ),
    )
    return first_unmet('algorithm.advantage.estimator = "segments"', needs)
