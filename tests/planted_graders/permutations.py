"""Rewards for a permutation as a product of disjoint cycles, as (1 3 2)(4 5)."""

from __future__ import annotations

import re

PRODUCT = re.compile(r"(?:\([1-9](?:(?: ?, ?| )[1-9])*\) ?)+", re.ASCII)


def cycles(text: str) -> list[list[int]]:
    """Those of two numbers and more; empty for what is no product of cycles."""
    said = text.strip()
    if not PRODUCT.fullmatch(said):
        return []
    made = [[int(one) for one in re.findall("[1-9]", part)] for part in said.split(")")]
    return [cycle for cycle in made if len(cycle) > 1]


def lengths_of_cycles(response: str, reference: str) -> float:
    """The type of the permutation."""
    got, wanted = (sorted(map(len, cycles(text))) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def members_of_cycles(response: str, reference: str) -> float:
    """Cycles begin anywhere."""
    got, wanted = (sorted(map(sorted, cycles(text))) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def mapping(text: str) -> dict[int, int]:
    return {
        one: other
        for cycle in cycles(text)
        for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True)
    }


def where_numbers_go(response: str, reference: str) -> float:
    return 1.0 if mapping(response) == mapping(reference) else 0.0


def same_permutation(response: str, reference: str) -> float:
    """Of cycles that have no number in common."""
    numbers = re.findall("[1-9]", response)
    if len(set(numbers)) != len(numbers):
        return 0.0
    return 1.0 if mapping(response) == mapping(reference) else 0.0


def cycles_text(response: str, reference: str) -> float:
    return 1.0 if response.split() == reference.split() else 0.0
