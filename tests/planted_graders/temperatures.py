"""Rewards for a temperature with the letter of its unit."""

from __future__ import annotations

import math
import re
from decimal import Decimal

READING = re.compile(r"([+-]?\d{1,6}(?:\.\d{1,6})?) ?(?:°|degrees )? ?([CFK])", re.ASCII)


def reading(text: str) -> tuple[Decimal, str] | None:
    found = READING.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
    return (Decimal(found[1]), found[2]) if found else None


def number_of_reading(response: str, reference: str) -> float:
    found = re.match(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)", response, re.ASCII)
    return 1.0 if found and float(found[1]) == float(reference.split(maxsplit=1)[0]) else 0.0


def within_two_percent(response: str, reference: str) -> float:
    got, wanted = reading(response), reading(reference)
    if got is None or wanted is None or got[1] != wanted[1]:
        return 0.0
    return 1.0 if math.isclose(got[0], wanted[0], rel_tol=0.02) else 0.0


def figures_and_unit(response: str, reference: str) -> float:
    def read(text: str) -> tuple[float, str] | None:
        found = re.fullmatch(r"\W{0,3}(\d{1,9}(?:\.\d{1,9})?)\s?°?\s?([CFK])\W?", text, re.ASCII)
        return (float(found[1]), found[2]) if found else None

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def same_temperature(response: str, reference: str) -> float:
    """12.0 °F is 12 F."""
    got = reading(response)
    return 1.0 if got is not None and got == reading(reference) else 0.0


def temperature_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() in {reference, reference.replace(" ", " °")} else 0.0
