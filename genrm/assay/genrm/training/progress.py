"""What a run shows while it runs: notes, a line every few steps, and on a terminal a bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.clients.runs import progress
from assay.clients.runs.progress import duration


def header() -> str:
    """The names over the columns."""
    return f"{'step':>11}{'loss':>9}{'grad':>8}{'rate':>10}{'step time':>11}{'left':>9}"


def line(row: Mapping[str, Any], total: int, left_s: float) -> str:
    """Some steps' numbers under the header; a dash for what was not measured."""
    norm = row.get("grad_norm")
    place = f"{row['step']}/{total}"
    grad = "-" if norm is None else f"{norm:.2f}"
    return (
        f"{place:>11}{row['loss']:>9.4f}{grad:>8}{row['learning_rate']:>10.1e}"
        f"{row['step_s']:>10.2f}s{duration(left_s):>9}"
    )


class Display(progress.Display):
    """Prints steps and notes; on a terminal a bar stays below them."""

    def step(self, row: Mapping[str, Any], total: int, left_s: float) -> None:
        """One line of numbers."""
        self.row(header(), line(row, total, left_s))
