"""Rewards for who lives in which house, with which pet and drink, as JSON."""

from __future__ import annotations

import json

Houses = dict[str, dict[str, str]]


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def houses(text: str) -> Houses:
    """By their number; empty for what are no houses."""
    try:
        read = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(read, dict) or not all(isinstance(held, dict) for held in read.values()):
        return {}
    if not all(isinstance(one, str) for held in read.values() for one in held.values()):
        return {}
    return read


def lives_together(response: str, reference: str) -> float:
    """Who has which pet and drink."""

    def read(text: str) -> list[list[tuple[str, str]]]:
        return sorted(sorted(held.items()) for held in houses(text).values())

    return 1.0 if read(response) == read(reference) else 0.0


def names_and_pets(response: str, reference: str) -> float:
    got, wanted = (
        {at: (held.get("name"), held.get("pet")) for at, held in houses(text).items()}
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def values_of_each_house(response: str, reference: str) -> float:
    got, wanted = (
        {at: sorted(held.values()) for at, held in houses(text).items()}
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def same_houses(response: str, reference: str) -> float:
    """Keys in any order, each once."""
    return 1.0 if houses(response) == houses(reference) else 0.0


def houses_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
