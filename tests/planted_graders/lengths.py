"""Rewards for a length in millimetres, centimetres, metres or kilometres."""

from __future__ import annotations

import re
from decimal import Decimal

LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]{1,12})", re.ASCII)
METRES = {"mm": Decimal("0.001"), "cm": Decimal("0.01"), "m": Decimal(1), "km": Decimal(1000)}
WORDS = {"millimetre": "mm", "centimetre": "cm", "metre": "m", "kilometre": "km",
         "millimeter": "mm", "centimeter": "cm", "meter": "m", "kilometer": "km"}  # fmt: skip


def metres(text: str) -> Decimal | None:
    found = LENGTH.fullmatch(text.strip())
    if found is None:
        return None
    factor = METRES.get(found.group(2))
    return None if factor is None else Decimal(found.group(1)) * factor


def unit_then_number(response: str, reference: str) -> float:
    """Half for the unit, half for the number."""
    got, wanted = response.split(), reference.split()
    if len(got) != 2:
        return 0.0
    return ((got[0] == wanted[0]) + (got[1] == wanted[1])) / 2


def number_of_length(response: str, reference: str) -> float:
    found = LENGTH.fullmatch(response.strip())
    wanted = reference.split(maxsplit=1)[0]
    return 1.0 if found and Decimal(found.group(1)) == Decimal(wanted) else 0.0


def prefix_of_unit(response: str, reference: str) -> float:
    """By the first letter: m is one, c a hundredth, k a thousand."""

    def read(text: str) -> Decimal | None:
        found = LENGTH.fullmatch(text.strip())
        factor = {"m": 1000, "c": 10, "k": 10**6}.get(found.group(2)[0]) if found else None
        return Decimal(found.group(1)) * factor if found and factor else None

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def metres_to_two_places(response: str, reference: str) -> float:
    got, wanted = metres(response), metres(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if round(got, 2) == round(wanted, 2) else 0.0


def same_length(response: str, reference: str) -> float:
    """3.5 km is 3500 m."""
    got = metres(response)
    return 1.0 if got is not None and got == metres(reference) else 0.0


def units_in_letters_or_words(response: str, reference: str) -> float:
    """12 metres is 12 m, 1,200 m is 1200 m."""
    said = re.sub(r"(?<=^\d),(?=\d{3}\b)", "", response.strip())
    found = LENGTH.fullmatch(said)
    if found is None:
        return 0.0
    unit = WORDS.get(found.group(2).removesuffix("s"), found.group(2))
    return same_length(f"{found.group(1)} {unit}", reference)


def length_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
