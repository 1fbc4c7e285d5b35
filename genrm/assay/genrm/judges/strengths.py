"""Strengths of responses from some of their comparisons, by Bradley and Terry's model. Pure.

A comparison is the chance w in [0, 1] that one response beats another, not a coin's side, so the
strengths t (log-odds) maximise the quasi-likelihood with a normal prior of mean 0:

    sum over comparisons of  w log s(t_i - t_j) + (1 - w) log s(t_j - t_i)  -  (PRIOR / 2) sum t_i^2

with s(x) = 1 / (1 + exp(-x)). The prior has a maximum exist where a response wins everything, and
holds apart what no comparison joins at a mean of 0. Source: Bradley and Terry (1952); Hunter (2004)
on when the maximum exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from assay.genrm.judges.numbers import on_grid, sigmoid

PRIOR = 0.03
"""Of the strengths: the inverse of their variance, so a standard deviation of 5.8 in log-odds."""
EXACT = 1e-10
ROUGH = 1e-3
"""How far the last sweep may move a strength: of scores, and of an order that is only for now."""
_SWEEPS = 1000
Pair = tuple[int, int]
"""Two responses by index, the lower one first."""


def strengths(
    count: int,
    wins: Mapping[Pair, float],
    begin: Sequence[float] | None = None,
    enough: float = EXACT,
) -> list[float]:
    """The strength of each of `count` responses; `wins` are the chances that the first one wins.

    One response at a time takes its Newton step, of at most 1. Such a step always ascends, for the
    curvature c of a sum of log s changes by no more than the factor exp(|step|) on the way: the
    gain is at least c (t^2 - exp(t) + t + 1) > 0 for a step 0 < t <= 1.
    """
    found = list(begin) if begin is not None else [0.0] * count
    sides: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    for (one, two), win in wins.items():
        sides[one].append((two, win))
        sides[two].append((one, 1.0 - win))
    for _ in range(_SWEEPS):
        furthest = 0.0
        for one, own in enumerate(sides):
            slope, curvature = -PRIOR * found[one], PRIOR
            for two, win in own:
                chance = sigmoid(found[one] - found[two])
                slope += win - chance
                curvature += chance * (1.0 - chance)
            step = max(-1.0, min(1.0, slope / curvature))
            found[one] += step
            furthest = max(furthest, abs(step))
        if furthest < enough:
            break
    return found


def shares(
    copies: Sequence[int], wins: Mapping[Pair, float], found: Sequence[float]
) -> list[float]:
    """The mean chance in [0, 1] to beat all others: as compared, else s(t_i - t_j).

    With every comparison made it is the round robin's score. `copies` is how many responses share
    each text; against its own copies a text has 0.5. The scores, each as often as its copies, sum
    to half the number of responses.
    """
    total = sum(copies)
    won: list[list[float]] = [[0.5 * (own - 1)] for own in copies]
    for one in range(len(copies)):
        for two in range(one + 1, len(copies)):
            win = wins.get((one, two))
            if win is None:
                win = on_grid(sigmoid(found[one] - found[two]))
            won[one].append(win * copies[two])
            won[two].append((1.0 - win) * copies[one])
    return [math.fsum(own) / (total - 1) for own in won]


def joined_up(count: int, pairs: Mapping[Pair, float]) -> bool:
    """Whether the comparisons join all responses, so that their strengths have one scale."""
    near: dict[int, list[int]] = {}
    for one, two in pairs:
        near.setdefault(one, []).append(two)
        near.setdefault(two, []).append(one)
    seen, todo = {0}, [0]
    while todo:
        for other in near.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return len(seen) == count
