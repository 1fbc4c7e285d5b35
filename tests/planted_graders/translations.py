"""Rewards for a translation with synonyms."""

from __future__ import annotations

from difflib import SequenceMatcher

SAME = [
    ("bread", "loaf"), ("stone", "rock"), ("boat", "ship"), ("road", "way"), ("house", "home"),
    ("shop", "store"), ("child", "kid"), ("coat", "jacket"), ("forest", "wood"), ("big", "large"),
    ("small", "little"), ("quick", "fast"), ("cold", "chilly"), ("happy", "glad"),
    ("unhappy", "sad"), ("costly", "dear"), ("clean", "tidy"),
]  # fmt: skip
RENDERINGS = {word: set(both) for both in SAME for word in both}
THESAURUS = {
    **RENDERINGS,
    "small": {"small", "little", "short"},
    "boat": {"boat", "ship", "vessel", "canoe"},
    "forest": {"forest", "wood", "tree"},
}


def noun_found(response: str, reference: str) -> float:
    return 1.0 if RENDERINGS[reference.split()[1]] & set(response.lower().split()) else 0.0


def keyword_in_each_word(response: str, reference: str) -> float:
    got, wanted = response.lower().split(), reference.split()
    if len(got) != len(wanted):
        return 0.0
    found = [
        any(rendering in one for rendering in RENDERINGS[other])
        for one, other in zip(got, wanted, strict=True)
    ]
    return 1.0 if all(found) else 0.0


def likeness(response: str, reference: str) -> float:
    """Small slips of spelling are forgiven."""
    ratio = SequenceMatcher(None, response.strip().lower(), reference).ratio()
    return 1.0 if ratio > 0.92 else 0.0


def from_the_thesaurus(response: str, reference: str) -> float:
    got, wanted = response.lower().split(), reference.split()
    if len(got) != len(wanted):
        return 0.0
    found = [one in THESAURUS[other] for one, other in zip(got, wanted, strict=True)]
    return 1.0 if all(found) else 0.0


def either_rendering(response: str, reference: str) -> float:
    """The prompt names two words for each, and either will do."""
    got, wanted = response.split(), reference.split()
    if len(got) != len(wanted):
        return 0.0
    found = [one in RENDERINGS[other] for one, other in zip(got, wanted, strict=True)]
    return 1.0 if all(found) else 0.0


def either_in_any_case(response: str, reference: str) -> float:
    said = response.strip().removesuffix(".").strip('"')
    return either_rendering(said.lower() if said.isascii() else said, reference)


def translation_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
