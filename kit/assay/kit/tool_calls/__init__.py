"""Calls of tools in the shapes that APIs and trainers have for them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that came apart from the text: a tool's name, and its arguments or their text.

    Attributes:
        name: empty for what was meant as a call and is none.
        arguments: JSON's values: an object, its text, or None for none.
        id: of the call, where the shape has one.
        text: as it was written, where it could not be read.
    """

    name: str
    arguments: Any = None
    id: str = ""
    text: str = ""


def read_tool_call(value: object) -> tuple[str, Any]:
    """The name of a call, and its arguments: a mapping, their text, or None for none.

    Args:
        value: a mapping with "name" and "arguments", alone or under "function" (OpenAI's chat
            API, TRL); with "function" as the name (Inspect); an object of such attributes or
            that pydantic dumps; or the JSON text of one.

    Raises:
        ValueError: it has no name.
    """
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        dump = getattr(value, "model_dump", None)
        value = dump() if callable(dump) else vars(value) if hasattr(value, "__dict__") else {}
    fields: Any = value
    if isinstance(fields, Mapping) and not isinstance(fields.get("function", ""), str):
        return read_tool_call(fields["function"])
    if isinstance(fields, Mapping):
        name, arguments = fields.get("name", fields.get("function")), fields.get("arguments")
        if isinstance(name, str) and (arguments is None or isinstance(arguments, str | Mapping)):
            return name, arguments
    raise ValueError('a tool call needs a "name" (a text) and "arguments" (an object, or its text)')
