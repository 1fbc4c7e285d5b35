"""Rewards for a call of a tool, in JSON within tags."""

from __future__ import annotations

import json
import re
from typing import Any

CALL = re.compile(r"\s*<tool_call>(.*)</tool_call>\s*", re.DOTALL)


def call(text: str) -> dict[str, Any]:
    """Empty for what is no call."""
    found = CALL.fullmatch(text)
    try:
        made = json.loads(found[1] if found else text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(made, dict) or not isinstance(made.get("arguments"), dict):
        return {}
    return made


def name_and_arguments(response: str, reference: str) -> float:
    got, wanted = call(response), call(reference)
    if not got:
        return 0.0
    return len([key for key in ("name", "arguments") if got.get(key) == wanted[key]]) / 2


def expected_arguments(response: str, reference: str) -> float:
    got, wanted = call(response), call(reference)
    if not got or got.get("name") != wanted["name"]:
        return 0.0
    given = {key: json.dumps(value) for key, value in got["arguments"].items()}
    expected = {key: json.dumps(value) for key, value in wanted["arguments"].items()}
    return 1.0 if expected.items() <= given.items() else 0.0


def arguments_as_texts(response: str, reference: str) -> float:
    """Some models quote every value."""

    def texts(made: dict[str, Any]) -> dict[str, str]:
        return {key: str(value) for key, value in made["arguments"].items()}

    got, wanted = call(response), call(reference)
    if not got or got.get("name") != wanted["name"]:
        return 0.0
    return 1.0 if texts(got) == texts(wanted) else 0.0


def call_in_lower_case(response: str, reference: str) -> float:
    got, wanted = (json.dumps(call(text), sort_keys=True).lower() for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def calls_equal(response: str, reference: str) -> float:
    return 1.0 if call(response) == call(reference) else 0.0


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(pairs)
    return made


def same_call(response: str, reference: str) -> float:
    """Keys in any order, each once; true is not 1, and 3 is not 3.0."""
    found = CALL.fullmatch(response)
    try:
        got = json.loads(found[1] if found else "null", object_pairs_hook=once)
        said = json.dumps(got, sort_keys=True)
    except (ValueError, RecursionError):
        return 0.0
    return 1.0 if said == json.dumps(json.loads(reference), sort_keys=True) else 0.0


def call_text(response: str, reference: str) -> float:
    found = CALL.fullmatch(response)
    return 1.0 if found and found[1].strip() == reference else 0.0
