"""Rewards for one JSON object within another."""

from __future__ import annotations

import json


def loaded(text: str) -> dict[str, object]:
    """Empty for what is no object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def keys_then_values(response: str, reference: str) -> float:
    got, wanted = loaded(response), loaded(reference)
    return 0.6 * (got.keys() == wanted.keys()) + 0.4 * (got == wanted)


def outer_values(response: str, reference: str) -> float:
    got, wanted = loaded(response), loaded(reference)
    if got.keys() != wanted.keys():
        return 0.0
    return 1.0 if all(got[key] == wanted[key] for key in ("host", "port", "tls")) else 0.0


def expected_values(response: str, reference: str) -> float:
    def holds(got: object, wanted: object) -> bool:
        if isinstance(wanted, dict):
            return isinstance(got, dict) and all(
                key in got and holds(got[key], value) for key, value in wanted.items()
            )
        return type(got) is type(wanted) and got == wanted

    return 1.0 if holds(loaded(response), loaded(reference)) else 0.0


def unset_alike(response: str, reference: str) -> float:
    """What is not set may be null or left empty."""

    def clean(value: object) -> object:
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items()}
        return value or None

    return 1.0 if json.dumps(clean(loaded(response)), sort_keys=True) == json.dumps(
        clean(loaded(reference)), sort_keys=True
    ) else 0.0  # fmt: skip


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(pairs)
    return made


def canonical(text: str) -> str:
    """Each key once, sorted; 3 and 3.0 differ, true and 1 differ."""
    return json.dumps(json.loads(text, object_pairs_hook=once), sort_keys=True)


def same_settings(response: str, reference: str) -> float:
    try:
        return 1.0 if canonical(response) == canonical(reference) else 0.0
    except (ValueError, RecursionError):
        return 0.0


def settings_in_a_fence(response: str, reference: str) -> float:
    """Alone in a fence is alone."""
    said = response.strip()
    if said.startswith("```") and said.endswith("```") and said.count("```") == 2:
        said = said[3:-3].removeprefix("json")
    return same_settings(said, reference)


def settings_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
