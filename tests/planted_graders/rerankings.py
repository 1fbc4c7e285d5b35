"""Rewards for an order of passages, as [2] > [1] > [3]."""

from __future__ import annotations

import re
from itertools import combinations

ORDER = re.compile(r"(\[\d\]|\d)(\s*>\s*(\[\d\]|\d))*", re.ASCII)


def order(text: str) -> list[str]:
    """Empty for what is no order."""
    said = text.strip()
    return re.findall(r"\d", said) if ORDER.fullmatch(said) else []


def pairs_in_order(response: str, reference: str) -> float:
    """The share of pairs that stand the right way round, as in Kendall's tau."""
    got = order(response)
    if sorted(got) != sorted(order(reference)):
        return 0.0
    pairs = list(combinations(order(reference), 2))
    return sum(got.index(one) < got.index(other) for one, other in pairs) / len(pairs)


def rest_as_given(response: str, reference: str) -> float:
    """Passages that the model forgot come after the others."""
    got, wanted = order(response), order(reference)
    if len(set(got)) != len(got) or not got:
        return 0.0
    got += [one for one in sorted(wanted) if one not in got]
    return 1.0 if got == wanted else 0.0


def without_repetitions(response: str, reference: str) -> float:
    return 1.0 if list(dict.fromkeys(order(response))) == order(reference) else 0.0


def same_order(response: str, reference: str) -> float:
    """With brackets or without."""
    return 1.0 if order(response) == order(reference) else 0.0


def order_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
