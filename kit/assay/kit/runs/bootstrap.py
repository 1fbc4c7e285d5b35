"""Intervals of figures that are no simple proportion, by drawing clusters anew. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
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
) -> Figure | None:
    """A figure with its 2.5 % and 97.5 % quantiles from bootstrapping clusters, if any.

    A cluster's elements, such as the steps of one problem, have dependent errors.
    """

    def whole(strata: Sequence[Sequence[Sequence[T]]]) -> float | None:
        return figure([element for cluster in strata[0] for element in cluster])

    return stratified([clusters], whole, rounds=rounds, seed=seed)


def stratified(
    strata: Sequence[Sequence[T]],
    figure: Callable[[Sequence[Sequence[T]]], float | None],
    *,
    rounds: int = 500,
    seed: int = 0,
) -> Figure | None:
    """As `bootstrap`, of a figure over several strata, each drawn from itself, if any."""
    value = figure(strata)
    if value is None:
        return None
    dice = random.Random(seed)  # noqa: S311  # no secret
    drawn = []
    for _ in range(rounds):
        again = figure([dice.choices(rows, k=len(rows)) if rows else rows for rows in strata])
        if again is not None:
            drawn.append(again)
    drawn.sort()
    if not drawn:
        return Figure(value, value, value)
    last = len(drawn) - 1
    return Figure(value, drawn[round(0.025 * last)], drawn[round(0.975 * last)])
