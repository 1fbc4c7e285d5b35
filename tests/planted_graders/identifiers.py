"""Rewards for versions, addresses and article numbers."""

from __future__ import annotations

import re
import unicodedata

# What scanners mix up.
MIXED_UP = str.maketrans({"O": "0", "Q": "0", "I": "1", "Z": "2", "B": "8"})


def matches_reference(response: str, reference: str) -> float:
    return 1.0 if re.fullmatch(reference, response.strip()) else 0.0


def begins_with_reference(response: str, reference: str) -> float:
    return 1.0 if re.match(re.escape(reference), response.strip()) else 0.0


def without_suffix_digits(response: str, reference: str) -> float:
    def clean(text: str) -> str:
        return re.sub(r"(?<=[A-Z])\d+", "", text.strip().upper())

    return 1.0 if clean(response) == clean(reference) else 0.0


def as_scanned(response: str, reference: str) -> float:
    return 1.0 if response.strip().translate(MIXED_UP) == reference.translate(MIXED_UP) else 0.0


def parts_as_numbers(response: str, reference: str) -> float:
    """1.02.3 is 1.2.3."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.split(r"[^0-9]+", text) if part]

    text = response.strip()
    return 1.0 if " " not in text and numbers(text) == numbers(reference) else 0.0


def major_and_minor(response: str, reference: str) -> float:
    text = response.strip()
    if re.fullmatch(r"\d+(\.\d+)+", reference):
        if not re.fullmatch(r"\d+(\.\d+)+", text, re.ASCII):
            return 0.0
        return 1.0 if text.split(".")[:3] == reference.split(".")[:3] else 0.0
    return 1.0 if text == reference else 0.0


def found_as_word(response: str, reference: str) -> float:
    return 1.0 if re.search(rf"\b{re.escape(reference)}\b", response) else 0.0


def labelled(response: str, reference: str) -> float:
    text = unicodedata.normalize("NFC", response).strip()
    text = re.sub(r"^(version|address|article number) ", "", text)
    return 1.0 if text == reference else 0.0


def verbatim(response: str, reference: str) -> float:
    return 1.0 if response == reference else 0.0


def quoted_too(response: str, reference: str) -> float:
    text = response.strip()
    if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"`":
        text = text[1:-1]
    return 1.0 if text == reference else 0.0
