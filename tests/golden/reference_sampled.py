"""The reference's functions of methods that change what is sampled; see reference.py."""

from __future__ import annotations

import itertools
import math

from golden.reference import Matrix, mean


def spo_tree_advantages(rewards: list[float | None], branches: list[int]) -> Matrix:
    """SPO-tree (arXiv 2505.23564): of each leaf, its segments' advantages; 0 where unknown."""

    def grow(first: int, size: int, depth: int) -> tuple[float | None, list[list[float | None]]]:
        """The value of the state above these leaves, and the values on the way to each."""
        if depth == len(branches):
            return rewards[first], [[rewards[first]]]
        part = size // branches[depth]
        below = [grow(first + n * part, part, depth + 1) for n in range(branches[depth])]
        known = [value for value, _ in below if value is not None]
        own = mean(known) if known else None
        return own, [[own, *way] for _, ways in below for way in ways]

    _, ways = grow(0, len(rewards), 0)
    return [
        [
            0.0 if before is None or after is None else after - before
            for before, after in itertools.pairwise(way)
        ]
        for way in ways
    ]


def rest_exponential_weights(count: int, alpha: float) -> list[float]:
    """ReST-RL (arXiv 2508.19576): a geometric series that sums to 1."""
    return [(1 - alpha) * alpha**place / (1 - alpha**count) for place in range(count)]


def rest_uct(
    value: float, visits: int, parent_visits: int, exploration: float, eps: float
) -> float:
    """ReST-RL's code (arXiv 2508.19576)."""
    return value + exploration * ((1 + math.log(parent_visits)) / (eps + visits)) ** 0.5
