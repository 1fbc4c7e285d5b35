"""Between Python values and assay.api.execution.v1.PlainValue. Pure.

Plain values are trees of exact built-in types. A value of a subclass (an IntEnum, a defaultdict, a
numpy number) is refused: convert it first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from assay.api.execution.v1 import execution_pb2

_INT64 = range(-(2**63), 2**63)
# Protobuf's parsers stop at 100 messages inside one another; some lie around the value.
_MAX_LEVELS = 84
_LIST_LEVELS = 2
_MAPPING_LEVELS = 3


def to_plain(value: object) -> execution_pb2.PlainValue:
    """Writes a value.

    Raises:
        TypeError: a part of it is not of an exact built-in type.
        ValueError: it is nested too deeply, holds a number of more than 4,300 digits, or a text
            that is not Unicode.
    """
    message = execution_pb2.PlainValue()
    _write(value, message, _MAX_LEVELS)
    return message


def from_plain(message: execution_pb2.PlainValue) -> object:
    """Reads a value; sets inside sets and keys are frozen.

    Raises:
        ValueError: a value has no kind, a number is none, or a key or element of a set cannot be
            one.
    """
    return _read(message, hashable=False)


def plain_json(message: execution_pb2.PlainValue) -> Any:
    """Reads a value of JSON's shapes: null, bool, number, text, list, mapping.

    Raises:
        ValueError: a part of it has another shape, no kind, or is a number that is none.
    """
    kind = message.WhichOneof("kind")
    if kind == "list_value":
        return [plain_json(value) for value in message.list_value.values]
    if kind == "mapping_value":
        entries = message.mapping_value.entries
        return {_json_key(entry.key): plain_json(entry.value) for entry in entries}
    if kind in ("tuple_value", "set_value", "bytes_value"):
        raise ValueError(f"JSON has no {kind.removesuffix('_value')}; send a list or a text")
    value = _read(message, hashable=False)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _json_key(message: execution_pb2.PlainValue) -> str:
    if message.WhichOneof("kind") != "string_value":
        raise ValueError("a key of a mapping is not a text")
    return message.string_value


def _write(value: object, message: execution_pb2.PlainValue, levels: int) -> None:
    if levels < 0:
        raise ValueError("the value is nested too deeply to be sent (40 lists, 27 mappings)")
    kind = type(value)
    if value is None:
        message.null_value = True
    elif kind in _CONTAINERS:
        field = _CONTAINERS[kind]
        target: execution_pb2.PlainList = getattr(message, field)
        target.SetInParent()
        for element in value:  # type: ignore[attr-defined]  # a container, by its kind
            _write(element, target.values.add(), levels - _LIST_LEVELS)
    elif isinstance(value, dict) and kind is dict:
        message.mapping_value.SetInParent()
        for key, entry in value.items():
            added = message.mapping_value.entries.add()
            _write(key, added.key, levels - _MAPPING_LEVELS)
            _write(entry, added.value, levels - _MAPPING_LEVELS)
    elif isinstance(value, int) and kind is int:
        if value in _INT64:
            message.int_value = value
        else:
            message.big_int_value = str(value)
    elif kind in _SCALARS:
        setattr(message, _SCALARS[kind], value)
    else:
        raise TypeError(
            f"a value of type {kind.__name__} is not plain data; pass None, bool, int, float, str, "
            "bytes, list, tuple, set or dict"
        )


_CONTAINERS: dict[type, str] = {
    list: "list_value",
    tuple: "tuple_value",
    set: "set_value",
    frozenset: "set_value",
}
_SCALARS: dict[type, str] = {
    bool: "bool_value",
    float: "float_value",
    str: "string_value",
    bytes: "bytes_value",
}


def _read(message: execution_pb2.PlainValue, *, hashable: bool) -> object:
    kind = message.WhichOneof("kind")
    if kind is None:
        raise ValueError("a plain value has no kind")
    return _READERS[kind](message, hashable)


def _elements(values: execution_pb2.PlainList, hashable: bool) -> list[object]:
    return [_read(value, hashable=hashable) for value in values.values]


def _read_set(message: execution_pb2.PlainValue, hashable: bool) -> object:
    try:
        elements = frozenset(_elements(message.set_value, hashable=True))
    except TypeError as error:
        raise ValueError(f"an element of a set cannot be one: {error}") from None
    return elements if hashable else set(elements)


def _read_mapping(message: execution_pb2.PlainValue, hashable: bool) -> object:
    if hashable:
        raise ValueError("a mapping cannot be a key or an element of a set")
    try:
        return {
            _read(entry.key, hashable=True): _read(entry.value, hashable=False)
            for entry in message.mapping_value.entries
        }
    except TypeError as error:
        raise ValueError(f"a key of a mapping cannot be one: {error}") from None


def _read_big_int(message: execution_pb2.PlainValue, _: bool) -> object:
    text = message.big_int_value
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit():
        raise ValueError("a whole number is not written in decimal digits")
    return int(text)


_READERS: dict[str, Callable[[Any, bool], object]] = {
    "null_value": lambda message, _: None,
    "bool_value": lambda message, _: message.bool_value,
    "int_value": lambda message, _: message.int_value,
    "big_int_value": _read_big_int,
    "float_value": lambda message, _: message.float_value,
    "string_value": lambda message, _: message.string_value,
    "bytes_value": lambda message, _: message.bytes_value,
    "list_value": lambda message, hashable: _elements(message.list_value, hashable),
    "tuple_value": lambda message, hashable: tuple(_elements(message.tuple_value, hashable)),
    "set_value": _read_set,
    "mapping_value": _read_mapping,
}
