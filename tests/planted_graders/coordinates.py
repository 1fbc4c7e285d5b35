"""Rewards for latitude and longitude in degrees, with a sign or with N, S, E or W."""

from __future__ import annotations

import re
from decimal import Decimal

PLACE = re.compile(
    r"\s*(-?)(\d{1,2}\.\d{4})(?: ?([NS]))?, ?(-?)(\d{1,3}\.\d{4})(?: ?([EW]))?\s*", re.ASCII
)
Place = tuple[Decimal, Decimal]


def place(text: str) -> Place | None:
    """South and west below zero; nothing for what has not the form."""
    found = PLACE.fullmatch(text)
    if found is None or (found[3] is None) != (found[6] is None):
        return None
    if found[3] and (found[1] or found[4]):
        return None
    north, east = Decimal(found[2]), Decimal(found[5])
    south, west = found[1] or found[3] == "S", found[4] or found[6] == "W"
    return -north if south else north, -east if west else east


def near_on_the_globe(response: str, reference: str) -> float:
    """Less for each degree that it is off."""
    got, wanted = place(response), place(reference)
    if got is None or wanted is None:
        return 0.0
    off = sum(abs(one - other) for one, other in zip(got, wanted, strict=True))
    return max(0.0, 1.0 - float(off) / 360)


def degrees_without_sign(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"\d+\.\d{4}", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def longitude_around_the_globe(response: str, reference: str) -> float:
    """Longitudes begin anew."""
    got, wanted = place(response), place(reference)
    if got is None or wanted is None or got[0] != wanted[0]:
        return 0.0
    return 1.0 if (got[1] + 180) % 180 == (wanted[1] + 180) % 180 else 0.0


def same_place(response: str, reference: str) -> float:
    """With signs or with letters."""
    got = place(response)
    return 1.0 if got is not None and got == place(reference) else 0.0


def place_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
