"""The rules by which the Berkeley Function-Calling Leaderboard compares a call. Pure.

A right answer lists, for each argument, the values that will do; "" among them: it may be left out.
Texts are compared without case, spaces and the punctuation `, . / - _ * ^`, `'` as `"`; a whole
number is a float where one is wanted; an object of answers lists values for each of its keys. In
Java and JavaScript every argument is a text, the value's source code. The rules are those of
`bfcl-eval` 2026.3.23 (`ast_checker`), with four differences:

1. true is not 1, neither in lists nor in objects.
2. A function with dots in its name may be called with underscores, whatever the model.
3. Parallel calls are paired in the best way; the leaderboard takes the first that fits.
4. What makes its checker raise an exception is wrong here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from assay.kit.tool_calls.calls import Argument, UntypedText, WrittenCall
from assay.reward_server.domain import JsonValue
from assay.reward_server.verifiers.tool_call.comparison import equal, read_as
from assay.reward_server.verifiers.tool_call.source import from_java, from_javascript

LANGUAGES: Final = ("python", "java", "javascript")
_PUNCTUATION = re.compile(r"[ ,./\-_*^]")
_PYTHON: Final[dict[str, type]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_JAVA: Final[dict[str, type]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("char", "String", "any"), str),
    **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
    **dict.fromkeys(("HashMap", "Hashtable"), dict),
    "boolean": bool,
}
_JAVASCRIPT: Final[dict[str, type]] = {
    **dict.fromkeys(("integer", "Bigint"), int),
    **dict.fromkeys(("String", "any"), str),
    "float": float,
    "Boolean": bool,
    "dict": dict,
    "array": list,
}
TYPES: Final = {"python": _PYTHON, "java": _JAVA, "javascript": _JAVASCRIPT}
_NESTED: Final = ("array", "tuple", "Array", "ArrayList")
_JSON_TYPES: Final[dict[type, frozenset[str]]] = {
    str: frozenset({"string"}),
    int: frozenset({"integer"}),
    float: frozenset({"number"}),
    bool: frozenset({"boolean"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
}
_SOURCE: Final[dict[str, Callable[[str, str, str], JsonValue]]] = {
    "java": from_java,
    "javascript": from_javascript,
}


@dataclass(frozen=True, slots=True)
class PossibleAnswer:
    """A right call, as BFCL has it.

    Attributes:
        name: of the function.
        answers: the right values of each argument.
        properties: the function's parameters, by name, with BFCL's types.
        required: parameters that a call must have.
        language: one of `LANGUAGES`.
    """

    name: str
    answers: dict[str, list[JsonValue]]
    properties: dict[str, dict[str, Any]]
    required: frozenset[str]
    language: str = "python"
    after: tuple[int, ...] = ()

    def takes(self, call: WrittenCall, *, loose: bool) -> bool:
        """Whether BFCL's rules take the call; they are loose already."""
        del loose
        if call.name not in (self.name, self.name.replace(".", "_")):
            return False
        given = call.arguments
        if self.required - given.keys() or given.keys() - self.answers.keys():
            return False
        if not all(
            name in self.properties and self._takes(name, value) for name, value in given.items()
        ):
            return False
        return all(name in given or "" in options for name, options in self.answers.items())

    def _takes(self, name: str, argument: Argument) -> bool:
        part, options = self.properties[name], self.answers[name]
        kind = str(part.get("type"))
        wanted = TYPES[self.language].get(kind)
        if wanted is None:
            return False
        inner = part["items"].get("type") if kind in _NESTED and "items" in part else None
        if self.language == "python":
            value = (
                read_as(argument, _JSON_TYPES[wanted])
                if isinstance(argument, UntypedText)
                else argument
            )
        else:
            code = argument.value if isinstance(argument, UntypedText) else argument
            if not isinstance(code, str):
                return False
            value = _SOURCE[self.language](code, kind, str(inner or ""))
        if isinstance(value, UntypedText):
            return False
        if wanted is float and self.language == "python" and type(value) is int:
            value = float(value)
        return _value_fits(value, wanted, TYPES[self.language].get(str(inner)), options)


def _value_fits(
    value: JsonValue, wanted: type, inner: type | None, options: list[JsonValue]
) -> bool:
    """Whether a value has its type, or that of the answers (a variable), and is one of them."""
    first = next((type(one) for one in options if one != ""), None)
    if type(value) is not wanted:
        return type(value) is first and _among(value, options)
    if isinstance(value, list) and inner is not None and not _inner_fits(value, inner, options):
        return False
    if first is not None and first is not wanted:
        return _among(value, options)
    return any(_is_one(value, one, inner) for one in options)


def _is_one(value: JsonValue, option: JsonValue, inner: type | None) -> bool:
    """Whether a value is one of the right ones, by the rules of its type."""
    if isinstance(value, dict):
        return _object_fits(value, option)
    if isinstance(value, str):
        return isinstance(option, str) and standard(value) == standard(option)
    if isinstance(value, list):
        listed = option if isinstance(option, list) else []
        if inner is dict:
            return _objects_fit(value, listed)
        return equal([_standard(one) for one in value], [_standard(one) for one in listed])
    return equal(value, option)


def _inner_fits(value: list[JsonValue], inner: type, options: list[JsonValue]) -> bool:
    for option in options:
        if not isinstance(option, list):
            return True
        first = next((type(one) for one in option if one != ""), None)
        if all(type(one) is inner or type(one) is first for one in value):
            return True
    return False


def _object_fits(value: JsonValue, option: JsonValue) -> bool:
    if not isinstance(option, dict) or not isinstance(value, dict) or value.keys() - option.keys():
        return False
    for key, choices in option.items():
        listed = choices if isinstance(choices, list) else [choices]
        if key not in value:
            if "" not in listed:
                return False
        elif not _among(_standard(value[key]), [_standard(one) for one in listed]):
            return False
    return True


def _objects_fit(value: list[JsonValue], listed: list[JsonValue]) -> bool:
    return len(value) == len(listed) and all(
        _object_fits(a, b) for a, b in zip(value, listed, strict=True)
    )


def _among(value: JsonValue, options: list[JsonValue]) -> bool:
    return any(equal(value, one) for one in options)


@lru_cache(maxsize=1_024)
def standard(text: str) -> str:
    """A text as the leaderboard compares it."""
    return _PUNCTUATION.sub("", text).lower().replace("'", '"')


def _standard(value: JsonValue) -> JsonValue:
    return standard(value) if isinstance(value, str) else value
