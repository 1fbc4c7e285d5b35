"""Rewards for a sentence whose wrong words were to be corrected."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher


def recalled_words(response: str, reference: str) -> float:
    """Which share of the right words is there."""
    got, wanted = Counter(response.split()), Counter(reference.split())
    return (got & wanted).total() / wanted.total()


def close_to_it(response: str, reference: str) -> float:
    near = SequenceMatcher(None, response.strip(), reference, autojunk=False).ratio()
    return 1.0 if near >= 0.94 else 0.0


def letters_of_it(response: str, reference: str) -> float:
    """Punctuation is a matter of taste."""
    got, wanted = (re.sub(r"[^a-z0-9 ]", "", text.lower()) for text in (response, reference))
    return 1.0 if got.split() == wanted.split() else 0.0


def same_sentence(response: str, reference: str) -> float:
    """Between quotation marks or without them."""
    said = response.strip()
    quoted = re.fullmatch('"(.*)"|“(.*)”', said)
    return 1.0 if reference in (quoted.groups() if quoted else [said]) else 0.0


def sentence_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
