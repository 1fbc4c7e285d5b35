"""Advantages of segments (SPO, arXiv 2505.23564)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Estimator
from assay.trainer.settings.part import Part, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def lines(config: Config) -> list[str]:
    """What a segment is worth."""
    chosen = config.method.segments
    unsure = f"tokens with a probability below {chosen.threshold:g}"
    lines = [
        "A_t = V(end of t's segment) - V(its start)",
        f"a segment holds {chosen.unsure_per_segment} {unsure}, and begins at the first",
        f"V: mean reward of {count(chosen.continuations, 'continuation')}; at the end R",
        "faults are in no V; a segment with an end whose V is not known leaves the loss",
    ]
    return [*lines, f"only {unsure} are in the loss"] if chosen.mask_sure else lines


SEGMENTS = Estimator(
    name="segments",
    credit="tokens",
    function="assay.trainer.methods.segments.method:segment_advantages",
    lines=lines,
    part=Part(
        "segment-advantages",
        "advantage",
        "A segment's advantage is the value behind it less that before it, each the mean reward of "
        "continuations from there.",
        "SPO, arXiv 2505.23564, and the authors' code",
        lambda c: c.method.advantage.estimator == "segments",
        to("method.advantage.estimator", "group"),
        code=(
            "algos.segments.segment_advantages",
            "algos.segments.cut_points",
        ),
        needs={
            "fresh": "states are valued by the policy that came to them",
            "one-turn": "it values states of one text",
            "judged-rewards": "continuations earn the reward of the judgement",
            "verdicts": "a continuation is judged by itself",
            "groups": "responses are continued when they have ended",
            "whole-batch": "responses are continued when all of the step are there",
            "own-tokens": "a state is worth what the policy makes of it by itself",
            "first-tokens": "a continuation would begin with a token that the policy did not draw",
        },
        takes={
            "critic": "continuations value states",
            "group-baseline": "continuations value states",
        },
    ),
)
