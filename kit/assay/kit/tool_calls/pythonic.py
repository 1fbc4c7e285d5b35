"""Calls in Python's syntax, read as literals: `[f(x=1, y="a"), g()]`. Nothing is evaluated.

`ast.parse` is safe for short, flat text only: it recurses over nesting, chains and operators, and
may end the process on some. So tokens are looked at first. What comes through is names, numbers,
strings, brackets, commas, colons, dots, `=` and signs before numbers, in an order in which only
brackets nest: at most 64 deep, 10,000 tokens, names of 16 parts, numbers of 300 digits.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import warnings
from typing import Final

from assay.kit.json_text import MAX_DEPTH, MAX_VALUES, JsonValue
from assay.kit.tool_calls.calls import MaybeCall, WrittenCall

_MOST_PARTS = 16
_MOST_DIGITS = 300
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>[rRuU]?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"
        |'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    |(?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[^\W\d]\w*)
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<mark>[,:=.])|(?P<sign>[+-])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {"True", "False", "None"}
_BANNED: Final = frozenset(keyword.kwlist) - _WORDS
# What may stand behind what. An open bracket behind a closing one, a text or a number would chain.
_AFTER: Final = {
    "start": {"open", "name", "number", "text", "sign"},
    "open": {"open", "close", "name", "number", "text", "sign"},
    "close": {"close", ",", ":", "name"},
    "name": {"open", "close", ",", ":", "=", "."},
    "number": {"close", ",", ":"},
    "text": {"close", ",", ":"},
    "sign": {"number"},
    ",": {"open", "close", "name", "number", "text", "sign"},
    ":": {"open", "name", "number", "text", "sign"},
    "=": {"open", "name", "number", "text", "sign"},
    ".": {"name"},
}


class _NoLiteralError(ValueError):
    """An argument is no literal."""


def read_python(text: str, *, names: bool = False) -> list[MaybeCall] | None:
    """The calls of a text that is calls, one a line, or one list of calls; None for other texts.

    Args:
        text: of any content.
        names: a bare name is a text, as BFCL takes variables; otherwise it is no literal.
    """
    text = text.strip()
    if not _is_plain(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the model's strings
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [one.value for one in body if isinstance(one, ast.Expr)]
    if len(found) == 1 and isinstance(found[0], ast.List):
        found = found[0].elts
    calls = [one for one in found if isinstance(one, ast.Call)]
    if len(calls) < len(found) or len(body) > len(found) > 0 or not body:
        return None
    return [_call(one, names=names) for one in calls]


def _is_plain(text: str) -> bool:
    """Whether the tokens of a text are few, flat and of the kinds that literals have."""
    last, depth, parts, count, end = "start", 0, 0, 0, 0
    for token in _TOKEN.finditer(text):
        kind = str(token.lastgroup)
        if token.start() != end:
            return False
        end = token.end()
        if kind == "space":
            continue
        kind = token[0] if kind == "mark" else kind
        count += 1
        depth += (kind == "open") - (kind == "close")
        parts = parts + 1 if kind == "." else 0 if kind != "name" else parts
        if kind not in _AFTER[last] or count > MAX_VALUES or not 0 <= depth <= MAX_DEPTH:
            return False
        if parts >= _MOST_PARTS or (kind == "name" and token[0] in _BANNED):
            return False
        if kind == "number" and len(token[0]) > _MOST_DIGITS:
            return False
        if last == "close" and kind == "name" and depth:
            return False
        last = kind
    return end == len(text) and depth == 0


def _call(node: ast.Call, *, names: bool) -> MaybeCall:
    name = _dotted(node.func)
    given = [one.arg for one in node.keywords]
    if name is None or node.args or None in given or len(set(given)) < len(given):
        return None
    try:
        return WrittenCall(
            name, {str(one.arg): _literal(one.value, names) for one in node.keywords}
        )
    except _NoLiteralError:
        return None


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _literal(node: ast.expr, names: bool) -> JsonValue:
    match node:
        case ast.Constant(value=str() | bool() | int() | None as value):
            return value
        case ast.Constant(value=float() as number) if math.isfinite(number):
            return number
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant() as operand):
            plain = _literal(operand, names)
            if isinstance(plain, int | float) and not isinstance(plain, bool):
                return -plain if isinstance(sign, ast.USub) else plain
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item, names) for item in items]
        case ast.Dict():
            return _dict(node, names)
        case ast.Name() | ast.Attribute() if names:
            dotted = _dotted(node)
            if dotted is not None:
                return dotted
    raise _NoLiteralError


def _dict(node: ast.Dict, names: bool) -> JsonValue:
    fields: dict[str, JsonValue] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise _NoLiteralError
        if key.value in fields:
            raise _NoLiteralError
        fields[key.value] = _literal(value, names)
    return fields
