"""Finds JSON in model text, and reads it strictly and within bounds.

Strict means RFC 8259 and no more. NaN, Infinity, a key twice in one object, a number too large for
a double, single quotes, comments and trailing commas are errors; nothing is repaired, because what
a parser repairs, a policy learns to leave broken.

Bounds: 200,000 characters, 64 levels, 10,000 values, 300 digits a number. Linear in the text.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

MAX_CHARS: Final = 200_000
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 10_000
_MAX_DIGITS = 300
_MOST_WORK = 2_000_000

_FENCE = re.compile(r"^[ \t]*```([A-Za-z0-9_+-]*)[ \t]*$", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
_CLOSES: Final = {"[": "]", "{": "}"}


class NotJson(ValueError):
    """The text is not JSON within the bounds; the message says why, in one line."""


def read_json(text: str) -> JsonValue:
    """Reads one JSON value.

    Raises:
        NotJson: it is none, or over a bound.
    """
    if len(text) > MAX_CHARS:
        raise NotJson(f"longer than {MAX_CHARS:,} characters")
    if depth_of(text) > MAX_DEPTH:
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value: JsonValue = json.loads(
            text,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
            object_pairs_hook=_unique_keys,
        )
    except NotJson:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)[:200]) from None
    if _values(value) > MAX_VALUES:
        raise NotJson(f"more than {MAX_VALUES:,} values")
    return value


def _values(value: JsonValue) -> int:
    """How many values a value is made of, itself included; stops behind the bound."""
    count = 0
    waiting = [value]
    while waiting and count <= MAX_VALUES:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return count


def _no_constant(name: str) -> None:
    raise NotJson(f"{name} is not a number of JSON")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise NotJson(f"a number of more than {_MAX_DIGITS} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotJson(f"the number {text[:40]} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotJson("an object has a key twice")
    return value


def depth_of(text: str) -> int:
    """The most brackets that are open at once, outside strings."""
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSES:
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


def fenced(text: str) -> str | None:
    """The content of the last closed code fence that is marked json or not marked; None if none."""
    content = None
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence[1]:
            if opened[1].lower() in ("", "json", "jsonc", "json5"):
                content = text[opened.end() : fence.start()]
            opened = None
    return content


def last_value(text: str, opener: str = "") -> str | None:
    """The last object or list in a text, outside any other; None if there is none.

    Brackets that enclose no JSON are skipped with all that they hold, so that no part of a broken
    object is taken for an answer. The search gives up after 2,000,000 characters of such brackets.

    Args:
        text: at most `MAX_CHARS` characters.
        opener: "{" or "[" for objects or lists only, where the text holds one; empty for either.
    """
    found: dict[str, str] = {}
    last = None
    at = work = 0
    while work < _MOST_WORK and (start := _opening(text, at)) >= 0:
        end = closing(text, start)
        work += (end if end >= 0 else len(text)) - start
        if end >= 0 and reads(text[start:end]):
            last = found[text[start]] = text[start:end]
        at = end if end >= 0 else start + 1
    return found.get(opener, last)


def _opening(text: str, at: int) -> int:
    places = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
    return min(places, default=-1)


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed, exclusive; -1 if it is not, or wrongly."""
    stack: list[str] = []
    for token in _TOKEN.finditer(text, start):
        if token[0] in _CLOSES:
            stack.append(_CLOSES[token[0]])
            if len(stack) > MAX_DEPTH:
                return -1
        elif token[0] in "]}" and token[0] != stack.pop():
            return -1
        if not stack:
            return token.end()
    return -1


def reads(text: str) -> bool:
    """Whether a text is JSON within the bounds."""
    try:
        read_json(text)
    except NotJson:
        return False
    return True
