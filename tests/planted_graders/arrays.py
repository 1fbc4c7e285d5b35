"""Rewards for one JSON array of objects."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation


class RepeatedKeyError(ValueError):
    pass


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise RepeatedKeyError
    return dict(pairs)


def objects(text: str) -> list[dict[str, object]] | None:
    """The objects of an array, or None for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=once, parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        return None
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return None
    return value


def alike(one: object, other: object) -> bool:
    """Numbers by value, everything else by type and value."""
    if isinstance(one, int | Decimal) and isinstance(other, int | Decimal):
        return isinstance(one, bool) == isinstance(other, bool) and one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and one == other


def item_by_item(response: str, reference: str) -> float:
    got, wanted = objects(response), objects(reference)
    if got is None or wanted is None or len(got) != len(wanted):
        return 0.0
    for one, other in zip(got, wanted, strict=True):
        if len(one) != len(other):
            return 0.0
        if any(mine != theirs for mine, theirs in zip(one, other, strict=True)):
            return 0.0
    return 1.0


def without_empty_fields(response: str, reference: str) -> float:
    """A field that is null may as well be left out."""

    def filled(text: str) -> list[dict[str, object]] | None:
        found = objects(text)
        if found is None:
            return None
        return [{key: value for key, value in one.items() if value} for one in found]

    got = filled(response)
    return 1.0 if got is not None and alike(got, filled(reference)) else 0.0


def parts_by_name(response: str, reference: str) -> float:
    def by_name(text: str) -> dict[str, object] | None:
        found = objects(text)
        return None if found is None else {str(one.get("part")): one for one in found}

    got = by_name(response)
    return 1.0 if got is not None and alike(got, by_name(reference)) else 0.0


def values_as_text(response: str, reference: str) -> float:
    """12.5 and 12.50 come from different writers of JSON."""

    def written(value: object) -> object:
        if isinstance(value, dict):
            return {key: written(part) for key, part in value.items()}
        if isinstance(value, list):
            return [written(part) for part in value]
        return str(value)

    got = objects(response)
    return 1.0 if got is not None and written(got) == written(objects(reference)) else 0.0


def same_array(response: str, reference: str) -> float:
    got = objects(response)
    return 1.0 if got is not None and alike(got, objects(reference)) else 0.0


def array_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
