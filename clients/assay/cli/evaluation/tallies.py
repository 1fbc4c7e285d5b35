"""Counts over the lines of an evaluation, for one subset or for all. Pure.

A tie (0.5, or two equal scores) is half right. A fault is neither right nor wrong. Intervals are
Wilson's, at 95 %; they take rows as independent, which several pairs of one prompt are not quite.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from typing import Any

from assay.cli.evaluation.best import found_best
from assay.cli.evaluation.measures import (
    LengthBias,
    PlaceBias,
    accuracy,
    calibrated,
    half_right,
    mean,
    ranked,
    share,
)
from assay.cli.evaluation.rows import Kind
from assay.cli.evaluation.steps import StepCells, cells_of, step_measures

Line = Mapping[str, Any]


class LineTally:
    """The counts of every kind: rows, faults by reason, tokens, judges.

    Attributes:
        judged: lines without a fault.
        truncated: of those, lines whose candidate was cut to fit.
        unparsed_votes: votes that did not count.
        masses: the share of the model's probability that the verdicts held, where it is known.
        usage: tokens read ("prompt"), of those cached ("cached"), and written ("completion");
            seconds of the engine ("engine_s"), and money ("cost").
        letter_gaps: how far verdicts moved with their letters, where they had some.
        judges: model, revision and template, and how often.
    """

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.judged = 0
        self.truncated = 0
        self.unparsed_votes = 0
        self.masses: list[float] = []
        self.usage: dict[str, float] = {}
        self.letter_gaps: list[float] = []
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
        for name, value in line["usage"].items():
            self.usage[name] = self.usage.get(name, 0.0) + value
        if line.get("letter_gap") is not None:
            self.letter_gaps.append(line["letter_gap"])
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
            name: mean(self.usage.get(name, 0.0), self.judged)
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
            "engine_seconds": self.usage.get("engine_s", 0.0),
            "cost": self.usage.get("cost", 0.0),
        }

    def _count(self, line: Line) -> None:
        raise RuntimeError(f"{type(self).__name__} does not say what it counts")

    def _measures(self) -> dict[str, Any]:
        raise RuntimeError(f"{type(self).__name__} does not say what it measures")


class PairTally(LineTally):
    """Pairs judged in both orders; the better response is always a.

    Beyond `max_order_gap` the judge abstains: the pair counts for the orders only. Calibration is
    of the greater of w and 1 - w, as the chance of being right. Biases: see `PlaceBias`, and
    `LengthBias`.
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
        self._places = PlaceBias()
        self._lengths = LengthBias()

    def _count(self, line: Line) -> None:
        forward, reverse = half_right(line["forward"]), half_right(line["reverse"])
        self._first += forward
        self._second += reverse
        self._consistent += forward == reverse
        self._gaps += line["order_gap"]
        self._places.add(line["forward"], line["reverse"])
        if line["order_gap"] > self._max_order_gap:
            self._abstained += 1
            return
        win = line["win_probability"]
        self._right += half_right(win)
        if win != 0.5:
            self._sure.append((max(win, 1.0 - win), win > 0.5))
            self._lengths.add(line.get("longer_better"), win > 0.5)

    def _measures(self) -> dict[str, Any]:
        return {
            **accuracy(self._right, self.judged - self._abstained),
            **share("accuracy_chosen_first", self._first, self.judged),
            **share("accuracy_chosen_second", self._second, self.judged),
            **share("order_consistency", self._consistent, self.judged),
            "mean_order_gap": mean(self._gaps, self.judged),
            "abstained": self._abstained,
            **self._places.measures(),
            **self._lengths.measures(),
            **calibrated(self._sure),
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
        self._lengths = LengthBias()

    def _count(self, line: Line) -> None:
        if "label" in line:
            label = line["label"] > 0
            self._labelled.append((line["score"], label))
            self._right += (line["score"] >= self._threshold) == label
            return
        chosen, rejected = line["score_chosen"], line["score_rejected"]
        self._right += 0.5 if chosen == rejected else float(chosen > rejected)
        if chosen != rejected:
            self._lengths.add(line.get("longer_better"), chosen > rejected)

    def _measures(self) -> dict[str, Any]:
        measures = accuracy(self._right, self.judged)
        if self._labelled:
            called = sum(score >= self._threshold for score, _ in self._labelled)
            measures |= ranked(self._labelled)
            measures |= share("called_right", called, len(self._labelled))
            measures |= calibrated(self._labelled)
        else:
            measures |= self._lengths.measures()
        return measures


class BestTally(LineTally):
    """Several responses with a score each, the right ones first.

    One right response is found where its score is the highest; ties share the point, as RewardBench
    2 counts (arXiv 2506.01937). Several right ones are where each is above every wrong one.
    `by_chance` is the share of right ones among the responses.
    """

    def __init__(self) -> None:
        super().__init__()
        self._right = 0.0
        self._by_chance = 0.0

    def _count(self, line: Line) -> None:
        self._right += found_best(line["scores"], line["correct"])
        self._by_chance += line["correct"] / len(line["scores"])

    def _measures(self) -> dict[str, Any]:
        return {
            **accuracy(self._right, self.judged),
            "by_chance": mean(self._by_chance, self.judged),
        }


class StepTally(LineTally):
    """Responses scored by steps; see `step_measures`. An error is a step that is labelled wrong.

    The whole is right where the response passes exactly if no step is wrong.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[StepCells] = []
        self._scored: list[list[tuple[float, bool]]] = []
        self._whole_right = 0

    def _count(self, line: Line) -> None:
        cells = cells_of(line)
        self._rows.append(cells)
        pairs = zip(line["scores"], line["labels"], strict=True)
        self._scored.append(
            [(score, label > 0) for score, label in pairs if label and score is not None]
        )
        self._whole_right += line["passed"] != cells.has_error

    def _measures(self) -> dict[str, Any]:
        steps = [one for scored in self._scored for one in scored]
        return {
            **step_measures(self._rows, self._scored),
            **share("whole_accuracy", self._whole_right, self.judged),
            **calibrated(steps, self._scored),
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
            case "best":
                return BestTally()

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
