"""Lists in model text: a JSON list, lines with bullets or numbers, or items between separators.

The text's form alone decides: text that is JSON, or a code fence with JSON, is JSON; several lines
are one item a line; else commas or semicolons part the items. Where a ranking is expected, "a > b >
c" is one. Linear; at most 1,000 items are read.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from assay.kit.json_text import NotJson, fenced, read_json
from assay.reward_server.domain import JsonValue

Separator = Literal["auto", "json", "lines", "commas"]
MAX_ITEMS: Final = 1_000

_BULLET = re.compile(r"\s*(?:[-*\u2022\u2013+]\s+|\(?\d{1,4}[.):、\]]\s*|#\d{1,4}[.:)]?\s+)")
_COMMAS = re.compile(r"[,;\uff0c\u3001\uff1b]")
_ORDER = re.compile(r"[>\u227b\uff1e]+|\\succ(?![a-z])|\\gt(?![a-z])")
_LAST_AND = re.compile(r"^\s*(?:and|or|&|和|与|及)\s+", re.IGNORECASE)


def read_items(
    text: str, separator: Separator = "auto", *, ordered: bool = False
) -> list[str] | None:
    """The items of a list, in order and with repetitions, without bullets; None if it is no list.

    Blank items are left out; "[]" gives an empty list.

    Args:
        text: the answer.
        separator: the form; "auto" decides by the text's form.
        ordered: a ranking is expected, so "a > b > c" is a form too.
    """
    if separator in ("auto", "json"):
        items = _json_items(text)
        if items is not None or separator == "json":
            return items
    if ordered and _ORDER.search(text):
        return _trimmed(_ORDER.split(_one_line(text), MAX_ITEMS))
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_ITEMS:
        return None
    if separator == "lines" or (separator == "auto" and len(lines) > 1):
        bulleted = [line for line in lines if _BULLET.match(line)]
        chosen = bulleted if len(bulleted) > 1 else lines
        return _trimmed([_BULLET.sub("", line, count=1) for line in chosen])
    return _trimmed(
        [_LAST_AND.sub("", part) for part in _COMMAS.split(_unwrapped(text), MAX_ITEMS)]
    )


def _json_items(text: str) -> list[str] | None:
    block = fenced(text)
    text = (text if block is None else block).strip()
    if not text.startswith("["):
        return None
    try:
        value = read_json(text)
    except NotJson:
        return None
    return texts_of(value)


def texts_of(value: JsonValue) -> list[str] | None:
    """The items of a JSON list of texts, numbers and booleans, as texts; None for anything else."""
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        return None
    if not all(isinstance(one, str | int | float | bool) for one in value):
        return None
    return [text_of(one) for one in value]


def text_of(value: JsonValue) -> str:
    """A JSON text, number or boolean as a text: 2.0 is "2", true is "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _trimmed(parts: list[str]) -> list[str] | None:
    items = [
        item for part in parts[: MAX_ITEMS + 1] if (item := part.strip().strip(_AROUND).strip())
    ]
    return items if items and len(items) <= MAX_ITEMS else None


_AROUND: Final = " \t\r\n*`\"'\u201c\u201d"


def _one_line(text: str) -> str:
    lines = [line for line in text.splitlines() if _ORDER.search(line)]
    return lines[-1] if lines else text


def _unwrapped(text: str) -> str:
    """Without one pair of brackets around the whole."""
    text = text.strip(_AROUND).rstrip(".\u3002")
    if len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()"):
        return text[1:-1]
    return text
