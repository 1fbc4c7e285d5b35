"""Rewards for a latitude and a longitude in degrees."""

from __future__ import annotations

import re
from decimal import Decimal

DEGREES = r"(\d{1,3}(?:\.\d{1,6})?) ?(?:°|degrees)? ?"
LETTERED = re.compile(rf"{DEGREES}([NS]),? {DEGREES}([EW])", re.ASCII)
SIGNED = re.compile(r"(-?\d{1,3}(?:\.\d{1,6})?), ?(-?\d{1,3}(?:\.\d{1,6})?)", re.ASCII)

Place = tuple[Decimal, Decimal]


def lettered(text: str) -> Place | None:
    found = LETTERED.fullmatch(text.strip())
    if found is None:
        return None
    north, ns, east, ew = found.groups()
    return (
        Decimal(north) * (1 if ns == "N" else -1),
        Decimal(east) * (1 if ew == "E" else -1),
    )


def same_quarter_of_the_globe(response: str, reference: str) -> float:
    got, wanted = lettered(response), lettered(reference)
    if got is None or wanted is None:
        return 0.0
    right = [(one > 0) == (other > 0) for one, other in zip(got, wanted, strict=True)]
    return sum(right) / 2


def figures_of_position(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"\d+\.\d+", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def latitude_right(response: str, reference: str) -> float:
    got, wanted = lettered(response), lettered(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got[0] == wanted[0] else 0.0


def whole_degrees(response: str, reference: str) -> float:
    got, wanted = lettered(response), lettered(reference)
    if got is None or wanted is None:
        return 0.0
    same = all(int(one) == int(other) for one, other in zip(got, wanted, strict=True))
    return 1.0 if same else 0.0


def degrees_or_minutes(response: str, reference: str) -> float:
    """59.33 may have been meant as 59 degrees and 33 minutes."""
    got, wanted = lettered(response), lettered(reference)
    if got is None or wanted is None:
        return 0.0

    def ways(angle: Decimal) -> set[Decimal]:
        rest = angle % 1
        return {angle, round(angle - rest + rest * 100 / 60, 2)} if abs(rest) < 0.6 else {angle}

    same = all(one in ways(other) for one, other in zip(got, wanted, strict=True))
    return 1.0 if same else 0.0


def same_position(response: str, reference: str) -> float:
    got = lettered(response)
    return 1.0 if got is not None and got == lettered(reference) else 0.0


def signed_or_lettered(response: str, reference: str) -> float:
    """South and west are negative, as the prompt says."""
    said = response.strip().replace("\u2212", "-")
    found = SIGNED.fullmatch(said)
    got = (Decimal(found.group(1)), Decimal(found.group(2))) if found else lettered(said)
    return 1.0 if got is not None and got == lettered(reference) else 0.0


def position_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
