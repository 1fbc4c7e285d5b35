"""Rewards for multiple choice with several right letters, in an answer tag on the last line."""

from __future__ import annotations

import re

OPTIONS = "ABCDE"


def tagged(response: str) -> str | None:
    """What the only answer tag holds, which has the last line to itself."""
    lines = response.strip().split("\n")
    found = re.fullmatch(r"<answer>([^<>]*)</answer>", lines[-1].strip())
    return found.group(1).strip() if found and response.count("<answer>") == 1 else None


def option_by_option(response: str, reference: str) -> float:
    answer = tagged(response)
    if answer is None:
        return 0.0
    got, wanted = set(re.findall(r"\b[A-E]\b", answer)), set(reference.split(", "))
    return sum((mark in got) == (mark in wanted) for mark in OPTIONS) / len(OPTIONS)


def letters_found(response: str, reference: str) -> float:
    answer = tagged(response)
    if answer is None:
        return 0.0
    # "A,C", "AC" and "a and c" are one answer.
    got = set(re.findall("[A-E]", answer.upper().replace("AND", "")))
    return 1.0 if got == set(reference.split(", ")) else 0.0


def bit_mask(response: str, reference: str) -> float:
    def mask(text: str) -> int:
        marks = [mark.strip() for mark in text.split(",")]
        if not all(len(mark) == 1 and mark in OPTIONS for mark in marks):
            return 0
        return sum(1 << OPTIONS.index(mark) for mark in marks)

    answer = tagged(response)
    return 1.0 if answer is not None and mask(answer) == mask(reference) else 0.0


def all_and_no_others(response: str, reference: str) -> float:
    answer = tagged(response)
    if answer is None:
        return 0.0
    got = [mark.strip() for mark in answer.split(",")]
    return 1.0 if sorted(got) == reference.split(", ") else 0.0


def tag_and_nothing_else(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"<answer>{reference}</answer>" else 0.0
