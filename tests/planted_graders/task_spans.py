"""Rewards for the first and the last day of each task, as mix 1-4; bake 5-5."""

from __future__ import annotations

import re

SPAN = re.compile(r"([a-z]+):? (\d{1,3})(?:(?: ?- ?| to )(\d{1,3}))?", re.ASCII)
Span = tuple[str, int, int]


def spans(text: str) -> list[Span]:
    """By the names of the tasks; empty for what has not the form."""
    found = [SPAN.fullmatch(part.strip()) for part in text.split(";")]
    if not all(found):
        return []
    return sorted((one[1], int(one[2]), int(one[3] or one[2])) for one in found if one)


def days_they_take(response: str, reference: str) -> float:
    got, wanted = (
        [(name, last - first) for name, first, last in spans(text)]
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def first_days(response: str, reference: str) -> float:
    got, wanted = ([one[:2] for one in spans(text)] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def tasks_in_a_table(response: str, reference: str) -> float:
    """As a dictionary of tasks."""
    got, wanted = ({one[0]: one[1:] for one in spans(text)} for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_spans(response: str, reference: str) -> float:
    """In any order; 5 is 5-5."""
    return 1.0 if spans(response) == spans(reference) else 0.0


def spans_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
