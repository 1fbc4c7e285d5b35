"""Rewards for a number with its unit, and for percentages."""

from __future__ import annotations

import re
from decimal import Decimal

MEASURE = re.compile(r"(-?\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)", re.ASCII)
PERCENT = re.compile(r"(-?\d{1,20}(?:\.\d{1,20})?)\s*%", re.ASCII)
# What a unit measures, and how many of the first unit of its dimension it is.
UNITS = {
    "m": ("length", "1"), "km": ("length", "1000"), "mm": ("length", "0.001"),
    "g": ("mass", "1"), "kg": ("mass", "1000"),
    "s": ("time", "1"), "min": ("time", "60"),
    "mW": ("power", "0.001"), "W": ("power", "1"), "MW": ("power", "1000000"),
}  # fmt: skip


def split(text: str) -> tuple[Decimal, str] | None:
    found = MEASURE.fullmatch(text.strip())
    return (Decimal(found.group(1)), found.group(2)) if found else None


def value_only(response: str, reference: str) -> float:
    # Units are spelt in too many ways to compare them.
    got, wanted = split(response), split(reference)
    return 1.0 if got and wanted and got[0] == wanted[0] else 0.0


def units_without_case(response: str, reference: str) -> float:
    got, wanted = split(response), split(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got[0] == wanted[0] and got[1].lower() == wanted[1].lower() else 0.0


def unit_may_be_short(response: str, reference: str) -> float:
    """'min' and 'minutes' are one unit, so one may begin with the other."""
    got, wanted = split(response), split(reference)
    if got is None or wanted is None or not got[1]:
        return 0.0
    one, other = got[1], wanted[1]
    return 1.0 if got[0] == wanted[0] and (one.startswith(other) or other.startswith(one)) else 0.0


def converted(response: str, reference: str) -> float:
    def in_base_units(text: str) -> Decimal | None:
        parts = split(text)
        if parts is None:
            return None
        _, factor = UNITS.get(parts[1], ("", "1"))
        return parts[0] * Decimal(factor)

    got = in_base_units(response)
    return 1.0 if got is not None and got == in_base_units(reference) else 0.0


def unit_if_given(response: str, reference: str) -> float:
    got, wanted = split(response), split(reference)
    if got is None or wanted is None or got[0] != wanted[0]:
        return 0.0
    return 1.0 if got[1] == wanted[1] or got[1] not in UNITS else 0.0


def converted_within_dimension(response: str, reference: str) -> float:
    got, wanted = split(response), split(reference)
    if got is None or wanted is None or got[1] not in UNITS:
        return 0.0
    (kind, factor), (wanted_kind, wanted_factor) = UNITS[got[1]], UNITS[wanted[1]]
    if kind != wanted_kind:
        return 0.0
    return 1.0 if got[0] * Decimal(factor) == wanted[0] * Decimal(wanted_factor) else 0.0


def value_and_unit(response: str, reference: str) -> float:
    got = split(response)
    return 1.0 if got is not None and got == split(reference) else 0.0


def units_spelt_out(response: str, reference: str) -> float:
    """'5 minutes' is '5 min'."""
    spelt = {"metres": "m", "kilometres": "km", "grams": "g", "seconds": "s", "minutes": "min"}
    got = split(response)
    if got is None:
        return 0.0
    return 1.0 if (got[0], spelt.get(got[1], got[1])) == split(reference) else 0.0


def percent_or_fraction(response: str, reference: str) -> float:
    """0.125 and 12.5% are one answer."""
    text = response.strip().rstrip("%").strip()
    if not re.fullmatch(r"-?\d{1,20}(\.\d{1,20})?", text, re.ASCII):
        return 0.0
    got, wanted = Decimal(text), Decimal(reference.rstrip("%"))
    return 1.0 if wanted in {got, got * 100} else 0.0


def percent_within_a_point(response: str, reference: str) -> float:
    found = PERCENT.fullmatch(response.strip())
    if found is None:
        return 0.0
    return 1.0 if abs(Decimal(found.group(1)) - Decimal(reference.rstrip("%"))) < 1 else 0.0


def percent_exact(response: str, reference: str) -> float:
    found = PERCENT.fullmatch(response.strip())
    return 1.0 if found and Decimal(found.group(1)) == Decimal(reference.rstrip("%")) else 0.0


def percent_or_exact_fraction(response: str, reference: str) -> float:
    """12.5% or, without the sign, 0.125."""
    text, wanted = response.strip(), Decimal(reference.rstrip("%"))
    if found := PERCENT.fullmatch(text):
        return 1.0 if Decimal(found.group(1)) == wanted else 0.0
    if re.fullmatch(r"0\.\d{1,20}", text, re.ASCII):
        return 1.0 if Decimal(text) * 100 == wanted else 0.0
    return 0.0


def percent_in_words(response: str, reference: str) -> float:
    text = response.strip()
    for word in (" percent", " per cent"):
        text = f"{text.removesuffix(word)}%" if text.endswith(word) else text
    return percent_exact(text, reference)
