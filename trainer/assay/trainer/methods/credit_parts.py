"""The parts that say what a segment, and what a task and its difficulty, make of an advantage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings import Config

_SPO = "SPO, arXiv 2505.23564, and the authors' code"
_TMN = "GoLongRL, arXiv 2605.19577, and the authors' code"


def _has_segments(config: Config) -> bool:
    return config.algorithm.advantage.estimator == "segments"


CREDIT_PARTS: tuple[Part, ...] = (
    Part(
        "segment-advantages",
        "advantage",
        "A segment's advantage is the value behind it less that before it, each the mean reward of "
        "continuations from there.",
        _SPO,
        _has_segments,
        to("algorithm.advantage.estimator", "group"),
    ),
    Part(
        "probability-mask",
        "advantage",
        "Of a response in segments only tokens that the policy was not sure of are in the loss.",
        _SPO,
        lambda c: _has_segments(c) and c.algorithm.segments.mask_sure,
        to("algorithm.segments.mask_sure", False),
    ),
    Part(
        "task-scaling",
        "advantage",
        "The centred reward is divided by the deviation within the prompts of its task.",
        _TMN,
        lambda c: (
            c.algorithm.advantage.estimator in ("group", "rloo", "symmetric")
            and c.algorithm.advantage.scale == "task"
        ),
        to("algorithm.advantage.scale", "group"),
    ),
    Part(
        "difficulty-weight",
        "advantage",
        "Right responses to hard prompts and wrong ones to easy prompts count for more, by a pass "
        "rate smoothed with that of the task.",
        f"{_TMN}; the linear form is a derivation",
        lambda c: c.algorithm.advantage.difficulty != "none",
        to("algorithm.advantage.difficulty", "none"),
    ),
)
