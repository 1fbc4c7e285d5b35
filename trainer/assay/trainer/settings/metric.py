"""What a number of a step is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a step.

    Attributes:
        key: its column in metrics.jsonl.
        group: what it is about.
        shown: its name within the group where it is reported; counts are a group of their own.
        unit: of the number; "share" is a ratio from 0 to 1.
        meaning: in one sentence; formulas as text.
    """

    key: str
    group: str
    shown: str
    unit: str
    meaning: str


def metric(key: str, group: str, unit: str, meaning: str, *, shown: str = "") -> Metric:
    """A metric that is shown under its key, where nothing else is said."""
    return Metric(key, group, shown or key, unit, meaning)
