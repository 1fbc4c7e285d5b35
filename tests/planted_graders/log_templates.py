"""Rewards for the template of lines of a log, with <*> for the words that change."""

from __future__ import annotations

import re

GAP = "<*>"


def shared_words(response: str, reference: str) -> float:
    """Jaccard similarity of the words."""
    got, wanted = set(response.split()), set(reference.split())
    return len(got & wanted) / len(got | wanted)


def template_as_pattern(response: str, reference: str) -> float:
    pattern = re.escape(reference).replace(re.escape(GAP), r"\S+")
    return 1.0 if re.fullmatch(pattern, response.strip()) else 0.0


def gaps_drawn_together(response: str, reference: str) -> float:
    """A name may be of one word or of two."""
    got, wanted = (
        re.sub(r"<\*>(?: <\*>)+", GAP, " ".join(text.split())) for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def same_words_and_gaps(response: str, reference: str) -> float:
    """{} is as good as <*>."""
    got = [GAP if word == "{}" else word for word in response.split()]
    return 1.0 if got == reference.split() else 0.0


def template_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
