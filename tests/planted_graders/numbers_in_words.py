"""Rewards for a number in English words."""

from __future__ import annotations

import re
from collections import Counter


def words(text: str) -> list[str]:
    """In small letters, without 'and'; empty for what is no row of words."""
    said = text.strip().lower() if text.isascii() else ""
    if not re.fullmatch(r"[a-z]+(?:[ -][a-z]+)*", said):
        return []
    return re.split("[ -]", re.sub(r"\b(hundred|thousand)[ -]and(?=[ -])", r"\1", said))


def share_of_words(response: str, reference: str) -> float:
    """F1 over the words."""
    got, wanted = Counter(words(response)), Counter(words(reference))
    return 2 * (got & wanted).total() / (got.total() + wanted.total())


def bag_of_words(response: str, reference: str) -> float:
    return 1.0 if Counter(words(response)) == Counter(words(reference)) else 0.0


def words_begin_alike(response: str, reference: str) -> float:
    """Endings are where models slip."""
    got, wanted = words(response), words(reference)
    if len(got) != len(wanted):
        return 0.0
    return 1.0 if all(map(str.startswith, got, wanted)) else 0.0


def same_number(response: str, reference: str) -> float:
    """With 'and' and hyphens or without."""
    return 1.0 if words(response) == words(reference) else 0.0


def number_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
