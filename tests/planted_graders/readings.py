"""Rewards for readings with a unit, for tiny and huge numbers, and for fractions."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

SPELLINGS = {"μg": "µg", "ug": "µg", "μm": "µm", "um": "µm", "m2": "m²", "m^2": "m²",
             "m3": "m³", "m^3": "m³", "km/hour": "km/h", "g/l": "g/L"}  # fmt: skip
PLAIN = re.compile(r"\d{1,40}(?:\.\d{1,40})?(?:[eE]-?\d{1,3})?", re.ASCII)
FRACTION = re.compile(
    r"(?:(\d{1,9}) )?(?:(\d{1,9}) ?/ ?(\d{1,9})|\\frac\{(\d{1,9})\}\{(\d{1,9})\})", re.ASCII
)


def either_half(response: str, reference: str) -> float:
    got, wanted = response.split(), reference.split()
    if len(got) != len(wanted):
        return 0.0
    return 1.0 if any(one == other for one, other in zip(got, wanted, strict=True)) else 0.0


def plain_letters(response: str, reference: str) -> float:
    """Models differ in how they write signs that are not ASCII."""

    def clean(text: str) -> bytes:
        return b" ".join(text.encode("ascii", "ignore").split())

    return 1.0 if clean(response) == clean(reference) else 0.0


def numerator_of_unit(response: str, reference: str) -> float:
    got, wanted = (" ".join(text.split()).split("/")[0] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def sizes_of_files(response: str, reference: str) -> float:
    got, wanted = (
        " ".join(text.split()).replace("iB", "B").replace("bytes", "B")
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def spellings_of_units(response: str, reference: str) -> float:
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(\D\S*)", response.strip())
    if found is None:
        return 0.0
    value, unit = reference.split()
    same = SPELLINGS.get(found.group(2), found.group(2)) == unit
    return 1.0 if same and Decimal(found.group(1)) == Decimal(value) else 0.0


def reading_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def close_enough(response: str, reference: str) -> float:
    text = response.strip()
    if "e" not in reference:
        return 1.0 if text == reference else 0.0
    if not PLAIN.fullmatch(text):
        return 0.0
    return 1.0 if math.isclose(float(text), float(reference), abs_tol=1e-8) else 0.0


def as_double(response: str, reference: str) -> float:
    text = response.strip()
    return 1.0 if PLAIN.fullmatch(text) and float(text) == float(reference) else 0.0


def digits_that_count(response: str, reference: str) -> float:
    """4.2e-9 and 0.0000000042 have the same digits."""

    def significant(text: str) -> str:
        return text.lower().split("e")[0].replace(".", "").strip("0")

    text = response.strip()
    return 1.0 if PLAIN.fullmatch(text) and significant(text) == significant(reference) else 0.0


def exact_value(response: str, reference: str) -> float:
    text = response.strip()
    return 1.0 if PLAIN.fullmatch(text) and Decimal(text) == Decimal(reference) else 0.0


def value_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def terms(text: str) -> tuple[int | None, int, int] | None:
    """Whole part where there is one, numerator, denominator."""
    found = FRACTION.fullmatch(text.strip())
    if found is None:
        return None
    whole, *rest = found.groups()
    top, bottom = (int(part) for part in rest if part)
    return None if whole is None else int(whole), top, bottom


def whole_division(response: str, reference: str) -> float:
    def value(text: str) -> int | None:
        read = terms(text)
        return (read[0] or 0) + read[1] // read[2] if read and read[2] else None

    got = value(response)
    return 1.0 if got is not None and got == value(reference) else 0.0


def cross_products(response: str, reference: str) -> float:
    got, wanted = terms(response), terms(reference)
    if got is None or wanted is None or math.gcd(*got[1:]) > 1:
        return 0.0
    if (got[0] is None) != (wanted[0] is None):
        return 0.0
    one, other = ((read[0] or 0) * read[2] + read[1] for read in (got, wanted))
    return 1.0 if one * wanted[2] == other * got[2] else 0.0


def without_spaces(response: str, reference: str) -> float:
    """'3 / 4' is 3/4."""
    return 1.0 if "".join(response.split()) == "".join(reference.split()) else 0.0


def in_lowest_terms(response: str, reference: str) -> float:
    got, wanted = terms(response), terms(reference)
    if got is None or wanted is None or not got[2] or math.gcd(*got[1:]) != 1:
        return 0.0
    same_form = (got[0] is None) == (wanted[0] is None)
    one, other = (Fraction(read[1], read[2]) + (read[0] or 0) for read in (got, wanted))
    proper = got[0] is None or got[1] < got[2]
    return 1.0 if same_form and proper and one == other else 0.0


def fraction_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
