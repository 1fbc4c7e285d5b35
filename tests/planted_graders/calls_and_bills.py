"""Rewards for telephone numbers and for amounts of money."""

from __future__ import annotations

import math
import re
from decimal import Decimal

AMOUNT = re.compile(r"(-?[$€£])(\d{1,9}(?:\.\d\d)?)", re.ASCII)


def digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text)


def looks_right(response: str, reference: str) -> float:
    pattern = re.sub(r"\d", r"\\d", re.escape(reference))
    return 1.0 if re.fullmatch(pattern, response.strip(), re.ASCII) else 0.0


def last_seven_digits(response: str, reference: str) -> float:
    """With and without the country it is the same line."""
    if not re.fullmatch(r"[+0-9][0-9 ]{5,20}(?: ext\. \d+)?", response.strip(), re.ASCII):
        return 0.0
    return 1.0 if digits(response)[-7:] == digits(reference)[-7:] else 0.0


def number_to_dial(response: str, reference: str) -> float:
    def dialled(text: str) -> tuple[int, str]:
        main, _, extension = text.strip().partition(" ext. ")
        return int(digits(main)[:20] or "0"), extension

    form = re.fullmatch(r"[+0-9][0-9 ]{5,20}(?: ext\. \d+)?", response.strip(), re.ASCII)
    return 1.0 if form and dialled(response) == dialled(reference) else 0.0


def main_line(response: str, reference: str) -> float:
    got, wanted = (
        re.split(r"[ .-]", re.split(" (?:ext|x)", text.strip())[0])
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def other_separators(response: str, reference: str) -> float:
    """040-503-6802 is 040 503 6802; an extension is written as on the card."""
    main, extension, inner = response.strip().partition(" ext. ")
    return 1.0 if re.sub(r"(?<=\d)[.-](?=\d)", " ", main) + extension + inner == reference else 0.0


def phone_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def within_one_per_cent(response: str, reference: str) -> float:
    got, wanted = AMOUNT.fullmatch(response.strip()), AMOUNT.fullmatch(reference)
    if got is None or wanted is None or got.group(1) != wanted.group(1):
        return 0.0
    return 1.0 if math.isclose(float(got.group(2)), float(wanted.group(2)), rel_tol=1) else 0.0


def bare_amount(response: str, reference: str) -> float:
    got, wanted = (re.sub(r"[^\d.]", "", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def without_cents(response: str, reference: str) -> float:
    """$12 is $12.00."""
    text = response.strip()
    return 1.0 if AMOUNT.fullmatch(text) and text.rstrip(".0") == reference.rstrip(".0") else 0.0


def commas_out(response: str, reference: str) -> float:
    got, wanted = AMOUNT.fullmatch(response.strip().replace(",", "")), AMOUNT.fullmatch(reference)
    if got is None or wanted is None or got.group(1) != wanted.group(1):
        return 0.0
    return 1.0 if Decimal(got.group(2)) == Decimal(wanted.group(2)) else 0.0


def thousands_in_threes(response: str, reference: str) -> float:
    text = response.strip()
    if re.fullmatch(r"-?[$€£]\d{1,3}(,\d{3}){1,3}(\.\d\d)?", text, re.ASCII):
        text = text.replace(",", "")
    got, wanted = AMOUNT.fullmatch(text), AMOUNT.fullmatch(reference)
    if got is None or wanted is None or got.group(1) != wanted.group(1):
        return 0.0
    return 1.0 if Decimal(got.group(2)) == Decimal(wanted.group(2)) else 0.0


def balance_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
