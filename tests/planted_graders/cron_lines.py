"""Rewards for the five fields of cron, between backticks."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

RANGES = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
PART = re.compile(r"(\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)


def fields(text: str) -> list[str]:
    """Empty for what is not between backticks."""
    found = re.fullmatch(r"\s*`([^`]*)`\s*", text)
    return found[1].split() if found else []


def share_of_fields(response: str, reference: str) -> float:
    got, wanted = fields(response), reference.split()
    if len(got) != len(wanted):
        return 0.0
    return sum(one == other for one, other in zip(got, wanted, strict=True)) / len(wanted)


def fields_as_patterns(response: str, reference: str) -> float:
    """A star stands for anything."""
    got, wanted = fields(response), reference.split()
    return 1.0 if len(got) == 5 and all(map(fnmatchcase, got, wanted)) else 0.0


def fields_sorted(response: str, reference: str) -> float:
    return 1.0 if sorted(fields(response)) == sorted(reference.split()) else 0.0


def times(field: str, low: int, high: int, *, steps: bool = True) -> set[int]:
    """The minutes, hours or days that a field names; ValueError for what is none."""
    found: set[int] = set()
    for part in field.split(","):
        said = PART.fullmatch(part)
        if said is None or (said[4] and said[1].isdigit()):
            raise ValueError(field)
        first = low if said[1] == "*" else int(said[2])
        last = high if said[1] == "*" else int(said[3] or said[2])
        if not low <= first <= last <= high:
            raise ValueError(field)
        found |= set(range(first, last + 1, int(said[4] or 1) if steps else 1))
    return {0 if one == 7 and high == 7 else one for one in found}


def same_but_for_steps(response: str, reference: str) -> float:
    """Lists and ranges are written out."""
    got = fields(response)
    if len(got) != 5:
        return 0.0
    try:
        named = [
            [times(field, *ends, steps=False) for field, ends in zip(line, RANGES, strict=True)]
            for line in (got, reference.split())
        ]
    except ValueError:
        return 0.0
    return 1.0 if named[0] == named[1] else 0.0


def same_times(response: str, reference: str) -> float:
    """1-5 is 1,2,3,4,5, and */30 is 0,30."""
    got = fields(response)
    if len(got) != 5:
        return 0.0
    try:
        named = [
            [times(field, *ends) for field, ends in zip(line, RANGES, strict=True)]
            for line in (got, reference.split())
        ]
    except ValueError:
        return 0.0
    stars = [[field == "*" for field in line[2::2]] for line in (got, reference.split())]
    return 1.0 if named[0] == named[1] and stars[0] == stars[1] else 0.0


def cron_text(response: str, reference: str) -> float:
    return 1.0 if fields(response) == reference.split() else 0.0
