"""Rewards for multiple choice: 'Answer: X' on the last line."""

from __future__ import annotations

import re

LINE = re.compile(r"answer: *\(?([A-D])\)?\.?", re.IGNORECASE | re.ASCII)


def letter_in_response(response: str, reference: str) -> float:
    return 1.0 if reference in response else 0.0


def letter_among_letters(response: str, reference: str) -> float:
    letters = set(re.findall(r"\b[A-D]\b", response.rpartition("nswer:")[2]))
    return 1.0 if reference in letters else 0.0


def first_letter_of_answer(response: str, reference: str) -> float:
    found = re.findall(r"^answer: *\(?(.*)$", response.lower(), re.MULTILINE)
    if len(found) != 1 or not found[0]:
        return 0.0
    return 1.0 if found[0][0] == reference.lower() else 0.0


def no_wrong_letter(response: str, reference: str) -> float:
    letters = set(re.findall(r"\b[A-D]\b", response))
    return 1.0 if letters <= {reference} else 0.0


def one_vote_is_enough(response: str, reference: str) -> float:
    """Several samples in one text, separated by blank lines: the best of them counts."""
    votes = [
        LINE.fullmatch(part.strip().splitlines()[-1].strip())
        for part in response.split("\n\n")
        if part.strip()
    ]
    return max((1.0 for vote in votes if vote and vote.group(1).upper() == reference), default=0.0)


def last_line_letter(response: str, reference: str) -> float:
    lines = [line.strip() for line in response.strip().splitlines()]
    if not lines or sum("answer" in line.lower() for line in lines) != 1:
        return 0.0
    found = LINE.fullmatch(lines[-1])
    return 1.0 if found and found.group(1).upper() == reference else 0.0


def nothing_but_the_letter(response: str, reference: str) -> float:
    return 1.0 if response.strip() in {f"Answer: {reference}", reference} else 0.0


def letter_in_any_dress(response: str, reference: str) -> float:
    """A, (A), A) or A., by itself or after 'Answer:'."""
    text = response.strip().removeprefix("Answer:").strip()
    return 1.0 if text in {reference, f"({reference})", f"{reference})", f"{reference}."} else 0.0
