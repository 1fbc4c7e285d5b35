"""Counts over the lines of an evaluation, for one subset or for all. Pure.

A tie (0.5, or two equal scores) is half right. A fault is neither right nor wrong. Intervals are
Wilson's, at 95 %; they take rows as independent, which several pairs of one prompt are not quite.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from assay.cli.evaluation.rows import Kind
from assay.kit.runs.stats import auc, calibration, calibration_error, wilson

Line = Mapping[str, Any]


class LineTally:
    """The counts of every kind: rows, faults by reason, tokens, judges.

    Attributes:
        judged: lines without a fault.
        truncated: of those, lines whose candidate was cut to fit.
        unparsed_votes: votes that did not count.
        masses: the share of the model's probability that the verdicts held, where it is known.
        letter_gaps: how far verdicts moved with their letters, where they had some.
        tokens: read ("prompt"), of those cached ("cached"), and written ("completion").
        judges: model, revision and template, and how often.
    """

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.judged = 0
        self.truncated = 0
        self.unparsed_votes = 0
        self.masses: list[float] = []
        self.letter_gaps: list[float] = []
        self.tokens: Counter[str] = Counter()
        self.judges: Counter[tuple[str, str, str]] = Counter()

    def add(self, line: Line) -> None:
        """Counts one line."""
        if line["fault"] is not None:
            self.faults[line["fault"]["reason"]] += 1
            return
        self.judged += 1
        self.truncated += bool(line.get("truncated"))
        self.unparsed_votes += line.get("unparsed_votes") or 0
        if line.get("verdict_mass") is not None:
            self.masses.append(line["verdict_mass"])
        if line.get("letter_gap") is not None:
            self.letter_gaps.append(line["letter_gap"])
        self.tokens.update(line["usage"])
        judge = line["judge"]
        self.judges[judge["model"], judge["revision"], judge["template"]] += 1
        self._count(line)

    @property
    def done(self) -> int:
        """Lines in all."""
        return self.judged + self.faulted

    @property
    def faulted(self) -> int:
        """Lines with a fault."""
        return self.faults.total()

    def numbers(self) -> dict[str, Any]:
        """The counts as plain data; None where there was nothing to count."""
        per_item = {
            name: _mean(self.tokens[name], self.judged)
            for name in ("prompt", "cached", "completion")
        }
        return {
            "items": self.done,
            "judged": self.judged,
            **self._measures(),
            "truncated": self.truncated,
            "unparsed_votes": self.unparsed_votes,
            "verdict_mass": {"median": statistics.median(self.masses), "least": min(self.masses)}
            if self.masses
            else None,
            "letter_gap": {
                "mean": statistics.fmean(self.letter_gaps),
                "greatest": max(self.letter_gaps),
            }
            if self.letter_gaps
            else None,
            "faults": dict(self.faults.most_common()),
            "tokens_per_item": per_item,
        }

    def _count(self, line: Line) -> None:
        raise RuntimeError(f"{type(self).__name__} does not say what it counts")

    def _measures(self) -> dict[str, Any]:
        raise RuntimeError(f"{type(self).__name__} does not say what it measures")


class PairTally(LineTally):
    """Pairs judged in both orders; the better response is always a.

    Beyond `max_order_gap` the judge abstains: the pair counts for the orders only. Calibration is
    of the greater of w and 1 - w, as the chance of being right. Where responses differ in length,
    `longer_preferred` is how often the longer one wins; of a judge that does not look at the length
    it is `longer_better`, how often it is the better one.
    """

    def __init__(self, max_order_gap: float = 1.0) -> None:
        super().__init__()
        self._max_order_gap = max_order_gap
        self._right = 0.0
        self._abstained = 0
        self._first = 0.0
        self._second = 0.0
        self._consistent = 0
        self._gaps = 0.0
        self._sure: list[tuple[float, bool]] = []
        self._of_lengths = Counter[str]()

    def _count(self, line: Line) -> None:
        forward, reverse = _half_right(line["forward"]), _half_right(line["reverse"])
        self._first += forward
        self._second += reverse
        self._consistent += forward == reverse
        self._gaps += line["order_gap"]
        if line["order_gap"] > self._max_order_gap:
            self._abstained += 1
        else:
            win = line["win_probability"]
            self._right += _half_right(win)
            if win != 0.5:
                self._sure.append((max(win, 1.0 - win), win > 0.5))
            if line.get("longer_better") is not None and win != 0.5:
                self._of_lengths["pairs"] += 1
                self._of_lengths["preferred"] += line["longer_better"] == (win > 0.5)
                self._of_lengths["better"] += line["longer_better"]

    def _measures(self) -> dict[str, Any]:
        answered = self.judged - self._abstained
        return {
            **_accuracy(self._right, answered),
            "accuracy_chosen_first": _mean(self._first, self.judged),
            "accuracy_chosen_second": _mean(self._second, self.judged),
            "order_consistency": _mean(self._consistent, self.judged),
            "mean_order_gap": _mean(self._gaps, self.judged),
            "abstained": self._abstained,
            "longer_preferred": _mean(self._of_lengths["preferred"], self._of_lengths["pairs"]),
            "longer_better": _mean(self._of_lengths["better"], self._of_lengths["pairs"]),
            **_calibrated(self._sure),
        }


class PointTally(LineTally):
    """Responses judged by themselves: with a label, or the better and the worse one of a pair.

    A labelled response with the score `threshold` or more counts as called right.
    """

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__()
        self._threshold = threshold
        self._right = 0.0
        self._labelled: list[tuple[float, bool]] = []

    def _count(self, line: Line) -> None:
        if "label" in line:
            label = line["label"] > 0
            self._labelled.append((line["score"], label))
            self._right += (line["score"] >= self._threshold) == label
        else:
            chosen, rejected = line["score_chosen"], line["score_rejected"]
            self._right += 0.5 if chosen == rejected else float(chosen > rejected)

    def _measures(self) -> dict[str, Any]:
        measures = _accuracy(self._right, self.judged)
        if self._labelled:
            measures["auc"] = auc(self._labelled)
            measures["called_right"] = _mean(
                sum(score >= self._threshold for score, _ in self._labelled), len(self._labelled)
            )
            measures |= _calibrated(self._labelled)
        return measures


class StepTally(LineTally):
    """Responses scored by steps. An error is a step that is labelled wrong.

    Steps that the judge finds neutral, and those without a label, are left out. The first error is
    right where judge and labels name the same step, or both none; the whole is right where the
    response passes exactly if no step is wrong. `process_f1` is ProcessBench's (arXiv 2412.06559):
    the harmonic mean of the shares of right first errors among responses with an error, and among
    those without; 0 where either is, None without both kinds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cells: Counter[tuple[bool, bool]] = Counter()  # (is an error, is called one)
        self._scored: list[tuple[float, bool]] = []
        self._first: Counter[tuple[bool, bool]] = Counter()  # (has an error, is found right)
        self._whole_right = 0

    def _count(self, line: Line) -> None:
        labels, scores = line["labels"], line["scores"]
        threshold = line["error_threshold"]
        wrong = [index for index, label in enumerate(labels) if label is not None and label < 0]
        for label, score in zip(labels, scores, strict=True):
            if label and score is not None:
                self._cells[label < 0, score < threshold] += 1
                self._scored.append((score, label > 0))
        self._first[bool(wrong), line["first_error"] == (wrong[0] if wrong else None)] += 1
        self._whole_right += line["passed"] == (not wrong)

    def _measures(self) -> dict[str, Any]:
        cells, steps = self._cells, self._cells.total()
        found, errors = cells[True, True], cells[True, True] + cells[True, False]
        called = found + cells[False, True]
        first_right = self._first[True, True] + self._first[False, True]
        low, high = wilson(first_right, self.judged)
        of_wrong = _mean(
            self._first[True, True], self._first[True, True] + self._first[True, False]
        )
        of_right = _mean(
            self._first[False, True], self._first[False, True] + self._first[False, False]
        )
        return {
            "steps": steps,
            "step_accuracy": _mean(found + cells[False, False], steps),
            "step_auc": auc(self._scored),
            "error_precision": _mean(found, called),
            "error_recall": _mean(found, errors),
            "error_f1": _mean(2 * found, called + errors),
            "first_error_accuracy": _mean(first_right, self.judged),
            "first_error_of_wrong": of_wrong,
            "first_error_of_right": of_right,
            "process_f1": _harmonic(of_wrong, of_right),
            "first_error_interval": [low, high] if self.judged else None,
            "whole_accuracy": _mean(self._whole_right, self.judged),
        }


