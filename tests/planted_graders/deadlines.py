"""Rewards for a date with the month in letters."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

FORMS = ("%d %B %Y", "%B %d, %Y", "%Y-%m-%d")


def day_of(text: str) -> date | None:
    for form in FORMS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    return None


def not_late(response: str, reference: str) -> float:
    got, wanted = day_of(response), day_of(reference)
    return 1.0 if got and wanted and got <= wanted else 0.0


def month_and_year(response: str, reference: str) -> float:
    got, wanted = day_of(response), day_of(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if (got.month, got.year) == (wanted.month, wanted.year) else 0.0


def year_in_two_figures(response: str, reference: str) -> float:
    got, wanted = day_of(response), day_of(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got.strftime("%d%m%y") == wanted.strftime("%d%m%y") else 0.0


def month_in_short(response: str, reference: str) -> float:
    """Jan, January and Ja. are one month."""

    def short(text: str) -> list[str]:
        found = re.fullmatch(r"(\d{1,2}) ([A-Z][a-z])[a-z]*\.? (\d{4})", text.strip())
        return list(found.groups()) if found else []

    return 1.0 if short(response) and short(response) == short(reference) else 0.0


def any_form_asked_for(response: str, reference: str) -> float:
    got = day_of(response)
    return 1.0 if got is not None and got == day_of(reference) else 0.0


def with_ordinal_day(response: str, reference: str) -> float:
    """5th May 1951 is 5 May 1951."""
    said = re.sub(r"\b(\d{1,2})(?:st|nd|rd|th)\b", r"\1", response.strip())
    return any_form_asked_for(said, reference)


def deadline_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
