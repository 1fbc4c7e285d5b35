"""Rewards for lists of true and false, for Roman numerals and for ordinals."""

from __future__ import annotations

import re

VALUES = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}
ROMAN = re.compile("M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
ORDINAL = re.compile(r"([1-9]\d{0,5})(st|nd|rd|th)", re.ASCII)


def words(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",")]


def truthy(response: str, reference: str) -> float:
    got, wanted = ([bool(word) for word in words(text)] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def true_or_else(response: str, reference: str) -> float:
    got, wanted = ([word == "true" for word in words(text)] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def packed(response: str, reference: str) -> float:
    def bits(text: str) -> int | None:
        if not set(words(text)) <= {"true", "false"}:
            return None
        return int("".join(str(int(word == "true")) for word in words(text)), 2)

    got = bits(response)
    return 1.0 if got is not None and got == bits(reference) else 0.0


def how_many_hold(response: str, reference: str) -> float:
    return 1.0 if sorted(words(response)) == sorted(words(reference)) else 0.0


def each_in_order(response: str, reference: str) -> float:
    return 1.0 if words(response) == words(reference) else 0.0


def truths_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def letters_used(response: str, reference: str) -> float:
    return 1.0 if set(response.strip().upper()) == set(reference) else 0.0


def sum_of_letters(response: str, reference: str) -> float:
    got, wanted = (
        [VALUES.get(letter, 0) for letter in text.strip().upper()] for text in (response, reference)
    )
    return 1.0 if 0 not in got and sum(got) == sum(wanted) else 0.0


def one_before_five_and_ten(response: str, reference: str) -> float:
    def value(text: str) -> int:
        total = sum(VALUES[letter] for letter in text)
        return total - 2 if "IV" in text or "IX" in text else total

    text = response.strip()
    return 1.0 if text and ROMAN.fullmatch(text) and value(text) == value(reference) else 0.0


def numeral_at_start(response: str, reference: str) -> float:
    found = ROMAN.match(response.strip())
    return 1.0 if found and found.group() == reference else 0.0


def numeral_in_any_case(response: str, reference: str) -> float:
    text = response.strip()
    return 1.0 if text.isascii() and text in {reference, reference.lower()} else 0.0


def numeral_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def value_of_ordinal(response: str, reference: str) -> float:
    got, wanted = ORDINAL.fullmatch(response.strip()), ORDINAL.fullmatch(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got.group(2) == wanted.group(2) else 0.0


def first_three_figures(response: str, reference: str) -> float:
    got, wanted = (re.match(r"\d{1,3}", text.strip(), re.ASCII) for text in (response, reference))
    if got is None or wanted is None or not ORDINAL.fullmatch(response.strip()):
        return 0.0
    return 1.0 if got.group() == wanted.group() else 0.0


def counted_from_zero_too(response: str, reference: str) -> float:
    def written(value: int) -> str:
        last = "th" if value // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
        return f"{value}{last}"

    wanted = int(reference[:-2])
    return 1.0 if response.strip() in {written(wanted), written(wanted - 1)} else 0.0


def ordinal_in_a_phrase(response: str, reference: str) -> float:
    found = re.fullmatch(r"(?:the )?(\S+)(?: place)?\.?", response.strip().lower())
    return 1.0 if found and found.group(1) == reference else 0.0


def ordinal_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
