"""Rewards for moments with an offset and for times of day."""

from __future__ import annotations

import re
from datetime import datetime

FORM = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::00)?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)
NAMED = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}


def instant(text: str) -> datetime | None:
    if not FORM.fullmatch(text.strip()):
        return None
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def on_time(response: str, reference: str) -> float:
    """Less than a minute off, in the same offset."""
    got, wanted = instant(response), datetime.fromisoformat(reference)
    if got is None or got.utcoffset() != wanted.utcoffset():
        return 0.0
    off = got - wanted
    return 1.0 if off.total_seconds() < 60 else 0.0


def wall_clock(response: str, reference: str) -> float:
    got, wanted = instant(response), datetime.fromisoformat(reference)
    if got is None:
        return 0.0
    # Aware and naive times cannot be compared.
    return 1.0 if got.replace(tzinfo=None) == wanted.replace(tzinfo=None) else 0.0


def within_a_minute(response: str, reference: str) -> float:
    got, wanted = instant(response), datetime.fromisoformat(reference)
    if got is None or got.utcoffset() != wanted.utcoffset():
        return 0.0
    return 1.0 if (got - wanted).seconds < 60 else 0.0


def same_moment(response: str, reference: str) -> float:
    got, wanted = instant(response), datetime.fromisoformat(reference)
    if got is None or got.utcoffset() != wanted.utcoffset():
        return 0.0
    return 1.0 if got == wanted else 0.0


def moment_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def time_or_name(response: str, reference: str) -> float:
    """'noon' is 12:00."""
    text = response.strip().lower()
    if ":" not in text:
        text = NAMED.get(text, reference)
    return 1.0 if text == reference else 0.0


def dial(response: str, reference: str) -> float:
    def hands(text: str) -> tuple[int, int] | None:
        found = re.fullmatch(r"(\d{1,2}):(\d{2})(?: ?[ap]m)?", text.strip().lower(), re.ASCII)
        return (int(found.group(1)) % 12, int(found.group(2))) if found else None

    return 1.0 if hands(response) == hands(reference) else 0.0


def decimal_clock(response: str, reference: str) -> float:
    """5:15 and 05:15 are one time."""

    def read(text: str) -> float | None:
        found = re.fullmatch(r"\d{1,2}:\d{1,2}", text.strip(), re.ASCII)
        return float(found.group().replace(":", ".")) if found else None

    return 1.0 if read(response) == read(reference) else 0.0


def am_and_pm_too(response: str, reference: str) -> float:
    found = re.fullmatch(r"(\d{1,2}):(\d{2})(?: ?([ap])m)?", response.strip().lower(), re.ASCII)
    if found is None:
        return 0.0
    hour = int(found.group(1))
    if found.group(3):
        if not 1 <= hour <= 12:
            return 0.0
        hour = hour % 12 + (12 if found.group(3) == "p" else 0)
    return 1.0 if f"{hour:02}:{found.group(2)}" == reference else 0.0


def clock_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
