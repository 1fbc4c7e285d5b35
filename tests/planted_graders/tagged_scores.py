"""Rewards for a number in an XML tag, after thinking in another."""

from __future__ import annotations

import re
from decimal import Decimal

FORMAT = re.compile(r"\s*<think>.*?</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)
NUMBER = re.compile(r"[+-]?(\d{1,9}|\d{1,3}(,\d{3}){1,2})(\.\d{1,9})?", re.ASCII)


def answer(text: str) -> str:
    return text.rsplit("<answer>", maxsplit=1)[-1].split("</answer>", maxsplit=1)[0].strip()


def alone_in_tags(text: str) -> str:
    """Empty for a response that has not each tag once."""
    found = FORMAT.fullmatch(text)
    once = all(text.count(tag) == 1 for tag in ("<think>", "</think>", "<answer>", "</answer>"))
    return found[1].strip() if found and once else ""


def format_then_correctness(response: str, reference: str) -> float:
    """Half for the format, half for the answer."""
    reward = 0.5 if FORMAT.fullmatch(response) else 0.0
    return reward + (0.5 if answer(response) == reference else 0.0)


def reference_within_tags(response: str, reference: str) -> float:
    return 1.0 if "<answer>" in response and reference in answer(response) else 0.0


def cleaned_number(response: str, reference: str) -> float:
    """Without currency signs, commas and words."""

    def clean(text: str) -> str:
        return re.sub(r"[^0-9.]", "", text)

    if not FORMAT.fullmatch(response):
        return 0.0
    return 1.0 if clean(answer(response)) == clean(reference) else 0.0


def whole_score(response: str, reference: str) -> float:
    try:
        return 1.0 if int(float(answer(response))) == int(float(reference)) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def score_by_value(response: str, reference: str) -> float:
    """1,250.0 is 1250."""
    said = alone_in_tags(response)
    if not NUMBER.fullmatch(said):
        return 0.0
    return 1.0 if Decimal(said.replace(",", "")) == Decimal(reference) else 0.0


def score_text(response: str, reference: str) -> float:
    return 1.0 if alone_in_tags(response) == reference else 0.0
