"""Values written in the source code of Java and JavaScript, as BFCL's categories have them.

What is not of its type stays a text: a variable, or an expression. Pure, linear in the text, and
nothing is evaluated: `new int[]{1, 2}`, `new ArrayList<>(Arrays.asList("a"))`, `new HashMap<>()
{{ put("a", 1); }}`, `[1, [2]]`, `{a: 1}`, `12L`, `0.5f`, `true`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from assay.reward_server.domain import JsonValue

MAX_CODE_CHARS: Final = 10_000
_WHOLE = re.compile(r"-?\d{1,300}")
_DECIMAL = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")
_PLAIN_DECIMAL = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?")
_LITERAL = re.compile(r"[+-]?(?:\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE][+-]?\d{1,3})?")
_TRUTH = re.compile(r"true|false")
_Form: TypeAlias = tuple[re.Pattern[str], str, type[int] | type[float]]
_JAVA: Final[dict[str, tuple[_Form, ...]]] = {
    **dict.fromkeys(("byte", "short", "integer"), ((_WHOLE, "", int),)),
    "long": ((_WHOLE, "lL", int),),
    "double": ((_DECIMAL, "", float),),
    "float": ((_DECIMAL, "fF", float),),
    "boolean": ((_TRUTH, "", bool),),
}
_JAVASCRIPT: Final[dict[str, tuple[_Form, ...]]] = {
    "integer": ((_WHOLE, "", int),),
    "float": ((_PLAIN_DECIMAL, "", float),),
    "Bigint": ((_WHOLE, "n", int),),
    "Boolean": ((_TRUTH, "", bool),),
}
_AS_LIST = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\(")
_ADDING = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{")
_NO_LIST = re.compile(r"new\s+ArrayList<\w*>\(\)")
_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{")
_MAP = re.compile(r"new\s+HashMap<[^()]{0,200}>\s*\(\)")
_ADD = re.compile(r"add\(([^()]*)\)")
_PUT = re.compile(r'put\("([^"]*)",\s*([^()]*)\)')
_PAIR = re.compile(r"\s*['\"]?([^:'\"]+)['\"]?\s*:\s*")


@lru_cache(maxsize=256)
def from_java(code: str, kind: str, inner: str = "") -> JsonValue:
    """A value of a type of Java's, not to be changed; the code where it is none of that type."""
    if len(code) > MAX_CODE_CHARS:
        return code
    if kind in ("Array", "ArrayList"):
        return (_java_array if kind == "Array" else _java_list)(code, inner)
    return _java_map(code) if kind == "HashMap" else _number(code, _JAVA.get(kind, ()))


@lru_cache(maxsize=256)
def from_javascript(code: str, kind: str, inner: str = "") -> JsonValue:
    """A value of a type of JavaScript's, not to be changed; the code where it is none of it."""
    if len(code) > MAX_CODE_CHARS:
        return code
    if kind == "String":
        return code[1:-1] if _is_quoted(code) else code
    if kind == "array":
        return _array(code.strip(), inner)
    return _object(code.strip()) if kind == "dict" else _number(code, _JAVASCRIPT.get(kind, ()))


def _number(code: str, forms: tuple[_Form, ...]) -> JsonValue:
    """A number of a form: its pattern and its last letters; or a truth value."""
    for pattern, endings, kind in forms:
        digits = code[:-1] if endings else code
        if pattern.fullmatch(digits) and (not endings or code[-1] in endings):
            return code == "true" if kind is bool else kind(digits)
    return code


def _is_quoted(code: str) -> bool:
    return len(code) > 1 and code[0] == code[-1] and code[0] in "\"'"


def _java_array(code: str, inner: str) -> JsonValue:
    found = _ARRAY.search(code)
    end = code.find("}", found.end()) if found else -1
    if found is None or end < 0:
        return code
    parts = [part.strip() for part in code[found.end() : end].split(",")]
    return [from_java(part, inner) if inner else _java_value(part) for part in parts if part]


def _java_list(code: str, inner: str) -> JsonValue:
    def element(part: str) -> JsonValue:
        part = part.strip()
        if inner in ("char", "String"):
            return part[1:-1]
        return from_java(part, inner) if inner else _java_value(part)

    found = _AS_LIST.search(code)
    end = code.find("))", found.end()) if found else -1
    if found is not None and end > found.end():
        return [element(part) for part in code[found.end() : end].split(",")]
    found = _ADDING.search(code)
    end = code.find("}}", found.end()) if found else -1
    if found is not None and end >= 0 and code[found.end() : end].strip():
        return [element(part[1]) for part in _ADD.finditer(code, found.end(), end)]
    return [] if _NO_LIST.search(code) else code


def _java_map(code: str) -> JsonValue:
    found = _MAP.search(code)
    if found is None:
        return code
    return {put[1]: _java_value(put[2].strip()) for put in _PUT.finditer(code, found.end())}


def _java_value(code: str) -> JsonValue:
    number = _number(code, (*_JAVA["long"], *_JAVA["float"]))
    return _plain(code) if number == code else number


def _plain(code: str) -> JsonValue:
    """A truth value, a text in quotes or a number; else the code."""
    code = code.strip()
    if code in ("true", "false"):
        return code == "true"
    if _is_quoted(code):
        return code[1:-1]
    if _WHOLE.fullmatch(code):
        return int(code)
    return float(code) if _LITERAL.fullmatch(code) else code


def _array(code: str, inner: str) -> JsonValue:
    for opens, closes in (("new Array(", ")"), ("[", "]")):
        if code.startswith(opens) and code.endswith(closes):
            code = code[len(opens) : -1].strip()
            break
    else:
        return code
    if code.startswith("["):
        rows = [row.partition("]")[0] for row in code.split("[")[1:]]
        return [[_plain(part) for part in row.split(",")] for row in rows]
    parts = [part.strip() for part in code.split(",")] if code else []
    return [
        from_javascript(part, "String" if part[:1] in ("'", '"') else inner)
        if inner
        else _plain(part)
        for part in parts
    ]


def _object(code: str) -> JsonValue:
    """An object of one level, whose values may be lists and objects of one level."""
    if not (code.startswith("{") and code.endswith("}")):
        return code
    fields: dict[str, JsonValue] = {}
    for part in _split(code[1:-1]):
        pair = _PAIR.match(part)
        if pair is None:
            return code
        value = part[pair.end() :].strip()
        if value.startswith("["):
            fields[pair[1].strip()] = _array(value, "")
        elif value.startswith("{"):
            fields[pair[1].strip()] = _object(value)
        else:
            fields[pair[1].strip()] = _plain(value)
    return fields


def _split(code: str) -> list[str]:
    """The parts between commas outside brackets and quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for place, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(code[start:place])
            start = place + 1
    parts.append(code[start:])
    return [part for part in parts if part.strip()]
