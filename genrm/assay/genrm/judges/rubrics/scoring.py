"""The arithmetic of a rubric: its score, what it could still come to, and what to ask next. Pure.

    score = sum(weight * score) / sum(weights above 0), over what counts, clipped to [0, 1]

That is HealthBench's (arXiv 2505.08775), with chances in place of met or not. One difference: it
clips the mean of all responses, we each, because each is a reward.

All of it in exact fractions, so neither the order of the criteria nor that of asking changes a bit.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from assay.clients.judging.rubrics import MissingCriterion

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class RubricTally:
    """What is known of a rubric's criteria.

    Attributes:
        weights: of every criterion, by its id.
        read: the scores so far, in [0, 1].
        unread: those that were asked and could not be read.
        missing: what an unread one means.
        least_read: with "leave-out", the least share of all weights that must be read.
    """

    weights: Mapping[str, float]
    read: Mapping[str, float]
    unread: frozenset[str] = frozenset()
    missing: MissingCriterion = "fault"
    least_read: float = 0.5

    @property
    def open(self) -> list[str]:
        """Not asked yet: the heaviest first, equal ones by their names."""
        ids = [one for one in self.weights if one not in self.read and one not in self.unread]
        return sorted(ids, key=lambda one: (-abs(self.weights[one]), one))

    @property
    def enough(self) -> bool:
        """Whether so much was read that the unread ones may be left out; stays true."""
        if not any(self.weights[one] > 0 for one in self.read):
            return False
        share = _sum(abs(self.weights[one]) for one in self.read)
        return share >= Fraction(self.least_read) * _sum(map(abs, self.weights.values()))

    def bounds(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest score that the rubric can still come to.

        An unread criterion that is not left out could have come to anything.
        """
        unknown = self.open
        if self.missing == "fault":
            unknown += self.unread
        gained = [Fraction(self.weights[one]) * Fraction(score) for one, score in self.read.items()]
        earned = sum(gained, ZERO)
        whole = _sum(self.weights[one] for one in self.read if self.weights[one] > 0)
        more = _sum(self.weights[one] for one in unknown if self.weights[one] > 0)
        less = _sum(self.weights[one] for one in unknown if self.weights[one] < 0)
        if not whole + more:
            return ZERO, ONE
        return _clip((earned + less) / (whole + more)), _clip((earned + more) / (whole + more))

    def settled(self, gate: float) -> bool:
        """Whether nothing that is open can change on which side of the gate the score is."""
        if self.missing == "leave-out" and not self.enough:
            return False
        least, greatest = self.bounds()
        return least >= Fraction(gate) or greatest < Fraction(gate)

    def next(self, gate: float | None) -> Sequence[str]:
        """What to ask next: all that is open, or as few as could settle the gate."""
        unasked = self.open
        if gate is None:
            return unasked
        if self.settled(gate):
            return ()

        def could(count: int) -> bool:
            """All of so many for the response, or all against it; more of them settle no less."""
            asked = unasked[:count]
            sides = (
                {one: float((self.weights[one] > 0) == good) for one in asked}
                for good in (True, False)
            )
            return any(
                replace(self, read={**self.read, **scores}).settled(gate) for scores in sides
            )

        counts = range(1, len(unasked))
        return unasked[: 1 + bisect.bisect_left(counts, True, key=could)]


def _sum(values: Iterable[float]) -> Fraction:
    return sum(map(Fraction, values), ZERO)


def _clip(value: Fraction) -> Fraction:
    return min(ONE, max(ZERO, value))
