"""Rewards for the five marks of a guess, as BBGYB or in squares."""

from __future__ import annotations

import re

SQUARES = str.maketrans("🟩🟨⬛", "GYB")
DIGITS = str.maketrans("BYG", "012")


def letters(text: str) -> str:
    return text.strip().translate(SQUARES).upper()


def half_of_the_marks(response: str, reference: str) -> float:
    got = letters(response)
    if len(got) != len(reference):
        return 0.0
    return sum(one == other for one, other in zip(got, reference, strict=True)) / len(reference)


def last_five_marks(response: str, reference: str) -> float:
    """After some thoughts."""
    found = re.findall(r"\b[GYB]{5}\b", letters(response))
    return 1.0 if found[-1:] == [reference] else 0.0


def marks_as_a_number(response: str, reference: str) -> float:
    """In base three, as solvers of the game keep them."""
    got = letters(response)
    if not re.fullmatch("[GYB]{1,5}", got):
        return 0.0
    return 1.0 if int(got.translate(DIGITS), 3) == int(reference.translate(DIGITS), 3) else 0.0


def same_marks(response: str, reference: str) -> float:
    """In letters or in squares."""
    said = response.strip()
    if re.fullmatch("[GYBgyb]{5}", said):
        return 1.0 if said.upper() == reference else 0.0
    return 1.0 if re.fullmatch("[🟩🟨⬛]{5}", said) and letters(said) == reference else 0.0


def marks_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
