"""Converts frozen dataclasses to the contract's messages and back, by descriptors. Pure.

A `Shape` pairs a dataclass with a message and states only what does not follow from names: a field
goes to the field of its name, `wall_time_s` to a Duration `wall_time`, the word "token-probability"
to SCORING_MODE_TOKEN_PROBABILITY, None to an unset field.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from assay.kit.durations import seconds_of

T = TypeVar("T")
_DURATION = "google.protobuf.Duration"
_FLOATS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)


class SenselessError(ValueError):
    """A message that no server should send."""


class NotFiniteError(SenselessError):
    """A number in it is not finite."""


@dataclass(frozen=True, eq=False)
class Shape(Generic[T]):
    """A dataclass, and the message that carries it.

    Attributes:
        names: fields that have another name in the message; dotted for a field of an inner message.
        zero: the word for an enum's 0, by field; also for values of a later version.
        within: shapes of fields that are dataclasses themselves.
        ratios: fields that must be in [0, 1] when they are read.
        elsewhere: fields that the message does not carry.
        unset_is_none: a 0 is read as None: the message does not tell them apart.
    """

    kind: type[T]
    message: type[Any]
    names: Mapping[str, str] = field(default_factory=dict)
    zero: Mapping[str, str | None] = field(default_factory=dict)
    within: Mapping[str, Shape[Any]] = field(default_factory=dict)
    ratios: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    unset_is_none: bool = False

    def write(self, value: T, **others: Any) -> Any:
        """The message of a value; `others` are fields of the message that the value does not have.

        Raises:
            ValueError: a value does not fit the wire, or is no word of its enum.
            TypeError: a value has a type that the field cannot have.
        """
        message = self.message(**others)
        for name, unset, put in self._writers:
            given = getattr(value, name)
            if given is not None and given is not unset:
                put(message, given)
        return message

    def read(self, message: Any, **others: Any) -> T:
        """The value of a message; `others` are fields of the value that the message does not carry.

        Raises:
            SenselessError: a number is not finite or out of its range, or an enum that has no
                `zero` has an unknown value.
        """
        values = {name: get(message) for name, get in self._readers}
        if self.unset_is_none:
            values = {name: value or None for name, value in values.items()}
        return self.kind(**values, **others)

    @cached_property
    def _fields(self) -> list[tuple[str, str, FieldDescriptor]]:
        """Of each field that the message carries: its name, its path there, its descriptor."""
        found = []
        for one in dataclasses.fields(self.kind):  # type: ignore[arg-type]  # kinds are dataclasses
            if one.name in self.elsewhere:
                continue
            path, descriptor = self.names.get(one.name, one.name), self.message.DESCRIPTOR
            for part in path.split("."):
                wire = (
                    descriptor.fields_by_name.get(part)
                    or descriptor.fields_by_name[part.removesuffix("_s")]
                )
                descriptor = wire.message_type
            path = ".".join([*path.split(".")[:-1], wire.name])
            found.append((one.name, path, wire))
        return found

    @cached_property
    def _writers(self) -> list[tuple[str, object, Callable[[Any, Any], None]]]:
        defaults = {one.name: one.default for one in dataclasses.fields(self.kind)}  # type: ignore[arg-type]  # kinds are dataclasses
        return [
            (
                name,
                None if wire.has_presence or defaults[name] else defaults[name],
                self._writer(name, wire),
            )
            for name, path, wire in self._fields
            if "." not in path and name != "id"
        ]

    def _writer(self, name: str, wire: FieldDescriptor) -> Callable[[Any, Any], None]:
        key, inner = wire.name, self.within.get(name)
        if wire.is_repeated:
            return _adder(name, key, inner)
        if inner is not None:
            return lambda message, value: getattr(message, key).CopyFrom(inner.write(value))
        if wire.message_type is not None and wire.message_type.full_name == _DURATION:
            return lambda message, value: getattr(message, key).FromNanoseconds(
                max(1, round(value * 1e9))
            )
        if wire.enum_type is not None:
            numbers = {word: number for number, word in self._words(name, wire.enum_type).items()}
            return lambda message, value: setattr(message, key, _known(name, value, numbers))
        if wire.type == FieldDescriptor.TYPE_STRING:
            return lambda message, value: setattr(message, key, _text(name, value))
        return lambda message, value: setattr(message, key, value)

    @cached_property
    def _readers(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(name, self._reader(name, path, wire)) for name, path, wire in self._fields]

    def _reader(self, name: str, path: str, wire: FieldDescriptor) -> Callable[[Any], Any]:
        part = self._part(name, wire)
        get = attrgetter(path)
        if wire.is_repeated:
            if part is _itself:
                return lambda message: tuple(get(message))
            known = self._words(name, wire.enum_type) if wire.enum_type is not None else None
            return lambda message: tuple(
                part(value) for value in get(message) if known is None or value in known
            )
        if part is _itself and (wire.message_type is not None or not wire.has_presence):
            return get
        if wire.has_presence and wire.message_type is None:
            *outer, last = path.split(".")
            holder = attrgetter(".".join(outer)) if outer else _itself
            return lambda message: part(get(message)) if holder(message).HasField(last) else None
        return lambda message: part(get(message))

    def _part(self, name: str, wire: FieldDescriptor) -> Callable[[Any], Any]:
        if (inner := self.within.get(name)) is not None:
            return inner.read
        if wire.message_type is not None and wire.message_type.full_name == _DURATION:
            return seconds_of
        if wire.enum_type is not None:
            words = self._words(name, wire.enum_type)
            return lambda value: _word(name, value, words)
        if wire.type in _FLOATS:
            return lambda value: _number(name, value, ratio=name in self.ratios)
        return _itself

    def _words(self, name: str, enum: EnumDescriptor) -> dict[int, str | None]:
        """The words of an enum, by number; 0 has one only where `zero` names it."""
        prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
        words: dict[int, str | None] = {
            value.number: value.name.removeprefix(prefix).lower().replace("_", "-")
            for value in enum.values
            if value.number
        }
        return {0: self.zero[name], **words} if name in self.zero else words


def _itself(message: Any) -> Any:
    return message


def _adder(name: str, key: str, inner: Shape[Any] | None) -> Callable[[Any, Any], None]:
    def add(message: Any, values: Any) -> None:
        if isinstance(values, str):
            raise TypeError(f"{name} is one text; pass a list of texts")
        if isinstance(values, Mapping):
            getattr(message, key).update(values)
            return
        parts = values if inner is None else [inner.write(value) for value in values]
        getattr(message, key).extend(parts)

    return add


def _text(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}; pass a text")
    return value


def _known(name: str, value: Any, table: Mapping[Any, int]) -> int:
    if value not in table:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(table)}")
    return table[value]


def _word(name: str, value: int, words: Mapping[int, str | None]) -> str | None:
    if value in words:
        return words[value]
    if 0 not in words:
        raise SenselessError(f"the server sent {value} as {name}, which this client does not know")
    return words[0]


def _number(name: str, value: float, *, ratio: bool) -> float:
    what = name.replace("_", " ")
    if not math.isfinite(value):
        raise NotFiniteError(f"the server sent {value} as {what}")
    if ratio and not 0 <= value <= 1:
        raise SenselessError(f"the server sent {value} as {what}, not in [0, 1]")
    return value


def add_prompt(prompt: str | Sequence[Mapping[str, str]], message: Any) -> None:
    """Writes a prompt: one text, or chat messages with "role" and "content".

    Raises:
        ValueError: a message lacks one of them.
    """
    if isinstance(prompt, str):
        if prompt:
            message.prompt.add(role="user", content=prompt)
        return
    part: Any  # a caller's own; may be anything
    for part in prompt:
        if not isinstance(part, Mapping) or not {"role", "content"} <= part.keys():
            raise ValueError("a message of the prompt is not {'role': ..., 'content': ...}")
        message.prompt.add(role=part["role"], content=part["content"])
