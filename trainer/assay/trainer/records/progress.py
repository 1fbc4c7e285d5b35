"""A run on the screen: one line per step, and on a terminal a bar below them.

The columns depend on what the method measures and on the width of the terminal; the most important
ones stay. A legend explains them at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.kit.runs import progress
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.progress import duration
from assay.trainer.settings.config import Config
from assay.trainer.settings.metric import Column, percent, small
from assay.trainer.settings.registry import methods

Row = Mapping[str, Any]
_HEADER_EVERY = 40
_STEP_WIDTH = 9
_PLAIN_WIDTH = 120
"""Width of lines in a file."""


def _fine_percent(value: float) -> str:
    return f"{100 * value:.0f}" if value >= 0.0995 else f"{100 * value:.2g}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value < 9999.5 else f"{value / 1000:.0f}k"


def seconds(value: float) -> str:
    """Five characters or so: 1.2s, 123s."""
    return f"{value:.1f}s" if value < 99.95 else f"{value:.0f}s"


def _has_critic(config: Config) -> bool:
    return config.method.has_critic


LEFT = Column("left", ("left_s",), 9, 3, "until the last step", duration)
_OF_EVERY_RUN: tuple[Column, ...] = (
    Column("reward", ("reward",), 8, 0, "mean over judged responses", lambda v: f"{v:.3f}"),
    Column("±", ("reward_std",), 6, 12, "its deviation", lambda v: f"{v:.2f}"),
    Column("correct", ("correct",), 8, 1, "of judged", percent),
    Column("fault", ("fault_ratio",), 6, 2, "not judged, left out", percent),
    Column("length", ("response_length",), 7, 5, "mean tokens of a response", lambda v: f"{v:.0f}"),
    Column("cut", ("truncated",), 5, 10, "responses at the limit", percent),
    Column("entropy", ("entropy",), 8, 6, "nats per token", lambda v: f"{v:.3f}"),
    Column(
        "clip-/+%", ("clip_low", "clip_high"), 10, 7, "tokens clipped below and above",
        lambda low, high: f"{_fine_percent(low)}/{_fine_percent(high)}",
    ),
    Column(
        "KL", ("kl",), 7, 8, "to the initial policy, nats per token", small,
        lambda config: config.method.loss.kl_most > 0,
    ),
    Column(
        "EV", ("explained_variance",), 6, 3, "explained variance of returns, by the critic",
        lambda v: f"{v:.2f}" if v > -9.95 else "<-9", _has_critic,
    ),
    Column("v-loss", ("value_loss",), 8, 8, "of the critic", small, _has_critic),
    Column("drift", ("drift_mean",), 7, 11, "sampler to trainer, nats per token", small),
    Column("tok/s", ("tokens_per_s",), 6, 7, "generated", _count),
    Column("gen", ("generate_s",), 7, 6, "generating", seconds),
    Column("wait", ("score_wait_s",), 6, 6, "waiting for judgements", seconds),
    Column("train", ("train_s",), 7, 6, "the rest of the step", seconds),
    LEFT,
)  # fmt: skip
_OF_METHODS = tuple(column for method in methods() for column in method.columns)
COLUMNS: tuple[Column, ...] = tuple(
    column
    for own in _OF_EVERY_RUN
    for column in (own, *(brought for brought in _OF_METHODS if brought.after == own.name))
)


def columns(config: Config, width: int = _PLAIN_WIDTH) -> tuple[Column, ...]:
    """The columns of a run, in the order of COLUMNS."""
    return fitting([column for column in COLUMNS if column.when(config)], width)


def fitting(measured: Sequence[Column], width: int = _PLAIN_WIDTH) -> tuple[Column, ...]:
    """Columns that fit into a line, in their order; the first by rank always does."""
    chosen: list[Column] = []
    room = width - _STEP_WIDTH
    for column in sorted(measured, key=lambda column: column.rank):
        if column.width <= room or not chosen:
            chosen.append(column)
            room -= column.width
    return tuple(column for column in measured if column in chosen)


def header(shown: Sequence[Column]) -> str:
    """The names over the columns."""
    return f"{'step':>{_STEP_WIDTH}}" + "".join(f"{c.name:>{c.width}}" for c in shown)


def line(row: Row, total: int, shown: Sequence[Column]) -> str:
    """One step's numbers; a dash for what was not measured."""
    return f"{row['step']}/{total}".rjust(_STEP_WIDTH) + "".join(
        cell(column, row).rjust(column.width) for column in shown
    )


def cell(column: Column, row: Row) -> str:
    """One number as text."""
    values = [row.get(key) for key in column.keys]
    return "-" if any(value is None for value in values) else column.show(*values)


def legend(shown: Sequence[Column], width: int = _PLAIN_WIDTH) -> str:
    """Meanings of the columns, in lines of at most `width` characters."""
    lines = [""]
    for part in (f"{column.name}: {column.legend}" for column in shown):
        longer = f"{lines[-1]} \u00b7 {part}" if lines[-1] else part
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(lines)


class StepDisplay(progress.Display):
    """Prints steps and notes; on a terminal a bar stays below them."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._shown: tuple[Column, ...] = ()
        self._printed = 0

    @property
    def width(self) -> int:
        """Characters in a line."""
        return self.console.width if self.console.is_terminal else _PLAIN_WIDTH

    def steps(self, config: Config) -> None:
        """Prints the legend of a policy's run; before the first `step`."""
        self.show(columns(config, self.width))

    def show(self, shown: Sequence[Column]) -> None:
        """Prints the legend of a run; before the first `step`."""
        self._shown = tuple(shown)
        self._printed = 0
        self._print(Text(legend(self._shown, self.width), style="dim"))

    def step(self, row: Row, total: int) -> None:
        """Prints a row of metrics.jsonl with `left_s`."""
        shown = self._shown or COLUMNS
        if self._printed % _HEADER_EVERY == 0:
            self._print(Text(header(shown), style="bold"))
        self._printed += 1
        text = Text(line(row, total, shown))
        if row.get("fault_ratio"):
            text.highlight_words([f" {cell(_FAULT, row)} "], style="bold red")
        self._print(text)
        self.advance(int(row["step"]))

    def _print(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)


@contextmanager
def interruptible(display: StepDisplay) -> Iterator[Interrupt]:
    """Inside the block, Ctrl-C and SIGTERM stop the run after its step, with a note."""
    with Interrupt(
        lambda name: display.note(
            f"{name}: this step ends, then a checkpoint is saved; again to leave at once"
        )
    ) as stop:
        yield stop


_FAULT = next(column for column in COLUMNS if column.name == "fault")
