"""A step beside the oracle's: a colour and a sentence. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Vector = Sequence[float]
GREEN, YELLOW, RED, GREY = "green", "yellow", "red", "grey"
_SAME = 1e-4
_PARALLEL = 1e-6
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class StepDifference:
    """Two steps beside each other.

    Attributes:
        cosine: of the angle between them; 1 where both are zero, 0 where one is.
        largest: the largest difference of a coordinate, relative to the largest of the oracle.
        length: of the step, relative to the oracle's; infinite where that is zero.
    """

    cosine: float
    largest: float
    length: float

    @property
    def same(self) -> bool:
        """Both are one step, up to rounding."""
        return self.largest < _SAME

    @property
    def parallel(self) -> bool:
        """Both go the same way."""
        return self.cosine > 1 - _PARALLEL


def differ(step: Vector, oracle: Vector) -> StepDifference:
    """How far a step is from the oracle's.

    Raises:
        ValueError: they have different lengths.
    """
    dot = math.fsum(a * b for a, b in zip(step, oracle, strict=True))
    own, other = (math.sqrt(math.fsum(a * a for a in one)) for one in (step, oracle))
    most = max(map(abs, oracle), default=0.0)
    gap = max((abs(a - b) for a, b in zip(step, oracle, strict=True)), default=0.0)
    if own < _TINY and other < _TINY:
        return StepDifference(1.0, 0.0, 1.0)
    if own < _TINY or other < _TINY:
        return StepDifference(
            0.0, gap / most if most else math.inf, own / other if other else math.inf
        )
    return StepDifference(dot / (own * other), gap / most, own / other)


@dataclass(frozen=True, slots=True)
class Oracles:
    """Steps that the trainer takes on a server without a script.

    Attributes:
        never: without the rows that were not judged: the oracle.
        lost: without the groups of those rows.
        zero: with the reward 0 for those rows.
        baseline: the same, without what those rows move themselves; None where that is not told
            apart.
    """

    never: Vector
    lost: Vector
    zero: Vector
    baseline: Vector | None = None


@dataclass(frozen=True, slots=True)
class LabCell:
    """What a trainer does of a script.

    Attributes:
        colour: green: the step is the oracle's. yellow: data is lost, and nothing wrong is learned.
            red: another step is taken. grey: not run.
        says: in a few words.
        difference: from the oracle; None where no step was taken.
        unjudged: the rows without a judgement.
    """

    colour: str
    says: str
    difference: StepDifference | None = None
    unjudged: tuple[str, ...] = ()


def judge_step(step: Vector, oracles: Oracles, unjudged: tuple[str, ...]) -> LabCell:
    """The cell of a step that was taken."""
    if not all(map(math.isfinite, step)):
        return LabCell(RED, "NaN reaches the step", None, unjudged)
    found = differ(step, oracles.never)
    if found.same:
        says = "as if the rows never were" if unjudged else "all rows train"
        return LabCell(GREEN, says, found, unjudged)
    colour, says = _less(step, found, oracles) or (RED, _wrong(step, found, oracles))
    return LabCell(colour, says, found, unjudged)


def _less(step: Vector, found: StepDifference, oracles: Oracles) -> tuple[str, str] | None:
    """Data that is lost, where that is all that there is."""
    if not any(step):
        return YELLOW, "the step is empty"
    if found.parallel:
        return YELLOW, f"same direction, {found.length:.2f} of the step"
    lost = differ(step, oracles.lost)
    if lost.same:
        return YELLOW, "the group is lost"
    if lost.parallel:
        return YELLOW, f"the group is lost, {lost.length:.2f} of the step"
    return None


def _wrong(step: Vector, found: StepDifference, oracles: Oracles) -> str:
    """What another step is made of."""
    if differ(step, oracles.zero).parallel:
        return "a fault trains as the reward 0"
    if oracles.baseline is not None and differ(step, oracles.baseline).parallel:
        return "a fault counts as 0 in its group's baseline"
    return f"another step: cosine {found.cosine:.3f}"
