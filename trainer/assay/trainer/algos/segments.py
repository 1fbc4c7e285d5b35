"""Advantages of segments of a response: SPO-chain (arXiv 2505.23564).

A response is cut before tokens that the policy was unsure of. The value of the state at each cut is
estimated by continuing from there; every token of a segment has the advantage V(end) - V(start).

Written after the authors' repository (AIFrameResearch/SPO, the chain's episode generator):

1. Of the tokens with a probability below the threshold (0.9) every fifth, the first included, is a
   cut, so that all segments but the last hold equally many of them.
2. Behind the last token stands the response's own reward, with no continuation.
3. Tokens in front of the first cut have the advantage 0.

SPO-tree, after the same repository (its hybrid inference strategy): responses of a prompt grow in a
tree of segments of a fixed length, 6-6-6 in the authors' runs. A leaf is worth its reward, a state
the mean of its children; a segment has the advantage V(child) - V(parent).

1. The authors keep 32 segments of a prompt, and those left over for up to 8 iterations; here all
   segments train, in their own step. Advantages of 0 train nothing in either.
2. Children without a judged leaf are in no mean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def cut_points(probs_T: Sequence[float], *, threshold: float = 0.9, every: int = 5) -> list[int]:
    """Where a response is cut: SPO-chain (arXiv 2505.23564).

    `every` unsure tokens, those of a probability below `threshold`, make a segment.

    Returns:
        Places of the first tokens of segments, ascending; empty where the policy was sure of all.
    """
    unsure = [place for place, prob in enumerate(probs_T) if prob < threshold]
    return unsure[::every]


def segment_advantages(
    length: int, cuts: Sequence[int], values: Sequence[float], end: float
) -> list[float]:
    """V(end) - V(start) of each token's segment: SPO (arXiv 2505.23564).

    Where all values are known, the segments' advantages add up to end - values[0]. `cuts`, where
    segments begin, ascend below `length`; `values` are of the states there, NaN where unknown;
    `end` is the response's reward, NaN for a fault.

    Returns:
        T advantages; 0 in front of the first cut, NaN where an end of the segment has no value.
    """
    advantages_T = [0.0] * length
    bounds = [*cuts, length]
    behind = [*values[1:], end] if values else []
    for start, stop, before, after in zip(cuts, bounds[1:], values, behind, strict=True):
        advantages_T[start:stop] = [after - before] * (stop - start)
    return advantages_T


def value_of(rewards: Sequence[float]) -> float:
    """A state's Monte-Carlo value (arXiv 2505.23564): the mean reward of its judged continuations.

    NaN without any.
    """
    return math.fsum(rewards) / len(rewards) if rewards else math.nan


def tree_values(leaves: Sequence[float], branches: Sequence[int]) -> list[list[float]]:
    """Values of a tree's states, level by level from the root: SPO-tree (arXiv 2505.23564).

    `leaves` are rewards in order, NaN for a fault, as many as the product of `branches`, of which
    the first says how many children the root has. NaN is a state without a judged leaf.
    """
    levels = [list(leaves)]
    for count in reversed(branches):
        below = levels[0]
        families = [below[n : n + count] for n in range(0, len(below), count)]
        levels.insert(0, [value_of([v for v in one if not math.isnan(v)]) for one in families])
    return levels


def tree_advantages(values: Sequence[Sequence[float]]) -> list[list[float]]:
    """V(child) - V(parent) of each segment, level by level: SPO-tree (arXiv 2505.23564).

    `values` are those of `tree_values`. Where all are known, those of a root's or a state's
    children sum to 0, and those on the way to a leaf to its reward less V(root).
    """
    return [
        [child - above[n * len(above) // len(below)] for n, child in enumerate(below)]
        for above, below in itertools.pairwise(values)
    ]
