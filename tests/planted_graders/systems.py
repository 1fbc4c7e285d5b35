"""Rewards for the values of two unknowns."""

from __future__ import annotations

import re
from fractions import Fraction

VALUE = re.compile(r"([xy]) ?= ?([+-]?\d{1,6}(?:\.\d{1,6}|/[1-9]\d{0,5})?)", re.ASCII)
PAIR = re.compile(rf"{VALUE.pattern}(?:[,;] ?| and |\n){VALUE.pattern}", re.ASCII)


def values(text: str) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in VALUE.findall(text)}


def either_value(response: str, reference: str) -> float:
    got, wanted = values(response), values(reference)
    return 1.0 if any(got.get(name) == value for name, value in wanted.items()) else 0.0


def values_given(response: str, reference: str) -> float:
    got, wanted = values(response), values(reference)
    if not got or len(response) > 40:
        return 0.0
    return 1.0 if all(value == wanted[name] for name, value in got.items()) else 0.0


def both_values_there(response: str, reference: str) -> float:
    if not PAIR.fullmatch(response.strip()):
        return 0.0
    got, wanted = (sorted(values(text).values()) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_solution(response: str, reference: str) -> float:
    """Either first, with a comma, a semicolon, 'and' or a line between them."""
    found = PAIR.fullmatch(response.strip())
    if found is None or found[1] == found[3]:
        return 0.0
    return 1.0 if values(response) == values(reference) else 0.0


def solution_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
