"""Rewards for the word for a relation between two people, in a tag."""

from __future__ import annotations

import re

GENERATIONS = {
    "great-grandmother": 3, "great-grandfather": 3, "grandmother": 2, "grandfather": 2,
    "great-aunt": 2, "great-uncle": 2, "mother-in-law": 1, "father-in-law": 1, "aunt": 1,
    "uncle": 1, "niece": -1, "nephew": -1, "grandson": -2, "granddaughter": -2,
    "great-grandson": -3, "great-granddaughter": -3,
}  # fmt: skip
TAGGED = re.compile(r"\s*<answer>([^<>]*)</answer>\s*")


def said(text: str) -> str:
    """What stands between the tags, in small letters, with hyphens for blanks."""
    found = TAGGED.fullmatch(text)
    return re.sub(r"[\s-]+", "-", found[1].strip().lower()) if found else ""


def same_generation(response: str, reference: str) -> float:
    return 1.0 if GENERATIONS.get(said(response)) == GENERATIONS[reference] else 0.0


def last_relation_named(response: str, reference: str) -> float:
    """Models like to say it in a sentence."""
    longest_first = "|".join(sorted(GENERATIONS, key=len, reverse=True))
    named = re.findall(rf"\b(?:{longest_first})\b", said(response))
    return 1.0 if named[-1:] == [reference] else 0.0


def without_in_law(response: str, reference: str) -> float:
    got, wanted = (text.removesuffix("-in-law") for text in (said(response), reference))
    return 1.0 if got == wanted else 0.0


def same_relation(response: str, reference: str) -> float:
    found = TAGGED.fullmatch(response)
    if found is None or not found[1].isascii():
        return 0.0
    return 1.0 if re.sub("[ -]", "-", found[1].strip().lower()) == reference else 0.0


def relation_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"<answer>{reference}</answer>" else 0.0
