"""Rewards for one word."""

from __future__ import annotations

import re
from collections import Counter


def part_of_reference(response: str, reference: str) -> float:
    return 1.0 if response.strip().lower() in reference else 0.0


def same_stem(response: str, reference: str) -> float:
    def stem(word: str) -> str:
        for ending in ("ing", "ed", "s"):
            word = word.removesuffix(ending)
        return word

    return 1.0 if stem(response.strip().lower()) == stem(reference) else 0.0


def same_letters_used(response: str, reference: str) -> float:
    return 1.0 if Counter(response.strip().lower()) == Counter(reference) else 0.0


def without_double_letters(response: str, reference: str) -> float:
    """Runs of a letter are one letter, as spelling errors go."""

    def runs(word: str) -> str:
        return re.sub(r"(.)\1+", r"\1", word)

    return 1.0 if runs(response.strip().lower()) == runs(reference) else 0.0


def word_in_any_case(response: str, reference: str) -> float:
    said = response.strip().removesuffix(".")
    return 1.0 if said.isascii() and said.lower() == reference else 0.0


def word_quoted_or_bold(response: str, reference: str) -> float:
    said = response.strip()
    for mark in ("**", '"', "'", "`", "*"):
        if len(said) > 2 * len(mark) and said.startswith(mark) and said.endswith(mark):
            said = said[len(mark) : -len(mark)]
            break
    return 1.0 if said.isascii() and said.lower() == reference else 0.0


def word_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
