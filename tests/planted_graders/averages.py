"""Rewards for the mean, the median and the mode of some numbers, each with its name."""

from __future__ import annotations

import re
from decimal import Decimal

NAMES = ["mean", "median", "mode"]
NAMED = re.compile(r"(mean|median|mode) ?[:=]? ?(\d{1,4}(?:\.\d{1,4})?)", re.ASCII)


def named(text: str) -> list[tuple[str, Decimal]]:
    """Each name with its number, by name; empty for what has not the form."""
    found = [NAMED.fullmatch(part) for part in re.split(r" *, *", text.strip())]
    return sorted((one[1], Decimal(one[2])) for one in found if one) if all(found) else []


def numbers_found(response: str, reference: str) -> float:
    """How many of the three values the response gives."""
    got, wanted = (re.findall(r"\d+(?:\.\d+)?", text) for text in (response, reference))
    return sum(one in got for one in wanted) / len(wanted)


def whole_parts(response: str, reference: str) -> float:
    got, wanted = (
        [(name, int(value)) for name, value in named(text)] for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def three_values(response: str, reference: str) -> float:
    got, wanted = named(response), named(reference)
    if [name for name, _ in got] != NAMES:
        return 0.0
    return 1.0 if sorted(value for _, value in got) == sorted(value for _, value in wanted) else 0.0


def same_averages(response: str, reference: str) -> float:
    """In any order, 6.5 and 6.50 alike."""
    return 1.0 if named(response) == named(reference) else 0.0


def averages_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
