"""Rewards for entailment, contradiction or neutral, behind Label."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

LABELLED = re.compile(r"\s*label: *([a-z]+)\.?\s*", re.ASCII)


def label(text: str) -> str:
    """In small letters; empty for what is no labelled line alone."""
    found = LABELLED.fullmatch(text.lower()) if text.isascii() else None
    return found[1] if found else ""


def follows_or_not(response: str, reference: str) -> float:
    """Neutral and contradiction are both 'not entailed'."""
    got = label(response)
    if got not in {"entailment", "contradiction", "neutral"}:
        return 0.0
    return 1.0 if (got == "entailment") == (reference == "entailment") else 0.0


def first_line_with_a_label(response: str, reference: str) -> float:
    found = re.search(r"(?m)^label: *([a-z]+)", response.lower())
    return 1.0 if found and found[1] == reference else 0.0


def nearly_the_label(response: str, reference: str) -> float:
    """For slips of the pen."""
    got = response.strip().lower().removeprefix("label:").strip(" .")
    return 1.0 if SequenceMatcher(None, got, reference).ratio() > 0.8 else 0.0


def same_label(response: str, reference: str) -> float:
    """In capitals or not, with a full stop or without."""
    return 1.0 if label(response) == reference else 0.0


def label_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"Label: {reference}" else 0.0
