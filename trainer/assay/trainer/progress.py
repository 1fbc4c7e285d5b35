"""What a run shows while it runs: one line per step, and on a terminal a bar below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_HEADER_EVERY = 40
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


def duration(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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


class Display:
    """Prints steps and notes; on a terminal a bar stays below them.

    Args:
        console: where to print. Without a terminal plain lines are printed.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Progress | None = None
        self._lines = 0

    def note(self, text: str) -> None:
        """One line of its own."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Starts a bar; only on a terminal."""
        self.end()
        self._lines = 0
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._bar.start()
            self._bar.add_task(what, total=total, completed=done)

    def advance(self, done: int) -> None:
        """Moves the bar."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)

    def step(self, row: Mapping[str, Any], total: int) -> None:
        """One step's line."""
        if self._lines % _HEADER_EVERY == 0:
            self.note(header())
        self._lines += 1
        self.note(line(row, total))
        self.advance(int(row["step"]))

    def end(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
