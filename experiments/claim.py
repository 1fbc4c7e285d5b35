"""A claim of a paper, the contrast that would show it, and what the runs say of it. Pure.

The number of seeds follows from the effect that would count and from the deviation that pilots with
other seeds had; neither is chosen after the runs. Differences are paired by seed; intervals are
Student's, 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.trainer.recipes.ladder.stats import SeedMean, estimate

POWER = 0.8
"""The chance of an interval beyond zero where the effect is there."""

FIRST_SEED = 10
"""Seeds below are for pilots."""

Verdict = Literal["shown", "absent", "reversed", "undecided", "unfinished"]
VERDICTS: Mapping[Verdict, str] = {
    "shown": "the whole interval lies on the published side",
    "absent": "the whole interval lies below the effect that the set-up could have shown",
    "reversed": "the whole interval lies on the other side",
    "undecided": "the interval holds both nothing and the effect",
    "unfinished": "some of the seeds were not run",
}
Runs = Mapping[str, Mapping[int, Mapping[str, float | None]]]
"""Figures of runs, by arm and seed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, and by what it would be seen.

    Attributes:
        name: unique, as the command line has it.
        says: the claim, one sentence.
        source: paper, arXiv id, table or section.
        setup: what is run.
        why: why this set-up could show it.
        figure: of each run.
        ours: the arm that the claim favours.
        theirs: the arm that it is held against; empty where the figure is itself a difference.
        effect: the least difference, ours less theirs, that would count; below zero where less is
            better.
        deviation: of the differences over seeds, from pilots with other seeds.
        keeps: whether the claim is that nothing is lost; as much as the effect may be, with the
            effect's sign still that of the better side.
        guessed: whether the deviation is a guess, for want of pilots.
    """

    name: str
    says: str
    source: str
    setup: str
    why: str
    figure: str
    ours: str
    theirs: str
    effect: float
    deviation: float
    keeps: bool = False
    guessed: bool = False

    @property
    def seeds(self) -> int:
        """How many it takes, from the effect and the deviation."""
        return seeds_for(abs(self.effect), self.deviation)

    @property
    def arms(self) -> tuple[str, ...]:
        """Those that are run."""
        return (self.ours, self.theirs) if self.theirs else (self.ours,)

    def differences(self, runs: Runs) -> dict[int, float]:
        """Ours less theirs of each seed that both have a figure of."""
        ours = column(runs, self.ours, self.figure)
        if not self.theirs:
            return ours
        theirs = column(runs, self.theirs, self.figure)
        return {seed: value - theirs[seed] for seed, value in ours.items() if seed in theirs}

    def measured(self, runs: Runs) -> SeedMean | None:
        """The mean difference with its interval; None without runs."""
        return estimate(list(self.differences(runs).values()))

    def verdict(self, runs: Runs) -> Verdict:
        """What the runs say, by the interval alone."""
        found = self.measured(runs)
        if found is None or found.low is None or found.high is None or found.n < self.seeds:
            return "unfinished"
        low, high = sorted((self.in_effects(found.low), self.in_effects(found.high)))
        if low > 0:
            return "shown"
        if high < 0:
            return "reversed"
        return "absent" if high < 1 and not self.keeps else "undecided"

    def in_effects(self, difference: float) -> float:
        """A difference in units of the effect: 0 decides, and 1 is what the claim expects."""
        return difference / self.effect + self.keeps


def column(runs: Runs, arm: str, figure: str) -> dict[int, float]:
    """A figure of an arm, by seed; seeds without one are left out."""
    found = {seed: figures.get(figure) for seed, figures in runs.get(arm, {}).items()}
    return {seed: value for seed, value in sorted(found.items()) if value is not None}


def seeds_for(effect: float, deviation: float) -> int:
    """The fewest pairs whose two-sided t test at 5 % finds the effect with the chance `POWER`.

    By the noncentral t distribution (Johnson and Welch 1940); at least three.

    Raises:
        ValueError: the effect or the deviation is not above zero.
    """
    from scipy.stats import nct, t  # noqa: PLC0415

    if effect <= 0 or deviation <= 0:
        raise ValueError("an effect and a deviation above zero say how many seeds it takes")
    seeds = 3
    while True:
        beyond = t.ppf(0.975, seeds - 1)
        if nct.sf(beyond, seeds - 1, effect / deviation * math.sqrt(seeds)) >= POWER:
            return seeds
        seeds += 1
