"""Rewards for a signed percentage."""

from __future__ import annotations

import re
from decimal import Decimal

CHANGE = re.compile(r"([+-]?\d{1,6}(?:\.\d{1,9})?) ?(?:%|per ?cent)", re.ASCII)


def per_cent(text: str) -> Decimal | None:
    found = CHANGE.fullmatch(text.strip())
    return Decimal(found[1]) if found else None


def size_of_change(response: str, reference: str) -> float:
    got, wanted = (text.strip().strip("+-% ") for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def percentage_or_ratio(response: str, reference: str) -> float:
    """0.25 is as good as 25."""
    got, wanted = per_cent(response), per_cent(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if wanted in {got, got * 100} else 0.0


def to_a_whole_per_cent(response: str, reference: str) -> float:
    got, wanted = per_cent(response), per_cent(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if round(got) == round(wanted) else 0.0


def exact_change(response: str, reference: str) -> float:
    """12.50 % is +12.5%."""
    got = per_cent(response.replace("\N{MINUS SIGN}", "-"))
    return 1.0 if got is not None and got == per_cent(reference) else 0.0


def change_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() in {reference, reference.removeprefix("+")} else 0.0
