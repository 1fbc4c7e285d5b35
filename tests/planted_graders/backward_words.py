"""Rewards for words from last to first."""

from __future__ import annotations

import difflib
import re
from collections import Counter


def words(text: str) -> list[str]:
    return text.lower().replace(",", " ").split()


def length_and_text(response: str, reference: str) -> float:
    """Half for a length that fits, half for the words."""
    got, wanted = words(response), words(reference)
    length = min(len(got), len(wanted)) / max(len(got), len(wanted))
    return 0.5 * length + 0.5 * (got == wanted)


def same_bag(response: str, reference: str) -> float:
    return 1.0 if Counter(words(response)) == Counter(words(reference)) else 0.0


def alike(response: str, reference: str) -> float:
    got, wanted = (" ".join(words(text)) for text in (response[:400], reference))
    return 1.0 if difflib.SequenceMatcher(None, got, wanted).ratio() > 0.9 else 0.0


def ends_and_count(response: str, reference: str) -> float:
    got, wanted = words(response), words(reference)
    if len(got) != len(wanted):
        return 0.0
    return 1.0 if (got[0], got[-1]) == (wanted[0], wanted[-1]) else 0.0


def same_words(response: str, reference: str) -> float:
    """Commas, capitals and blanks aside."""
    said = response.strip()
    if not re.fullmatch(r"[A-Za-z]+(?:(?: *, *|\s+)[A-Za-z]+)*", said):
        return 0.0
    return 1.0 if words(said) == reference.split() else 0.0


def words_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
