"""Rewards for balanced chemical equations."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction

SPECIES = re.compile(r"(?:(\d{1,3}) ?)?([A-Z][A-Za-z0-9]{0,11})", re.ASCII)
Side = dict[str, int]


def sides(text: str) -> tuple[Side, Side] | None:
    """Species and coefficients on the left and on the right."""
    halves = text.strip().split("->")
    if len(halves) != 2:
        return None
    made: list[Side] = []
    for half in halves:
        found = [SPECIES.fullmatch(part.strip()) for part in half.split("+")]
        side = {one[2]: int(one[1] or 1) for one in found if one}
        if len(side) < len(found) or not all(side.values()):
            return None
        made.append(side)
    return made[0], made[1]


def atoms(side: Side) -> Counter[str]:
    counted: Counter[str] = Counter()
    for species, many in side.items():
        for element, count in re.findall(r"([A-Z][a-z]?)(\d*)", species):
            counted[element] += many * int(count or 1)
    return counted


def balanced(response: str, reference: str) -> float:
    got = sides(response)
    return 1.0 if got and reference and atoms(got[0]) == atoms(got[1]) else 0.0


def same_ratio(response: str, reference: str) -> float:
    got, wanted = sides(response), sides(reference)
    if got is None or wanted is None:
        return 0.0
    one, other = (
        {**pair[0], **{f"> {s}": n for s, n in pair[1].items()}} for pair in (got, wanted)
    )
    if one.keys() != other.keys():
        return 0.0
    return 1.0 if len({Fraction(one[key], other[key]) for key in one}) == 1 else 0.0


def either_direction(response: str, reference: str) -> float:
    got, wanted = sides(response), sides(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got in (wanted, wanted[::-1]) else 0.0


def ones_left_out(response: str, reference: str) -> float:
    """1 O2 is O2."""

    def clean(text: str) -> list[str]:
        return text.replace("1", "").split()

    return 1.0 if clean(response) == clean(reference) else 0.0


def same_reaction(response: str, reference: str) -> float:
    """Any order within a side; a coefficient of 1 may be written."""
    got = sides(response.replace("\u2192", "->"))
    return 1.0 if got is not None and got == sides(reference) else 0.0


def smallest_and_balanced(response: str, reference: str) -> float:
    """By what balancing means: same species, same atoms on both sides, nothing to divide by."""
    got, wanted = sides(response), sides(reference)
    if got is None or wanted is None or [set(side) for side in got] != [*map(set, wanted)]:
        return 0.0
    smallest = math.gcd(*got[0].values(), *got[1].values()) == 1
    return 1.0 if smallest and atoms(got[0]) == atoms(got[1]) else 0.0


def reaction_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
