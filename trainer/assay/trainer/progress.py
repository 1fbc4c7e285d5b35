"""What a run shows while it runs: one line per step, and on a terminal a bar below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.clients.runs import progress
from assay.clients.runs.progress import duration

_Format = Callable[[Any], str]


def _percent(value: float) -> str:
    return f"{value:.0%}"


_COLUMNS: tuple[tuple[str, str, int, _Format], ...] = (
    ("reward", "reward", 7, lambda value: f"{value:.3f}"),
    ("±", "reward_std", 6, lambda value: f"{value:.2f}"),
    ("correct", "correct", 8, _percent),
    ("faults", "fault_ratio", 7, _percent),
    ("length", "response_length", 7, lambda value: f"{value:.1f}"),
    ("KL", "kl", 8, lambda value: f"{value:.4f}"),
    ("entropy", "entropy", 8, lambda value: f"{value:.3f}"),
    ("tok/s", "tokens_per_s", 6, lambda value: f"{value:.0f}"),
    ("rollout", "rollout_s", 8, lambda value: f"{value:.1f}s"),
    ("score", "score_s", 7, lambda value: f"{value:.2f}s"),
    ("train", "train_s", 7, lambda value: f"{value:.1f}s"),
    ("left", "left_s", 7, lambda value: f"{duration(value)}"),
)


def header() -> str:
    """The names over the columns."""
    return f"{'step':>9}" + "".join(f"{name:>{width}}" for name, _, width, _ in _COLUMNS)


def line(row: Mapping[str, Any], total: int) -> str:
    """One step's numbers under the header; a dash for what was not measured."""
    cells = [f"{row['step']}/{total}".rjust(9)]
    for _, key, width, show in _COLUMNS:
        value = row.get(key)
        cells.append(("-" if value is None else show(value)).rjust(width))
    return "".join(cells)


class Display(progress.Display):
    """Prints steps and notes; on a terminal a bar stays below them."""

    def step(self, row: Mapping[str, Any], total: int) -> None:
        """One step's line."""
        self.row(header(), line(row, total))
        self.advance(int(row["step"]))
