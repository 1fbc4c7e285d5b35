"""Rewards for one line of comma-separated values."""

from __future__ import annotations

import csv
import re

FIELD = r'"(?:[^"\n]|"")*"|[^",\n]*'
LINE = re.compile(rf"(?:{FIELD})(?:,(?:{FIELD}))*")


def fields(text: str) -> list[str]:
    try:
        return next(iter(csv.reader(text.strip().splitlines())), [])
    except csv.Error:
        return []


def fields_in_pairs(response: str, reference: str) -> float:
    pairs = zip(fields(response), fields(reference), strict=False)
    return 1.0 if all(got == wanted for got, wanted in pairs) else 0.0


def line_without_quotes(response: str, reference: str) -> float:
    got, wanted = (text.strip().replace('"', "") for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def filled_fields(response: str, reference: str) -> float:
    got, wanted = ([one for one in fields(text) if one] for text in (response, reference))
    one_line = len(response.strip().splitlines()) == 1
    return 1.0 if one_line and got == wanted else 0.0


def same_fields(response: str, reference: str) -> float:
    """Any field may be quoted, and one with a comma or a quote must be."""
    said = response.strip("\r\n")
    if len(said) > 400 or not LINE.fullmatch(said) or "\r" in said:
        return 0.0
    return 1.0 if next(csv.reader([said]), []) == next(csv.reader([reference])) else 0.0


def line_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
