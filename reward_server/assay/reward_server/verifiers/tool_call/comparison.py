"""Which calls are right: structures, types by schema, and orders. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from assay.kit.json_text import NotJson, read_json
from assay.kit.tool_calls.calls import (
    Argument,
    MaybeCall,
    UntypedText,
    WrittenCall,
)
from assay.reward_server.domain import JsonValue
from assay.reward_server.verifiers.assignment import assign
from assay.reward_server.verifiers.text import schemas

_WORDS: Final[dict[str, JsonValue]] = {"True": True, "False": False, "None": None}
_NEARER = 1e-6


class Expected(Protocol):
    """A call of a reference."""

    @property
    def after(self) -> tuple[int, ...]:
        """Calls of the reference that must come before this one, by their places."""

    def takes(self, call: WrittenCall, *, loose: bool) -> bool:
        """Whether a call is this one."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that may be called: its name, and its parameters as a JSON schema."""

    name: str
    schema: dict[str, Any]

    @property
    def properties(self) -> dict[str, Any]:
        """The schemas of its parameters, by name."""
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    def default(self, name: str) -> list[JsonValue]:
        """The default of a parameter, in a list; an empty one where it has none."""
        part = self.properties.get(name)
        return [part["default"]] if isinstance(part, dict) and "default" in part else []

    def typed(self, arguments: dict[str, Argument]) -> dict[str, Argument]:
        """Arguments with those of no type read as the schema says."""
        return {
            name: read_as(value, types_of(self.properties.get(name)))
            if isinstance(value, UntypedText)
            else value
            for name, value in arguments.items()
        }

    def fits(self, arguments: dict[str, Any]) -> bool:
        """Whether arguments are valid under the schema."""
        try:
            return not any(
                True for _ in schemas.load(self.schema).troubles(arguments, formats=False)
            )
        except RecursionError:
            return False


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call with the values that are right.

    Attributes:
        name: of the tool.
        values: the right values of each argument; one will do.
        optional: arguments that may be left out.
        tool: the tool, where the reference has it.
        after: as of `Expected`.
    """

    name: str
    values: dict[str, list[JsonValue]]
    optional: frozenset[str] = frozenset()
    tool: ToolSchema | None = None
    after: tuple[int, ...] = field(default=())

    def takes(self, call: WrittenCall, *, loose: bool) -> bool:
        """Whether the names are the same, and each argument has one of its right values."""
        if call.name != self.name:
            return False
        given = dict(call.arguments)
        given = self.tool.typed(given) if self.tool else given
        found: dict[str, JsonValue] = {}
        for name, value in given.items():
            choices = self.values.get(name, self.tool.default(name) if self.tool else [])
            right = [one for one in choices if same(value, one, loose=loose)]
            if not right:
                return False
            found[name] = right[0] if isinstance(value, UntypedText) else value
        missing = self.values.keys() - found.keys() - self.optional
        if any(not self._is_default(name) for name in missing):
            return False
        return self.tool is None or self.tool.fits(found)

    def _is_default(self, name: str) -> bool:
        defaults = self.tool.default(name) if self.tool else []
        return any(equal(one, default) for one in self.values[name] for default in defaults)


def hits(
    made: Sequence[MaybeCall], expected: Sequence[Expected], *, ordered: bool, loose: bool
) -> int:
    """How many of the expected calls are made, each by a call of its own.

    With `ordered` the first must be the first. Otherwise they are paired, equal ones in the order
    in which they come; a call that must come after another counts only where it does.
    """
    pairs = zip(made, expected, strict=False)
    in_order = sum(call is not None and one.takes(call, loose=loose) for call, one in pairs)
    if ordered or in_order == len(expected):
        return in_order
    table = [
        [
            _NEARER * abs(row - column) - float(call is not None and one.takes(call, loose=loose))
            for column, call in enumerate(made)
        ]
        for row, one in enumerate(expected)
    ]
    place = {row: column for row, column in assign(table) if table[row][column] < -0.5}
    return sum(
        all(place.get(other, len(made)) < column for other in expected[row].after)
        for row, column in place.items()
    )


def same(found: Argument, wanted: JsonValue, *, loose: bool = False) -> bool:
    """Whether an argument is a value; one without a type is read as the value's type."""
    if not isinstance(found, UntypedText):
        return equal(found, wanted, loose=loose)
    if isinstance(wanted, str):
        return equal(found.value, wanted, loose=loose)
    read = _read(found.value)
    return not isinstance(read, NotJson) and equal(read, wanted, loose=loose)


def equal(found: JsonValue, wanted: JsonValue, *, loose: bool = False) -> bool:
    """Whether two JSON values are the same: numbers by value, objects whatever their order."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return found == wanted
    if isinstance(found, str) and isinstance(wanted, str):
        same_words = found.strip().casefold() == wanted.strip().casefold()
        return found == wanted or (loose and same_words)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            equal(a, b, loose=loose) for a, b in zip(found, wanted, strict=True)
        )
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            equal(found[key], wanted[key], loose=loose) for key in wanted
        )
    return found is None and wanted is None


def types_of(part: Any) -> frozenset[str]:
    """The types that a parameter's schema allows; empty where it does not say."""
    if not isinstance(part, dict):
        return frozenset()
    named = part.get("type")
    types = {named} if isinstance(named, str) else set()
    if isinstance(named, list):
        types = {one for one in named if isinstance(one, str)}
    for key in ("anyOf", "oneOf"):
        for choice in part.get(key, []) if isinstance(part.get(key), list) else []:
            types |= types_of(choice)
    if not types:
        listed = part.get("enum", [part["const"]] if "const" in part else [])
        types = {_type(one) for one in listed} if isinstance(listed, list) else set()
    return frozenset(types)


def read_as(argument: UntypedText, types: frozenset[str]) -> Argument:
    """An argument without a type as one of these; it stays as it is where both may be meant."""
    if not types or ("string" in types and len(types) > 1):
        return argument
    if types == {"string"}:
        return argument.value
    read = _read(argument.value)
    if isinstance(read, NotJson):
        return argument.value
    kind = _type(read)
    return read if kind in types or (kind == "integer" and "number" in types) else argument.value


def _read(text: str) -> JsonValue | NotJson:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return read_json(text)
    except NotJson as error:
        return error


def _type(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {type(None): "null", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
