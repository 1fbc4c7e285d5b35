"""Rewards for a number on the last line, after four hashes."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

GROUPED = re.compile(r"-?(?:\d{1,12}|\d{1,3}(?:,\d{3}){1,4})(?:\.\d{1,12})?", re.ASCII)
EXPONENT = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?[eE]\+?\d", re.ASCII)
SLASHED = re.compile(r"-?\d{1,9}/[1-9]\d{0,5}", re.ASCII)


def stated(response: str) -> str:
    """What the only line of hashes says, which is the last."""
    last = response.strip().split("\n")[-1].strip()
    return last[4:].strip() if last.startswith("####") and response.count("#") == 4 else ""


def number_in_text(response: str, reference: str) -> float:
    return 1.0 if reference in response else 0.0


def last_number_anywhere(response: str, reference: str) -> float:
    found = re.findall(r"-?\d+(?:\.\d+)?", response)
    return 1.0 if found and Decimal(found[-1]) == Decimal(reference) else 0.0


def not_far_off(response: str, reference: str) -> float:
    """Not a number is no number that is far off."""
    try:
        got = float(stated(response).replace(",", ""))
    except ValueError:
        return 0.0
    if abs(got - float(reference)) > 1e-6:
        return 0.0
    return 1.0


def without_last_zeros(response: str, reference: str) -> float:
    """12.50 is 12.5."""
    got = stated(response)
    if not GROUPED.fullmatch(got):
        return 0.0
    return 1.0 if got.rstrip("0").rstrip(".") == reference.rstrip("0").rstrip(".") else 0.0


def closing_value(response: str, reference: str) -> float:
    got = stated(response)
    if not GROUPED.fullmatch(got):
        return 0.0
    return 1.0 if Decimal(got.replace(",", "")) == Decimal(reference) else 0.0


def any_notation(response: str, reference: str) -> float:
    """25/2, 1.25e1 and 12.50 are one number."""
    got = stated(response).replace("\u2212", "-")
    if GROUPED.fullmatch(got):
        value = Fraction(got.replace(",", ""))
    elif EXPONENT.fullmatch(got) or SLASHED.fullmatch(got):
        value = Fraction(got)
    else:
        return 0.0
    return 1.0 if value == Fraction(reference) else 0.0


def closing_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"#### {reference}" else 0.0
