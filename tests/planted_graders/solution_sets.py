"""Rewards for the set of an equation's solutions."""

from __future__ import annotations

import math
import re

SET = re.compile(r"\{ ?-?\d{1,6}(?: ?, ?-?\d{1,6})* ?\}", re.ASCII)
SPOKEN = re.compile(r"x ?= ?-?\d{1,6}(?:(?:, | or |, or )x ?= ?-?\d{1,6})*", re.ASCII)


def numbers(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"-?\d{1,6}", text, re.ASCII)]


def solutions(text: str) -> list[int]:
    """Empty for what is no set."""
    said = text.strip()
    return numbers(said) if SET.fullmatch(said) else []


def all_found(response: str, reference: str) -> float:
    return 1.0 if set(numbers(reference)) <= set(numbers(response)) else 0.0


def no_false_one(response: str, reference: str) -> float:
    got = solutions(response)
    return 1.0 if got and set(got) <= set(solutions(reference)) else 0.0


def distances_from_zero(response: str, reference: str) -> float:
    got = sorted(abs(root) for root in solutions(response))
    return 1.0 if got == sorted(abs(root) for root in solutions(reference)) else 0.0


def sum_and_product(response: str, reference: str) -> float:
    """As Vieta has it."""
    got, wanted = solutions(response), solutions(reference)
    same = len(got) == len(wanted) and sum(got) == sum(wanted)
    return 1.0 if same and math.prod(got) == math.prod(wanted) else 0.0


def same_set(response: str, reference: str) -> float:
    """A set has no order, and a solution named twice is still one."""
    got = solutions(response)
    return 1.0 if got and set(got) == set(solutions(reference)) else 0.0


def set_or_spoken(response: str, reference: str) -> float:
    """{1, 2} and x = 1 or x = 2 are the two forms that the prompt names."""
    said = response.strip().replace("\u2212", "-")
    got = numbers(said) if SPOKEN.fullmatch(said) else solutions(said)
    return 1.0 if got and set(got) == set(solutions(reference)) else 0.0


def set_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