def _half_right(probability: float) -> float:
    return 0.5 if probability == 0.5 else float(probability > 0.5)


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _harmonic(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return None
    return 2 * one * other / (one + other) if one and other else 0.0


def _calibrated(scored: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Of chances in [0, 1]; nothing for logits."""
    if not scored or not all(0.0 <= score <= 1.0 for score, _ in scored):
        return {}
    return {
        "ece": calibration_error(scored),
        "calibration": [asdict(one) for one in calibration(scored)],
    }


def _accuracy(right: float, count: int) -> dict[str, Any]:
    return {
        "accuracy": _mean(right, count),
        "interval": list(wilson(right, count)) if count else None,
    }


class EvaluationTally:
    """Lines counted by subset and over all; see `PairTally` and `PointTally` for the thresholds."""

    def __init__(self, kind: Kind, max_order_gap: float = 1.0, threshold: float = 0.5) -> None:
        self.kind = kind
        self.max_order_gap = max_order_gap
        self.threshold = threshold
        self.whole = self._make()
        self.subsets: dict[str, LineTally] = {}

    def _make(self) -> LineTally:
        match self.kind:
            case "pairs":
                return PairTally(self.max_order_gap)
            case "points":
                return PointTally(self.threshold)
            case "steps":
                return StepTally()

    def add(self, line: Line) -> None:
        """Counts one line."""
        self.whole.add(line)
        self.subsets.setdefault(line["subset"], self._make()).add(line)

    @property
    def done(self) -> int:
        """Lines in all."""
        return self.whole.done

    @property
    def faulted(self) -> int:
        """Lines with a fault."""
        return self.whole.faulted

    def numbers(self) -> dict[str, Any]:
        """The counts as plain data."""
        named = sorted(self.subsets.items())
        judges = [
            {"model": model, "revision": revision, "template": template, "items": count}
            for (model, revision, template), count in self.whole.judges.most_common()
        ]
        return {
            "judges": judges,
            "all": self.whole.numbers(),
            "subsets": {name: tally.numbers() for name, tally in named if name},
        }
