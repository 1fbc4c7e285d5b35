"""Numbers of a step, and their columns on the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a step."""

    key: str  # its column in metrics.jsonl
    group: str  # what it is about
    shown: str  # its name within the group where it is reported; counts are a group of their own
    unit: str  # of the number; "share" is a ratio from 0 to 1
    meaning: str  # in one sentence; formulas as text


def metrics(
    group: str, *rows: tuple[str, str, str] | tuple[str, str, str, str]
) -> tuple[Metric, ...]:
    """Numbers of one group; a row is key, unit, meaning and, if it is not the key, display name."""
    return tuple(Metric(r[0], group, r[3] if len(r) == 4 else r[0], r[1], r[2]) for r in rows)


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a step's line on the screen."""

    name: str  # above it
    keys: tuple[str, ...]  # of metrics.jsonl that it is made of; a dash where one of them is null
    width: int  # in characters, the space before it included
    rank: int  # columns with a lower one stay longer where not all fit
    legend: str  # what it is, in a few words
    show: Callable[..., str]  # the cell
    when: Callable[[Config], bool] = lambda _config: True  # whether a run has it
    after: str = ""  # the column of every run that a method's column stands behind


def percent(value: float) -> str:
    """A share without decimals."""
    return f"{value:.0%}"


def small(value: float) -> str:
    """Six characters at any size."""
    if 0.00095 <= abs(value) < 10:
        return f"{value:.4f}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e+") if value else "0"
