"""Rewards for one letter of ten, named on the last line."""

from __future__ import annotations

import re

STATED = re.compile(r"The answer is \(([A-J])\)\.?")
RELAXED = re.compile(
    r"(?:so |thus |therefore,? )?the (?:final )?answer is:? \(?([a-j])\)?\.?",
    re.IGNORECASE | re.ASCII,
)


def last_line(response: str) -> str:
    return response.strip().split("\n")[-1].strip()


def conclusion(response: str) -> str:
    """The last line, where the answer is stated once."""
    return last_line(response) if response.lower().count("answer") == 1 else ""


def one_of_the_letters(response: str, reference: str) -> float:
    return 1.0 if reference in re.findall(r"\(([A-J])\)", response) else 0.0


def first_answer_stated(response: str, reference: str) -> float:
    found = STATED.search(response)
    return 1.0 if found and found.group(1) == reference else 0.0


def answer_is_near_letter(response: str, reference: str) -> float:
    """Some write 'is therefore (C)'."""
    found = re.search(r"answer is\b.{0,12}\(([A-J])\)\W*$", last_line(response))
    return 1.0 if found and found.group(1) == reference else 0.0


def index_of_letter(response: str, reference: str) -> float:
    """As indices; what is no letter of the list is -1."""

    def index(letter: str) -> int:
        return "ABCDEFGHI".find(letter)

    found = re.fullmatch(r"The answer is \((\w)\)\.?", last_line(response))
    return 1.0 if found and index(found.group(1)) == index(reference) else 0.0


def last_line_option(response: str, reference: str) -> float:
    found = STATED.fullmatch(conclusion(response))
    return 1.0 if found and found.group(1) == reference else 0.0


def option_in_other_dress(response: str, reference: str) -> float:
    """Bold, small letters, no brackets: the letter is what is asked."""
    found = RELAXED.fullmatch(conclusion(response).replace("**", ""))
    return 1.0 if found and found.group(1).upper() == reference else 0.0


def option_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"The answer is ({reference})." else 0.0
