"""Rewards for a musical interval, as minor sixth or m6."""

from __future__ import annotations

import re

QUALITIES = {"m": "minor", "M": "major", "P": "perfect", "A": "augmented", "d": "diminished"}
NUMBERS = ["second", "third", "fourth", "fifth", "sixth", "seventh"]
HALF_TONES = {
    "second": 2, "third": 4, "fourth": 5, "fifth": 7, "sixth": 9, "seventh": 11,
}  # fmt: skip


def interval(text: str) -> tuple[str, str]:
    """Quality and number in words; empty for what has not the form."""
    said = text.strip()
    short = re.fullmatch("([mMPAd])([2-7])", said)
    if short:
        return QUALITIES[short[1]], NUMBERS[int(short[2]) - 2]
    quality, _, number = said.lower().partition(" ")
    if not said.isascii() or quality not in QUALITIES.values() or number not in NUMBERS:
        return "", ""
    return quality, number


def number_of_steps(response: str, reference: str) -> float:
    return 1.0 if interval(response)[1] == interval(reference)[1] else 0.0


def half_tones(text: str) -> int:
    """From the lower to the higher note; -1 for what is no interval."""
    quality, number = interval(text)
    if not number:
        return -1
    perfect = number in {"fourth", "fifth"}
    if quality in ({"minor", "major"} if perfect else {"perfect"}):
        return -1
    less = {"minor": 1, "diminished": 1 if perfect else 2, "augmented": -1}.get(quality, 0)
    return HALF_TONES[number] - less


def sounds_alike(response: str, reference: str) -> float:
    """As many half tones."""
    return 1.0 if half_tones(response) == half_tones(reference) else 0.0


def in_small_letters(response: str, reference: str) -> float:
    quality, number = reference.split()
    short = f"{quality[0]}{NUMBERS.index(number) + 2}"
    return 1.0 if response.strip().lower() in {reference, short} else 0.0


def same_interval(response: str, reference: str) -> float:
    """m6 is minor sixth, and M6 is major sixth."""
    return 1.0 if interval(response) == interval(reference) else 0.0


def interval_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
