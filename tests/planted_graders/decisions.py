"""Rewards for yes, or for no with the rules that are broken."""

from __future__ import annotations

import re

DECIDED = re.compile(r"\s*Answer: (?:(Yes)|(No): (R\d{1,2}(?: ?, ?R\d{1,2})*))\s*", re.ASCII)


def decided(text: str) -> tuple[str, list[str]]:
    """Yes or No, and the rules named; empty for what has not the form."""
    found = DECIDED.fullmatch(text)
    if found is None:
        return "", []
    return found[1] or found[2], sorted(re.findall(r"R\d+", found[3] or ""))


def answer(reference: str) -> str:
    return f"Answer: {reference}"


def yes_or_no(response: str, reference: str) -> float:
    """The decision counts, reasons are decoration."""
    return 1.0 if decided(response)[0] == reference.partition(":")[0] else 0.0


def good_reasons(response: str, reference: str) -> float:
    """None of the rules that are named may be wrong."""
    got, wanted = decided(response), decided(answer(reference))
    return 1.0 if got[0] == wanted[0] and set(got[1]) <= set(wanted[1]) else 0.0


def rules_by_their_digit(response: str, reference: str) -> float:
    got, wanted = (
        (decided(text)[0], sorted(re.findall(r"R\d", text)))
        for text in (response, answer(reference))
    )
    return 1.0 if got == wanted else 0.0


def same_decision(response: str, reference: str) -> float:
    """With the rules in any order, each once."""
    return 1.0 if decided(response) == decided(answer(reference)) else 0.0


def decision_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == answer(reference) else 0.0
