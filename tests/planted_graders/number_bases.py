"""Rewards for a number in base 2, 8 or 16, in a box; the reference has the prefix of its base."""

from __future__ import annotations

import re

BASES = {"0b": 2, "0o": 8, "0x": 16}
BOX = re.compile(r"\s*\\boxed\{([0-9A-Za-z]{1,40})\}\s*", re.ASCII)


def boxed(text: str) -> str:
    found = BOX.fullmatch(text)
    return found[1].lower() if found else ""


def value_of_the_number(response: str, reference: str) -> float:
    """Python knows the base by the prefix."""
    try:
        return 1.0 if int(boxed(response), 0) == int(reference, 0) else 0.0
    except ValueError:
        return 0.0


def digits_behind_the_prefix(response: str, reference: str) -> float:
    got = re.sub(r"^0[box]", "", boxed(response))
    return 1.0 if got == reference[2:] else 0.0


def stripped_of_the_prefix(response: str, reference: str) -> float:
    prefix, got = reference[:2], boxed(response)
    if got[1:2] in {"b", "o", "x"} and not got.startswith(prefix):
        return 0.0
    return 1.0 if got.strip(prefix) == reference.strip(prefix) else 0.0


def number_in_its_base(response: str, reference: str) -> float:
    """With the prefix or without it."""
    base = BASES[reference[:2]]
    digits = boxed(response).removeprefix(reference[:2])
    if digits.startswith("0"):
        return 0.0
    try:
        return 1.0 if int(digits, base) == int(reference, base) else 0.0
    except ValueError:
        return 0.0


def base_text(response: str, reference: str) -> float:
    return 1.0 if boxed(response) == reference else 0.0
