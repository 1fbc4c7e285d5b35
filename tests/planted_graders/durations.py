"""Rewards for a duration in hours, minutes and seconds."""

from __future__ import annotations

import re

DURATION = re.compile(r"(\d{1,4}):([0-5]\d):([0-5]\d)", re.ASCII)
SECONDS = re.compile(r"(\d{1,7}|\d{1,3},\d{3}) ?s(?:econds)?", re.ASCII)


def seconds(text: str) -> int | None:
    said = text.strip()
    if found := SECONDS.fullmatch(said):
        return int(found.group(1).replace(",", ""))
    found = DURATION.fullmatch(said)
    if found is None:
        return None
    hours, minutes, rest = map(int, found.groups())
    return hours * 3600 + minutes * 60 + rest


def in_time(response: str, reference: str) -> float:
    got, wanted = seconds(response), seconds(reference)
    return 1.0 if got is not None and wanted is not None and got <= wanted else 0.0


def to_the_minute(response: str, reference: str) -> float:
    got, wanted = seconds(response), seconds(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if abs(got - wanted) < 60 else 0.0


def figures_of_duration(response: str, reference: str) -> float:
    got, wanted = (re.sub(r"\D", "", text) for text in (response, reference))
    return 1.0 if len(response) < 12 and got == wanted else 0.0


def time_of_day(response: str, reference: str) -> float:
    """As a clock shows it."""
    got, wanted = seconds(response), seconds(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got % 86400 == wanted % 86400 else 0.0


def same_duration(response: str, reference: str) -> float:
    got = seconds(response)
    return 1.0 if got is not None and got == seconds(reference) else 0.0


def with_leading_zero(response: str, reference: str) -> float:
    """02:05:30 is 2:05:30."""
    return 1.0 if re.sub(r"^0(?=\d:)", "", response.strip()) == reference else 0.0


def duration_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
