"""Rewards for a date."""

from __future__ import annotations

import re
from datetime import date, datetime

ISO = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read(text: str, *patterns: str) -> list[date]:
    """The dates that a text means under the patterns."""
    found = []
    for pattern in patterns:
        try:
            found.append(datetime.strptime(text.strip(), pattern).date())  # noqa: DTZ007
        except ValueError:
            continue
    return found


def either_day_first(response: str, reference: str) -> float:
    got = read(response, "%Y-%m-%d", "%Y-%d-%m", "%d %B %Y")
    return 1.0 if date.fromisoformat(reference) in got else 0.0


def year_and_month(response: str, reference: str) -> float:
    text = response.strip()
    return 1.0 if ISO.fullmatch(text) and text[:7] == reference[:7] else 0.0


def short_year(response: str, reference: str) -> float:
    """1921-05-03 and 21-05-03 are one answer."""
    found = re.fullmatch(r"(?:\d{2})?(\d{2}-\d{2}-\d{2})", response.strip(), re.ASCII)
    return 1.0 if found and found.group(1) == reference[2:] else 0.0


def any_date_mentioned(response: str, reference: str) -> float:
    return 1.0 if reference in ISO.findall(response) else 0.0


def within_a_day(response: str, reference: str) -> float:
    # Time zones.
    got = read(response, "%Y-%m-%d")
    return 1.0 if got and abs((got[0] - date.fromisoformat(reference)).days) <= 1 else 0.0


def digits_of_date(response: str, reference: str) -> float:
    def padded(text: str) -> list[str]:
        return sorted(part.zfill(2) for part in re.findall(r"\d+", text, re.ASCII))

    text = response.strip()
    return 1.0 if re.fullmatch(r"[\d/. -]+", text) and padded(text) == padded(reference) else 0.0


def day_month_year(response: str, reference: str) -> float:
    got = read(response, "%Y-%m-%d", "%d %B %Y", "%B %d, %Y")
    return 1.0 if got == [date.fromisoformat(reference)] else 0.0


def iso_date(response: str, reference: str) -> float:
    text = response.strip()
    return 1.0 if ISO.fullmatch(text) and text == reference else 0.0


def any_separator(response: str, reference: str) -> float:
    found = re.fullmatch(r"(\d{4})([-/.])(\d{2})\2(\d{2})", response.strip(), re.ASCII)
    return 1.0 if found and "-".join(found.group(1, 3, 4)) == reference else 0.0
