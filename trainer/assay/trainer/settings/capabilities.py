"""Which parts go together. Pure.

A run has every capability until an active part or its engine takes it away; a part may need some.
Which parts exclude one another follows from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part
from assay.trainer.settings.registry import engine_of, parts_on

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

CAPABILITIES: Mapping[str, str] = {
    "groups": "all samples of a prompt in one step",
    "collector": "the collector of single responses, which draws on and keeps groups",
    "outcomes": "what came of a step before the next prompts are chosen",
    "fresh": "responses of the very policy that learns from them",
    "one-turn": "responses of one turn",
    "whole-groups": "groups that no other part trains in pieces",
    "pausing": "responses that can wait for a later step",
    "verdicts": "rewards that say right or wrong",
    "judged-rewards": "rewards as they were judged",
    "outcome-reward": "one reward for a whole response",
    "spans": "judgements of steps",
    "steady-spans": "judgements of steps in every batch",
    "whole-batch": "all of a batch before any of it trains",
    "token-ratio": "a ratio for each token",
    "drawing": "responses that the run draws",
    "first-tokens": "first tokens that the policy drew",
    "own-tokens": "responses whose tokens are all the policy's",
    "critic": "a critic",
    "group-baseline": "advantages of a group's rewards",
    "own-zero": "rewards that no baseline is taken from",
    "beside": "responses that can be drawn beside the training",
}
"""What a part may need of a run, in words."""


def clash(config: Config) -> str:
    """The first need that another part takes away, as a sentence; empty where all are met."""
    on = parts_on(config)
    engine = engine_of(config.rollout)
    takers = [(_told(part, config), part.takes) for part in on]
    takers.append((f'rollout.backend = "{engine.name}"', engine.takes))
    for part in on:
        for capability, why in part.needs.items():
            for taker, takes in takers:
                if capability in takes:
                    return (
                        f"{_told(part, config)} needs {CAPABILITIES[capability]}: {why}; with "
                        f"{taker}, {takes[capability]}. Leave one of them out"
                    )
    return ""


def _told(part: Part, config: Config) -> str:
    key = next(iter(part.off(config)), "") if part.off else ""
    return f"{part.name} ({key})" if key else part.name
