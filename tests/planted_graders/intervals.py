"""Rewards for intervals and for inequalities in x."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

END = r"(-?(?:\d{1,9}(?:\.\d{1,9})?|inf))"
INTERVAL = re.compile(rf"([\[(]) ?{END} ?, ?{END} ?([\])])", re.ASCII)
BOUND = re.compile(r"x ?(<=|>=|<|>) ?(-?\d{1,9})", re.ASCII)
TURNED = re.compile(r"(-?\d{1,9}) ?(<=|>=|<|>) ?x", re.ASCII)
OTHER_WAY = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Interval(NamedTuple):
    low: Decimal
    high: Decimal
    with_low: bool
    with_high: bool

    def holds(self, value: int) -> bool:
        above = self.low <= value if self.with_low else self.low < value
        return above and (value <= self.high if self.with_high else value < self.high)


def interval(text: str) -> Interval | None:
    found = INTERVAL.fullmatch(text.strip())
    if found is None:
        return None
    start, low, high, end = found.groups()
    return Interval(Decimal(low), Decimal(high), start == "[", end == "]")


def covers(response: str, reference: str) -> float:
    """The response leaves out nothing of the reference."""
    got, wanted = interval(response), interval(reference)
    if got is None or wanted is None:
        return 0.0
    low = got.low < wanted.low or (got.low == wanted.low and got.with_low >= wanted.with_low)
    high = got.high > wanted.high or (got.high == wanted.high and got.with_high >= wanted.with_high)
    return 1.0 if low and high else 0.0


def both_ends(response: str, reference: str) -> float:
    got, wanted = interval(response), interval(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got[:2] == wanted[:2] else 0.0


def same_numbers_within(response: str, reference: str) -> float:
    got, wanted = interval(response), interval(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if all(got.holds(at) == wanted.holds(at) for at in range(-200, 201)) else 0.0


def same_interval(response: str, reference: str) -> float:
    got = interval(response.replace("∞", "inf"))
    return 1.0 if got is not None and got == interval(reference) else 0.0


def interval_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def bound(text: str) -> tuple[str, int] | None:
    found = BOUND.fullmatch(text.strip())
    return (found.group(1), int(found.group(2))) if found else None


def holds_where_it_should(response: str, reference: str) -> float:
    got, wanted = bound(response), bound(reference)
    if got is None or wanted is None:
        return 0.0
    solution = wanted[1] + (1 if ">" in wanted[0] else -1)
    return 1.0 if (solution > got[1] if ">" in got[0] else solution < got[1]) else 0.0


def same_bound(response: str, reference: str) -> float:
    found = re.findall(r"-?\d{1,9}", response, re.ASCII)
    return 1.0 if bound(response) and found == re.findall(r"-?\d+", reference) else 0.0


def strict_or_not(response: str, reference: str) -> float:
    """Signs that keyboards lack are written in several ways."""

    def clean(text: str) -> str:
        return re.sub("≤|=<|<=", "<", re.sub("≥|=>|>=", ">", " ".join(text.split())))

    return 1.0 if clean(response) == clean(reference) else 0.0


def sides_in_any_order(response: str, reference: str) -> float:
    return 1.0 if sorted(response.split()) == sorted(reference.split()) else 0.0


def either_side(response: str, reference: str) -> float:
    """3 < x is x > 3."""
    text = response.strip().replace("≤", "<=").replace("≥", ">=")
    got = bound(text)
    if found := TURNED.fullmatch(text):
        got = OTHER_WAY[found.group(2)], int(found.group(1))
    return 1.0 if got is not None and got == bound(reference) else 0.0


def inequality_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
