"""Counts over responses that were scored by steps. Pure.

A figure over steps has an interval by bootstrap over responses, whose steps depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.cli.evaluation.measures import harmonic, mean
from assay.kit.runs.bootstrap import bootstrap
from assay.kit.runs.stats import auc, auc_interval, wilson

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class StepCells:
    """The steps of one response by label and verdict.

    Right ones are `kept` or `rejected`, wrong ones `missed` or `found`; `first_right`: judge and
    labels name the same first error, or none.
    """

    kept: int
    rejected: int
    missed: int
    found: int
    has_error: bool
    first_right: bool

    @property
    def steps(self) -> int:
        """Steps with a label and a verdict."""
        return self.kept + self.rejected + self.missed + self.found


def cells_of(line: Mapping[str, Any]) -> StepCells:
    """The cells of a line of output. Neutral steps, and those without a label, are left out."""
    labels, scores, threshold = line["labels"], line["scores"], line["error_threshold"]
    cells = {(right, called): 0 for right in (True, False) for called in (True, False)}
    for label, score in zip(labels, scores, strict=True):
        if label and score is not None:
            cells[label > 0, score >= threshold] += 1
    wrong = next((i for i, label in enumerate(labels) if label is not None and label < 0), None)
    return StepCells(
        cells[True, True],
        cells[True, False],
        cells[False, True],
        cells[False, False],
        wrong is not None,
        line["first_error"] == wrong,
    )


def process_f1(rows: Sequence[StepCells]) -> float | None:
    """The F1 of ProcessBench (arXiv 2412.06559).

    The harmonic mean of the shares of right first errors among responses with an error, and among
    those without; 0 where either is, None without both kinds.
    """
    return harmonic(_first_right(rows, True), _first_right(rows, False))


def process_interval(rows: Sequence[StepCells]) -> list[float] | None:
    """95 % interval of `process_f1`, by bootstrap over responses.

    Where no draw differs, as where a share is 0: from the ends of both shares' Wilson intervals.
    """
    found = bootstrap([[row] for row in rows], process_f1, rounds=_ROUNDS)
    if found is None:
        return None
    if found.low < found.high:
        return [found.low, found.high]
    kinds = [[row.first_right for row in rows if row.has_error == kind] for kind in (True, False)]
    ends = zip(*(wilson(sum(some), len(some)) for some in kinds), strict=True)
    return [harmonic(one, other) or 0.0 for one, other in ends]


def _first_right(rows: Sequence[StepCells], has_error: bool) -> float | None:
    some = [row.first_right for row in rows if row.has_error == has_error]
    return mean(sum(some), len(some))


def step_accuracy(rows: Sequence[StepCells]) -> float | None:
    """The share of steps whose verdict is their label."""
    return mean(sum(row.kept + row.found for row in rows), sum(row.steps for row in rows))


def error_f1(rows: Sequence[StepCells]) -> float | None:
    """F1 of finding the wrong steps; None where none is wrong and none is called so."""
    found = sum(row.found for row in rows)
    other = sum(row.rejected + row.missed for row in rows)
    return mean(2 * found, 2 * found + other)


def step_measures(
    rows: Sequence[StepCells], scored: Sequence[Sequence[tuple[float, bool]]]
) -> dict[str, Any]:
    """The measures of responses; `scored` are the scores of each one's steps, and their labels."""
    found = sum(row.found for row in rows)
    called = found + sum(row.rejected for row in rows)
    errors = found + sum(row.missed for row in rows)
    first = sum(row.first_right for row in rows)
    area = auc_interval(scored)
    return {
        "steps": sum(row.steps for row in rows),
        **_with_interval("step_accuracy", rows, step_accuracy),
        "step_auc": auc([one for steps in scored for one in steps]),
        "step_auc_interval": area and list(area),
        "error_precision": mean(found, called),
        "error_recall": mean(found, errors),
        **_with_interval("error_f1", rows, error_f1),
        "first_error_accuracy": mean(first, len(rows)),
        "first_error_interval": list(wilson(first, len(rows))) if rows else None,
        "first_error_of_wrong": _first_right(rows, True),
        "first_error_of_right": _first_right(rows, False),
        "process_f1": process_f1(rows),
        "process_f1_interval": process_interval(rows),
    }


def _with_interval(
    name: str,
    rows: Sequence[StepCells],
    figure: Callable[[Sequence[StepCells]], float | None],
) -> dict[str, Any]:
    found = bootstrap([[row] for row in rows], figure, rounds=_ROUNDS)
    return {
        name: found and found.value,
        f"{name}_interval": found and [found.low, found.high],
    }
