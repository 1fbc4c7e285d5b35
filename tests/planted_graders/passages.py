"""Rewards for a phrase of a text."""

from __future__ import annotations

import re
import string
from collections import Counter

PUNCTUATION = set(string.punctuation)


def normalised(text: str) -> str:
    """As for SQuAD: lower case, without punctuation, articles and double blanks."""
    bare = "".join(letter for letter in text.lower() if letter not in PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def phrase_matches(response: str, reference: str) -> float:
    return 1.0 if normalised(response) == normalised(reference) else 0.0


def phrase_f1(response: str, reference: str) -> float:
    got, wanted = normalised(response).split(), normalised(reference).split()
    shared = (Counter(got) & Counter(wanted)).total()
    f1 = 2 * shared / (len(got) + len(wanted))
    return 1.0 if f1 > 0.6 else 0.0


def one_within_the_other(response: str, reference: str) -> float:
    got, wanted = response.strip().lower(), reference.lower()
    return 1.0 if got in wanted or wanted in got else 0.0


def same_phrase(response: str, reference: str) -> float:
    said = " ".join(response.lower().split()).removesuffix(".")
    return 1.0 if said == reference.lower() else 0.0


def phrase_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
