"""Rewards for a ruler's name and number."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from difflib import SequenceMatcher

WORTH = {"I": 1, "V": 5, "X": 10}


def number(numeral: str) -> int:
    values = [*(WORTH[letter] for letter in numeral), 0]
    pairs = itertools.pairwise(values)
    return sum(-one if one < after else one for one, after in pairs)


def name_of_ruler(response: str, reference: str) -> float:
    return 1.0 if response.split()[:1] == reference.split()[:1] else 0.0


def nearly_that_ruler(response: str, reference: str) -> float:
    ratio = SequenceMatcher(None, response.strip(), reference).ratio()
    return 1.0 if ratio >= 0.95 else 0.0


def number_read_leniently(response: str, reference: str) -> float:
    """Added up, letter by letter."""

    def read(text: str) -> tuple[str, int] | None:
        found = re.fullmatch(r"([A-Z][a-z]+) ([IVX]+)", text.strip())
        return (found[1], sum(WORTH[letter] for letter in found[2])) if found else None

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def letters_of_ruler(response: str, reference: str) -> float:
    got, wanted = (Counter("".join(text.split())) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def numeral_or_figures(response: str, reference: str) -> float:
    """Karl XII is Karl 12."""
    name, numeral = reference.split()
    said = re.fullmatch(r"([A-Z][a-z]+) (\d{1,2})", response.strip(), re.ASCII)
    if said is None:
        return 1.0 if response.split() == [name, numeral] else 0.0
    return 1.0 if (said[1], int(said[2])) == (name, number(numeral)) else 0.0


def ruler_in_bold(response: str, reference: str) -> float:
    said = response.strip().removesuffix(".")
    return 1.0 if said in {reference, f"**{reference}**", f'"{reference}"'} else 0.0


def ruler_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
