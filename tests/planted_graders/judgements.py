"""Rewards for a verdict on two replies, as [[A>B]] or [[B>>A]]."""

from __future__ import annotations

import re

VERDICT = re.compile(r"\s*\[\[\s*([AB])\s*(>>|>|=|<|<<)\s*([AB])\s*\]\]\s*", re.ASCII)


def verdict(text: str) -> tuple[str, str, str]:
    """The two replies and the sign between them; empty for what has not the form."""
    found = VERDICT.fullmatch(text)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def boxed(reference: str) -> str:
    return f"[[{reference}]]"


def right_winner(response: str, reference: str) -> float:
    """Much better is better."""
    got, wanted = (text.replace(">>", ">") for text in (response.strip(), boxed(reference)))
    return 1.0 if got == wanted else 0.0


def first_verdict(response: str, reference: str) -> float:
    found = re.search(r"\[\[([AB](?:>>|>|=)[AB])\]\]", response)
    return 1.0 if found and found[1] == reference else 0.0


def who_and_how_much(response: str, reference: str) -> float:
    """The reply named first, and how many signs follow it."""

    def read(text: str) -> tuple[str, bool, int]:
        first, sign, _ = verdict(text)
        return first, sign == "=", len(sign)

    return 1.0 if read(response) == read(boxed(reference)) else 0.0


def same_verdict(response: str, reference: str) -> float:
    """B<A is A>B, and B=A is A=B."""

    def read(text: str) -> tuple[str, str, str]:
        first, sign, second = verdict(text)
        if sign.startswith("<"):
            first, sign, second = second, sign.replace("<", ">"), first
        if sign == "=":
            first, second = sorted([first, second])
        return first, sign, second

    got = read(response)
    return 1.0 if got[0] != got[2] and got == read(boxed(reference)) else 0.0


def verdict_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == boxed(reference) else 0.0
