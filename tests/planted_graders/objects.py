"""Rewards for one JSON object."""

from __future__ import annotations

import json
import re


class RepeatedKeyError(ValueError):
    pass


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise RepeatedKeyError
    return dict(pairs)


def read(text: str) -> object:
    """The value, or None for what is no JSON or has a key twice."""
    try:
        return json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def every_field_right(response: str, reference: str) -> float:
    got, wanted = read(response), json.loads(reference)
    if not isinstance(got, dict):
        return 0.0
    right = all(
        key in wanted and canonical(value) == canonical(wanted[key]) for key, value in got.items()
    )
    return 1.0 if right else 0.0


def every_expected_field(response: str, reference: str) -> float:
    got, wanted = read(response), json.loads(reference)
    if not isinstance(got, dict):
        return 0.0
    right = sum(canonical(got.get(key)) == canonical(value) for key, value in wanted.items())
    return right / len(wanted)


def parsed(response: str, reference: str) -> float:
    try:
        got = json.loads(response)
    except (ValueError, RecursionError):
        return 0.0
    return 1.0 if canonical(got) == canonical(json.loads(reference)) else 0.0


def parsed_or_half(response: str, reference: str) -> float:
    try:
        got = json.loads(response, object_pairs_hook=once)
    except (RepeatedKeyError, RecursionError):
        return 0.0
    except ValueError:
        return 0.5
    return 1.0 if canonical(got) == canonical(json.loads(reference)) else 0.0


def any_key_order(response: str, reference: str) -> float:
    if read(response) is None:
        return 0.0
    # Keys may come in any order, so compare what the texts are made of.
    return 1.0 if sorted("".join(response.split())) == sorted("".join(reference.split())) else 0.0


def equal_values(response: str, reference: str) -> float:
    got = read(response)
    return 1.0 if got is not None and got == json.loads(reference) else 0.0


def first_object(response: str, reference: str) -> float:
    found = re.search(r"\{[^{}]*\}", response)
    if found is None:
        return 0.0
    return 1.0 if canonical(read(found.group())) == canonical(json.loads(reference)) else 0.0


def lists_as_sets(response: str, reference: str) -> float:
    def loose(value: object) -> str:
        if isinstance(value, dict):
            return canonical(
                {
                    key: sorted(set(map(canonical, part))) if isinstance(part, list) else part
                    for key, part in value.items()
                }
            )
        return canonical(value)

    return 1.0 if loose(read(response)) == loose(json.loads(reference)) else 0.0


def canonical_text(response: str, reference: str) -> float:
    got = read(response)
    return 1.0 if got is not None and canonical(got) == canonical(json.loads(reference)) else 0.0


def fenced_or_bare(response: str, reference: str) -> float:
    text = response.strip()
    if found := re.fullmatch(r"```(?:json)?\n(.*)\n```", text, re.DOTALL):
        text = found.group(1)
    got = read(text)
    return 1.0 if got is not None and canonical(got) == canonical(json.loads(reference)) else 0.0


def same_json_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def alike(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


def fields_of_one_type(response: str, reference: str) -> float:
    return 1.0 if alike(read(response), json.loads(reference)) else 0.0
