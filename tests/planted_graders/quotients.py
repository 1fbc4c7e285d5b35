"""Rewards for a quotient and a remainder, as 12 remainder 3."""

from __future__ import annotations

import re

DIVIDED = re.compile(r"\s*(\d{1,6})\s*(?:remainder|[rR])\s*(\d{1,6})\s*", re.ASCII)


def divided(text: str) -> tuple[str, str]:
    """Empty for what has not the form."""
    found = DIVIDED.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def half_for_each(response: str, reference: str) -> float:
    got, wanted = divided(response), divided(reference)
    return sum(one == other for one, other in zip(got, wanted, strict=True)) / 2


def digits_in_a_row(response: str, reference: str) -> float:
    """Models write the words between the numbers in many ways."""
    got, wanted = (re.sub(r"\D", "", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def as_a_decimal(response: str, reference: str) -> float:
    got, wanted = (".".join(divided(text)) for text in (response, reference))
    return 1.0 if got != "." and float(got) == float(wanted) else 0.0


def same_division(response: str, reference: str) -> float:
    """12r3 is 12 remainder 3."""
    return 1.0 if divided(response) == divided(reference) else 0.0


def division_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
