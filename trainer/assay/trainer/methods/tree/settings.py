"""Settings of trees of segments (SPO, arXiv 2505.23564), their parts and words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.settings.kinds import Positive, Strict
from assay.trainer.settings.method import Estimator, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, to
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_KEY = "method.advantage.estimator"
_SPO = "SPO, arXiv 2505.23564, and the authors' code"


@dataclass(frozen=True, slots=True)
class TreeConfig(Strict):
    """The tree that a prompt's responses grow in (SPO-tree); the numbers are the authors'.

    Read where `method.advantage.estimator = "tree"`.
    """

    branches: Annotated[tuple[Positive, ...], Field(min_length=1), only(_KEY, "tree")] = (6, 6, 6)
    """How many segments follow the prompt, one of its segments, one of theirs; the product is
    `rollout.group_size`."""
    segment_tokens: Annotated[Positive, only(_KEY, "tree")] = 30
    """Tokens of a segment; those of the last level end with the response."""
    mask_sure: Annotated[bool, only(_KEY, "tree")] = True
    """Only tokens drawn with a probability below `threshold` are in the loss."""
    threshold: Annotated[float, Field(gt=0, le=1), only(_KEY, "tree")] = 0.9


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    chosen, tree = config.method.advantage, config.method.tree
    if chosen.estimator != "tree":
        return ""
    if (chosen.scale, chosen.difficulty, chosen.negative) != ("none", "none", "whole"):
        return (
            'method.advantage.estimator = "tree" needs method.advantage.scale = "none", difficulty '
            '= "none" and negative = "whole": a difference of values is not compared in a group'
        )
    leaves = math.prod(tree.branches)
    if leaves != config.rollout.group_size:
        return (
            f"method.tree.branches = {list(tree.branches)} has {leaves} leaves, which are the "
            f"samples of a prompt: set rollout.group_size = {leaves}, not "
            f"{config.rollout.group_size}"
        )
    return ""


def lines(config: Config) -> list[str]:
    """What a segment is worth."""
    tree = config.method.tree
    shape = " x ".join(map(str, tree.branches))
    unsure = f"tokens with a probability below {tree.threshold:g}"
    lines = [
        "A_t = V(end of t's segment) - V(its start)",
        f"a prompt's responses grow in a tree of {shape} segments of {tree.segment_tokens} tokens",
        "V: R at a leaf, the mean of its children elsewhere; faults are in no V",
        "a segment that several responses share is in the loss once",
    ]
    return [*lines, f"only {unsure} are in the loss"] if tree.mask_sure else lines


ESTIMATOR = Estimator(
    name="tree",
    credit="tokens",
    function="assay.trainer.methods.tree.method:tree_advantages",
    lines=lines,
    part=Part(
        "tree-advantages",
        "advantage",
        "A prompt's responses grow in a tree, and a segment's advantage is the value behind it "
        "less that before it, each the mean of its children.",
        _SPO,
        lambda c: c.method.advantage.estimator == "tree",
        to(_KEY, "group"),
        code=("algos.segments.tree_values", "algos.segments.tree_advantages"),
        needs={
            "fresh": "states are valued by the policy that came to them",
            "one-turn": "it values states of one text",
            "groups": "a tree's leaves are the samples of a prompt",
            "own-tokens": "a state is worth what the policy makes of it by itself",
            "collector": "trees grow where single responses are drawn",
        },
        takes={
            "critic": "the tree values states",
            "group-baseline": "the tree values states",
        },
    ),
)

PARTS: tuple[Part, ...] = (
    Part(
        "tree-probability-mask", "advantage",
        "Of a tree only tokens that the policy was not sure of are in the loss.",
        _SPO, lambda c: c.method.advantage.estimator == "tree" and c.method.tree.mask_sure,
        to("method.tree.mask_sure", False), code=("methods.tree.method.tree_tokens",),
    ),
)  # fmt: skip

METRICS: tuple[Metric, ...] = metrics("sampling",
    ("tree_calls", "requests",
     "Segments drawn, each by a request of its own, with `estimator = \"tree\"`."),
    ("tree_tokens", "tokens",
     "Tokens drawn for them; `generated_tokens` counts a shared one in each response."),
    ("tree_repeated", "share",
     "Responses that repeat another, since a segment above the last level ended them."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="tree",
    settings=TreeConfig,
    is_on=only(_KEY, "tree"),
    rank=135,
    hooks="assay.trainer.methods.tree.method:Tree",
    parts=PARTS,
    metrics=METRICS,
    check=check,
    compares=_KEY,
)
