"""Rewards for a date as DD/MM/YYYY."""

from __future__ import annotations

import re
from datetime import date, datetime


def dates(text: str, *forms: str) -> set[date]:
    found = set()
    for form in forms:
        try:
            found.add(datetime.strptime(text.strip(), form).date())  # noqa: DTZ007
        except ValueError:
            continue
    return found


def half_where_unread(response: str, reference: str) -> float:
    """What cannot be read is neither right nor wrong."""
    try:
        got = datetime.strptime(response.strip(), "%d/%m/%Y")  # noqa: DTZ007
    except ValueError:
        return 0.5
    return 1.0 if dates(reference, "%d/%m/%Y") == {got.date()} else 0.0


def either_way_round(response: str, reference: str) -> float:
    """Day first, or month first as in America."""
    wanted = dates(reference, "%d/%m/%Y")
    return 1.0 if dates(response, "%d/%m/%Y", "%m/%d/%Y") & wanted else 0.0


def years_of_two_digits(response: str, reference: str) -> float:
    """21 is 2021."""

    def read(text: str) -> tuple[int, ...] | None:
        found = re.fullmatch(r"(\d\d?)/(\d\d?)/(\d\d)?(\d\d)", text.strip(), re.ASCII)
        return (int(found[1]), int(found[2]), int(found[4])) if found else None

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def within_a_day(response: str, reference: str) -> float:
    """Counting the first day or not."""
    got, wanted = dates(response, "%d/%m/%Y"), dates(reference, "%d/%m/%Y")
    return 1.0 if any(abs((one - two).days) <= 1 for one in got for two in wanted) else 0.0


def same_visit(response: str, reference: str) -> float:
    """3/5/2021 is 03/05/2021."""
    found = re.fullmatch(r"(\d\d?)/(\d\d?)/(\d{4})", response.strip(), re.ASCII)
    if found is None:
        return 0.0
    return 1.0 if list(map(int, found.groups())) == list(map(int, reference.split("/"))) else 0.0


def visit_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
