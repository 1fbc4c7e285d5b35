"""A run's results as numbers.

Figures are means over a run's last steps (a tenth of them, at least one). Steps to a threshold
count where a trailing mean of 10 steps passes it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.runs.records import Row, read_rows
from assay.trainer.records.folder import RunFolder

TRAILING = 10
METRICS = ("reward", "correct", "entropy", "response_length")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """One run."""

    rows: tuple[Row, ...]  # of metrics.jsonl
    # on held-out prompts after training, from 0 to 1; None where it was left out
    accuracy: float | None

    def final(self, metric: str) -> float | None:
        """The mean over the last tenth of the steps; None where nothing was measured."""
        values = series(self.rows, metric)
        if not values:
            return None
        return statistics.fmean(value for _, value in values[-max(1, round(len(values) / 10)) :])

    def steps_to(self, metric: str, value: float) -> int | None:
        """The first step whose trailing mean is at least `value`; None for none."""
        values = series(self.rows, metric)
        for end in range(TRAILING, len(values) + 1):
            if statistics.fmean(v for _, v in values[end - TRAILING : end]) >= value:
                return values[end - 1][0]
        return None


def series(rows: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[int, float]]:
    """Steps and values of a metric, where it was measured."""
    return [(row["step"], row[metric]) for row in rows if row.get(metric) is not None]


def read(folder: Path) -> RunOutcome | None:
    """The outcome of a finished run; None for an unfinished one."""
    run = RunFolder(folder)
    report_path = folder / "report.json"
    if not report_path.is_file() and not run.curves.is_file():
        return None
    report = json.loads(report_path.read_text(encoding="utf-8")) if report_path.is_file() else {}
    after = report.get("after") or {}
    return RunOutcome(tuple(read_rows(run.metrics)), after.get("accuracy"))
