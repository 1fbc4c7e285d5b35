"""Advantages of segments of a response: SPO-chain (arXiv 2505.23564).

A response is cut before tokens that the policy was unsure of. The value of the state at each cut is
estimated by continuing from there; every token of a segment has the advantage V(end) - V(start).

Written after the authors' repository (AIFrameResearch/SPO, the chain's episode generator):

1. Of the tokens with a probability below the threshold (0.9) every fifth, the first included, is a
   cut, so that all segments but the last hold equally many of them.
2. Behind the last token stands the response's own reward, with no continuation.
3. Tokens in front of the first cut have the advantage 0.

The tree variant (branching 6-6-6 with segments of a fixed length) is not built.
"""

from __future__ import annotations

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
