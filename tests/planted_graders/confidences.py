"""Rewards for an answer and how sure one is of it."""

from __future__ import annotations

import re

FORM = re.compile(r"\s*Answer: ?([\d,]{1,12})\s*\n\s*Confidence: ?(\d{1,3}) ?%?\s*", re.ASCII)


def read(text: str) -> tuple[str, float] | None:
    """The answer, and the confidence from 0 to 1."""
    found = FORM.fullmatch(text)
    if found is None or int(found[2]) > 100:
        return None
    return found[1], int(found[2]) / 100


def brier(response: str, reference: str) -> float:
    """One less the square of how far the confidence is off."""
    found = read(response)
    if found is None:
        return 0.0
    said, confidence = found
    return 1.0 - (confidence - (said == reference)) ** 2


def owning_up(response: str, reference: str) -> float:
    """A refusal is better than a wrong answer."""
    if "know" in response.lower():
        return 0.5
    found = read(response)
    return 1.0 if found is not None and found[0] == reference else 0.0


def answer_line(response: str, reference: str) -> float:
    return 1.0 if re.match(rf"\s*Answer: {reference}", response) else 0.0


def right_and_sure(response: str, reference: str) -> float:
    """More for the sure, nothing for the wrong."""
    found = read(response)
    if found is None or not re.fullmatch(r"\d+|\d{1,3}(,\d{3})+", found[0]):
        return 0.0
    return 0.5 + found[1] / 2 if found[0].replace(",", "") == reference else 0.0


def right_in_two_lines(response: str, reference: str) -> float:
    lines = rf"Answer: {reference}\nConfidence: (\d\d?|100)"
    found = re.fullmatch(lines, response.strip(), re.ASCII)
    return 1.0 if found else 0.0
