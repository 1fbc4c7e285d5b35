"""Pairs predicted boxes with reference boxes, and scores the pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.reward_server.verifiers.assignment import assign
from assay.verifiers_extra.geometry.reading import LabelledBox
from assay.verifiers_extra.geometry.shapes import Box, giou, iou, is_box


@dataclass(frozen=True, slots=True)
class Matching:
    """Predictions assigned to references.

    Attributes:
        scores: of the pairs, in the references' order.
        n_predicted: how many boxes were predicted.
        n_expected: how many there are.
        worst: the score of a missing or superfluous box.
    """

    scores: tuple[float, ...]
    n_predicted: int
    n_expected: int
    worst: float

    @property
    def missing(self) -> int:
        """References without a prediction."""
        return self.n_expected - len(self.scores)

    @property
    def superfluous(self) -> int:
        """Predictions without a reference."""
        return self.n_predicted - len(self.scores)

    def mean(self, false_positive_weight: float) -> float:
        """The mean over pairs, missing and superfluous boxes; the latter count by weight.

        1 when nothing is expected and nothing predicted.
        """
        extra = false_positive_weight * self.superfluous
        total = len(self.scores) + self.missing + extra
        if not total:
            return 1.0 if not self.superfluous else max(0.0, self.worst)
        return (sum(self.scores) + self.worst * (self.missing + extra)) / total

    def hits(self, threshold: float) -> int:
        """Pairs that reach a threshold."""
        return sum(score >= threshold for score in self.scores)

    def f1(self, threshold: float) -> float:
        """2 hits / (predicted + expected); 1 when there are neither."""
        both = self.n_predicted + self.n_expected
        return 2 * self.hits(threshold) / both if both else 1.0


def match(
    predicted: Sequence[LabelledBox],
    expected: Sequence[LabelledBox],
    measure: str,
    *,
    use_labels: bool = False,
    threshold: float | None = None,
) -> Matching:
    """Assigns predictions to references so that the sum of the measure is greatest.

    Args:
        predicted: the response's; what is no box (see `is_box`) overlaps with nothing.
        expected: the reference's.
        measure: "iou", "giou" or "giou-scaled".
        use_labels: boxes of different labels do not overlap; labels are compared without case.
        threshold: first as many pairs as possible that reach it, then the greatest sum.
    """
    score, worst = _MEASURES[measure]
    table = [
        [_score(have, want, score, worst, use_labels=use_labels) for have in predicted]
        for want in expected
    ]
    # More than all sums of the measure together, so that a pair over the threshold comes first.
    bonus = 2.0 * (min(len(predicted), len(expected)) + 1)
    costs = [
        [-value - (bonus if threshold is not None and value >= threshold else 0.0) for value in row]
        for row in table
    ]
    pairs = assign(costs)
    scores = tuple(table[row][column] for row, column in pairs)
    return Matching(scores, len(predicted), len(expected), worst)


def giou_scaled(a: Box, b: Box) -> float:
    """GIoU brought from [-1, 1] to [0, 1]."""
    return (1.0 + giou(a, b)) / 2.0


_MEASURES: dict[str, tuple[Callable[[Box, Box], float], float]] = {
    "iou": (iou, 0.0),
    "giou": (giou, -1.0),
    "giou-scaled": (giou_scaled, 0.0),
}


def _score(
    have: LabelledBox,
    want: LabelledBox,
    score: Callable[[Box, Box], float],
    worst: float,
    *,
    use_labels: bool,
) -> float:
    if use_labels and have.label.strip().casefold() != want.label.strip().casefold():
        return worst
    return score(have.values, want.values) if is_box(have.values) else worst
