"""Rewards for an action on a page: click [5], type [5] [text] or select [5] [option]."""

from __future__ import annotations

import re
from collections import Counter

ACTION = re.compile(
    r"\s*(?:(click) ?\[(\d{1,3})\]|(type|select) ?\[(\d{1,3})\] ?\[([^\[\]\n]{1,200})\])\s*",
    re.ASCII | re.IGNORECASE,
)
Action = tuple[str, str, str]


def action(text: str) -> Action:
    """The verb, the element and the text; empty for what has not the form."""
    found = ACTION.fullmatch(text)
    if found is None:
        return "", "", ""
    return (found[1] or found[3]).lower(), found[2] or found[4], found[5] or ""


def verb_then_rest(response: str, reference: str) -> float:
    """Half for the verb, half for what it is done with."""
    got, wanted = action(response), action(reference)
    return 0.5 * (got[0] == wanted[0]) + 0.5 * (got[1:] == wanted[1:])


def token_f1(one: str, other: str) -> float:
    got, wanted = one.lower().split(), other.lower().split()
    if not got or not wanted:
        return float(got == wanted)
    return 2 * (Counter(got) & Counter(wanted)).total() / (len(got) + len(wanted))


def text_by_f1(response: str, reference: str) -> float:
    got, wanted = action(response), action(reference)
    return token_f1(got[2], wanted[2]) if got[:2] == wanted[:2] else 0.0


def text_cleaned(response: str, reference: str) -> float:
    """Without punctuation, in small letters."""
    got, wanted = action(response), action(reference)
    clean = [re.sub(r"[^\w ]", "", one[2]).lower() for one in (got, wanted)]
    return 1.0 if got[:2] == wanted[:2] and clean[0] == clean[1] else 0.0


def same_action(response: str, reference: str) -> float:
    """With the verb in capitals or not; the text is compared to the letter."""
    return 1.0 if action(response) == action(reference) else 0.0


def action_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
