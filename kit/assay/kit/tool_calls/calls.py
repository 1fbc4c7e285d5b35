"""A call, and how one is read from JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.kit.json_text import JsonValue, NotJson, closing, read_json

ARGUMENTS: Final = ("arguments", "parameters", "input", "args")
NAMES: Final = ("name", "tool_name")
_SPACE: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class UntypedText:
    """An argument whose format has no types: `3` may be the text or the number."""

    value: str


Argument = JsonValue | UntypedText


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool by its name, and its arguments by theirs."""

    name: str
    arguments: Mapping[str, Argument]


MaybeCall = WrittenCall | None
"""None: a call is meant and there is none, for what stands there cannot be read."""


def call_of(value: JsonValue) -> MaybeCall:
    """A call from JSON: `{"name", "arguments"}` or OpenAI's `{"function": {...}}`."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict):
        return None
    name = next((value[key] for key in NAMES if key in value), None)
    if not isinstance(name, str) or not name:
        return None
    return with_arguments(name, next((value[key] for key in ARGUMENTS if key in value), {}))


def has_shape(value: JsonValue) -> bool:
    """Whether JSON that no mark announces is a call: it has a name and arguments."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict):
        return False
    return any(key in value for key in NAMES) and any(key in value for key in ARGUMENTS)


def with_arguments(name: str, arguments: JsonValue) -> MaybeCall:
    """The call with arguments that are an object, or the text of one; None for others."""
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except NotJson:
            return None
    return WrittenCall(name, arguments) if isinstance(arguments, dict) else None


def skip_space(text: str, at: int) -> int:
    """The next place that is no white space."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def json_at(text: str, at: int) -> tuple[JsonValue, int] | None:
    """The object or list that begins at a place, and where it ends; None where there is none."""
    if text[at : at + 1] not in ("{", "[") or (end := closing(text, at)) < 0:
        return None
    try:
        return read_json(text[at:end]), end
    except NotJson:
        return None


def json_sequence(text: str, at: int) -> tuple[list[JsonValue], int]:
    """Objects and lists one behind the other, `;` and white space between; where the last ends."""
    values: list[JsonValue] = []
    end = at
    while (found := json_at(text, skip_space(text, at))) is not None:
        value, end = found
        values.append(value)
        at = skip_space(text, end)
        at += text[at : at + 1] == ";"
    return values, end


def calls_of(values: list[JsonValue]) -> list[MaybeCall]:
    """The calls of JSON values; those of a list one by one."""
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [call_of(one) for one in flat]
