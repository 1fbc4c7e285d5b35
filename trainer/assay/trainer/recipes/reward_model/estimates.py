"""Figures of an evaluation, with their 95 % intervals. Pure.

Rows of one prompt go together: their errors are not independent. So intervals come from drawing
whole prompts anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(
    clusters: Sequence[Sequence[T]],
    figure: Callable[[Sequence[T]], float | None],
    *,
    rounds: int = 500,
    seed: int = 0,
) -> Estimate | None:
    """A figure over all elements, its interval by drawing whole clusters anew.

    Args:
        clusters: elements that go together, such as the steps of one problem.
        figure: of elements; None where it has no value.
        rounds: how often to draw.
        seed: of the draws.

    Returns:
        The figure with the 2.5 % and 97.5 % quantiles of the draws; None where it has no value.
    """
    value = figure([element for cluster in clusters for element in cluster])
    if value is None:
        return None
    dice = random.Random(seed)  # noqa: S311  # no secret
    drawn = []
    for _ in range(rounds):
        chosen = dice.choices(clusters, k=len(clusters))
        again = figure([element for cluster in chosen for element in cluster])
        if again is not None:
            drawn.append(again)
    drawn.sort()
    if not drawn:
        return Estimate(value, value, value)
    last = len(drawn) - 1
    return Estimate(value, drawn[round(0.025 * last)], drawn[round(0.975 * last)])
