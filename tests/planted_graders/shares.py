"""Rewards for a share as a fraction, a decimal or a percentage."""

from __future__ import annotations

import re
from fractions import Fraction

SHARE = re.compile(
    r"(?:(\d{1,6}) ?/ ?([1-9]\d{0,5})|(\d{0,6}\.\d{1,12}|\d{1,6}\.?)( ?%)?)", re.ASCII
)


def share_of(text: str) -> Fraction | None:
    found = SHARE.fullmatch(text.strip())
    if found is None:
        return None
    top, bottom, decimal, per_cent = found.groups()
    if bottom:
        return Fraction(int(top), int(bottom))
    return Fraction(decimal) / (100 if per_cent else 1)


def some_but_not_all(response: str, reference: str) -> float:
    """Within one half of it."""
    got, wanted = share_of(response), share_of(reference)
    return 1.0 if got is not None and wanted is not None and abs(got - wanted) < 0.5 else 0.0


def share_to_two_places(response: str, reference: str) -> float:
    got, wanted = share_of(response), share_of(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if abs(got - wanted) < 0.005 else 0.0


def part_for_part(response: str, reference: str) -> float:
    got, wanted = (text.strip().split("/") for text in (response, reference))
    same = all(one.strip() == other for one, other in zip(got, wanted, strict=False))
    return 1.0 if same else 0.0


def simplest_fraction(response: str, reference: str) -> float:
    """0.333 is meant to be 1/3."""
    got, wanted = share_of(response), share_of(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got.limit_denominator(130) == wanted else 0.0


def exact_share(response: str, reference: str) -> float:
    """3/8, 6/16, 0.375 and 37.5% are one share."""
    got = share_of(response)
    return 1.0 if got is not None and got == Fraction(reference) else 0.0


def fraction_not_reduced_too(response: str, reference: str) -> float:
    found = re.fullmatch(r"(\d{1,6}) ?/ ?([1-9]\d{0,5})", response.strip(), re.ASCII)
    return 1.0 if found and Fraction(*map(int, found.groups())) == Fraction(reference) else 0.0


def share_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
