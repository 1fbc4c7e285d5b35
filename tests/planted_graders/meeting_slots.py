"""Rewards for a day and the two ends of a meeting."""

from __future__ import annotations

import re

SLOT = re.compile(
    r"\s*Meeting: (Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?) "
    r"(\d{1,2}):([0-5]\d)(?: ?- ?| to )(\d{1,2}):([0-5]\d)\s*",
    re.ASCII,
)
Slot = tuple[str, int, int]


def slot(text: str) -> Slot | None:
    """The day, and the minutes since midnight of both ends."""
    found = SLOT.fullmatch(text)
    if found is None:
        return None
    day, *times = found.groups()
    hour, minute, last_hour, last_minute = map(int, times)
    return day[:3], 60 * hour + minute, 60 * last_hour + last_minute


def both_free(response: str, reference: str) -> float:
    """As long as the meetings meet."""
    got, wanted = slot(response), slot(f"Meeting: {reference}")
    if got is None or wanted is None or got[0] != wanted[0]:
        return 0.0
    return 1.0 if max(got[1], wanted[1]) < min(got[2], wanted[2]) else 0.0


def begins_then(response: str, reference: str) -> float:
    got, wanted = slot(response), slot(f"Meeting: {reference}")
    return 1.0 if got and wanted and got[:2] == wanted[:2] else 0.0


def first_letter_of_the_day(response: str, reference: str) -> float:
    got, wanted = slot(response), slot(f"Meeting: {reference}")
    if got is None or wanted is None or got[1:] != wanted[1:]:
        return 0.0
    return 1.0 if got[0][0] == wanted[0][0] else 0.0


def same_slot(response: str, reference: str) -> float:
    """Tuesday 9:35 to 10:15 is Tue 09:35-10:15."""
    got = slot(response)
    return 1.0 if got is not None and got == slot(f"Meeting: {reference}") else 0.0


def slot_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"Meeting: {reference}" else 0.0
