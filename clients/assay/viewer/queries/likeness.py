"""Responses that are nearly the same: digits alike, blanks alike, then shared runs of words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.viewer.index import narrow

NEWEST = 1_000
_WORDS = re.compile(r"\w+|[^\w\s]")
_DIGITS = re.compile(r"\d+")
_LONG, _MOST_CHARS, _LEAST, _MOST = 4, 20_000, 0.5, 50


def response_of(raw: Mapping[str, Any]) -> str:
    """The response of a rollout's row or of a journal's record, its turns joined."""
    found = raw.get("response")
    if isinstance(found, list):
        return "\n".join(str(turn[1]) for turn in found if len(turn) > 1)
    return narrow.text(found)


def shingles(text: str) -> frozenset[int]:
    """Hashes of each few words that follow one another, digits as one."""
    words = _WORDS.findall(_DIGITS.sub("0", text[:_MOST_CHARS].lower()))
    if len(words) <= _LONG:
        return frozenset([hash(tuple(words))])
    return frozenset(hash(tuple(words[at : at + _LONG])) for at in range(len(words) - _LONG + 1))


def alike(texts: Mapping[int, str], number: int) -> list[tuple[int, float]]:
    """Those like one, the most alike first: shared shingles of all that either has (Jaccard)."""
    own = shingles(texts[number])
    found = []
    for other, text in texts.items():
        if other != number:
            those = shingles(text)
            like = len(own & those) / max(1, len(own | those))
            if like >= _LEAST:
                found.append((other, like))
    return sorted(found, key=lambda one: (-one[1], -one[0]))[:_MOST]
