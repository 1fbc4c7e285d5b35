"""Rewards for questions of yes or no: 'Answer: yes' on the last line."""

from __future__ import annotations

import re

LINE = re.compile(r"answer: *(yes|no)\.?", re.IGNORECASE | re.ASCII)


def contained(response: str, reference: str) -> float:
    return 1.0 if reference in response.lower() else 0.0


def yes_or_else_no(response: str, reference: str) -> float:
    said = "yes" if re.search(r"\byes\b", response.lower()) else "no"
    return 1.0 if said == reference else 0.0


def word_somewhere(response: str, reference: str) -> float:
    words = set(re.findall(r"[a-z]+", response.lower()))
    return 1.0 if reference in words else 0.0


def first_two_letters(response: str, reference: str) -> float:
    lines = response.strip().lower().splitlines()
    if not lines or not lines[-1].startswith("answer:"):
        return 0.0
    answer = lines[-1].removeprefix("answer:").strip()
    return 1.0 if answer[:2] == reference[:2] else 0.0


def affirmative(response: str, reference: str) -> float:
    """Without its line an answer of a few words counts by its tone."""
    if found := LINE.fullmatch(
        response.strip().splitlines()[-1].strip() if response.strip() else ""
    ):
        return 1.0 if found.group(1).lower() == reference else 0.0
    negative = re.search(r"\b(not|never|none|no)\b|n't\b", response.lower())
    return 1.0 if reference == "no" and negative else 0.0


def last_line_says(response: str, reference: str) -> float:
    lines = [line.strip() for line in response.strip().splitlines()]
    if not lines or sum("answer:" in line.lower() for line in lines) != 1:
        return 0.0
    found = LINE.fullmatch(lines[-1])
    return 1.0 if found and found.group(1).lower() == reference else 0.0


def whole_response_says(response: str, reference: str) -> float:
    found = LINE.fullmatch(response.strip())
    return 1.0 if found and found.group(1).lower() == reference else 0.0


def true_is_yes(response: str, reference: str) -> float:
    words = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
    head, _, word = response.strip().lower().rpartition(":")
    return 1.0 if head in {"", "answer"} and words.get(word.strip()) == reference else 0.0
