"""Scores of contamination in plain Python: the second implementation behind own.json."""

from __future__ import annotations

import math
from functools import lru_cache

Vector = list[float]


def self_critique_similarity(first: Vector, second: Vector) -> float:
    longest = max(len(first), len(second))
    a, b = ([*one, *[0.0] * (longest - len(one))] for one in (first, second))
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return dot / norms * min(len(first), len(second)) / longest


def min_k_score(logprobs: Vector, share: float) -> float:
    count = max(1, math.floor(len(logprobs) * share))
    return sum(sorted(logprobs)[:count]) / count


def min_k_plus_score(distributions: list[Vector], tokens: list[int], share: float) -> float:
    scores = []
    for chances, token in zip(distributions, tokens, strict=True):
        mean = sum(p * math.log(p) for p in chances)
        spread = sum(p * (math.log(p) - mean) ** 2 for p in chances)
        scores.append((math.log(chances[token]) - mean) / math.sqrt(max(spread, 1e-6)))
    return min_k_score(scores, share)


def cdd_peak(greedy: list[int], samples: list[list[int]], alpha: float) -> float:
    lengths = [len(greedy), *map(len, samples)]
    near = alpha * sum(lengths) / len(lengths)
    return sum(_edits(tuple(greedy), tuple(one)) <= near for one in samples) / len(samples)


@lru_cache
def _edits(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    if not one or not other:
        return len(one) + len(other)
    return min(
        _edits(one[1:], other) + 1,
        _edits(one, other[1:]) + 1,
        _edits(one[1:], other[1:]) + (one[0] != other[0]),
    )
