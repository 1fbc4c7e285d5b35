"""Environments in words and as data: summaries, tools, settings."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from importlib.metadata import EntryPoint
from typing import Any

from assay.environments.environment import Environment
from assay.environments.record import plain
from assay.environments.tools import tools_of

_ATTRIBUTE = re.compile(r"^(\s*)(\w+):\s*(.*)$")


def summary_of(kind: type[Environment]) -> str:
    """The first sentence of its docstring."""
    text = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    first, stop, _ = text.partition(". ")
    return first + stop.rstrip()


def origin_of(entry: EntryPoint) -> str:
    """The package that brings it."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


def described(kind: type[Environment]) -> dict[str, Any]:
    """All of an environment, in JSON's values."""
    return {
        "name": kind.name,
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "description": inspect.getdoc(kind) or "",
        "repeatable": kind.repeatable,
        "state_read_by": kind.state_read_by,
        "needs": list(kind.needs),
        "tools": [one.schema["function"] for one in tools_of(kind).values()],
        "settings": settings_described(kind),
    }


def settings_described(kind: type[Environment]) -> list[dict[str, Any]]:
    """Name, type, default and meaning of each setting."""
    about: dict[str, str] = {}
    for base in reversed(kind.Settings.__mro__):
        about.update(_attributes(inspect.cleandoc(vars(base).get("__doc__") or "")))
    try:
        hints = typing.get_type_hints(kind.Settings)
    except Exception:  # noqa: BLE001  # whatever an author's annotations name
        hints = {}
    return [
        {
            "name": one.name,
            "type": _type_name(hints.get(one.name, one.type)),
            "default": plain(_default(one)),
            "description": about.get(one.name, ""),
        }
        for one in dataclasses.fields(kind.Settings)
    ]


def in_lines(kind: type[Environment]) -> list[str]:
    """`described`, for a terminal."""
    told = described(kind)
    lines = [told["description"], ""]
    lines.append("tools:" if told["tools"] else "no tools")
    for one in told["tools"]:
        first, *rest = one["description"].splitlines() or [""]
        lines += [f"  {one['name']}: {first}", *(f"    {line}" for line in rest if line)]
        lines.append(f"    {json.dumps(one['parameters'])}")
    lines.append("settings:" if told["settings"] else "no settings")
    for one in told["settings"]:
        default = "required" if one["default"] is None else json.dumps(one["default"])
        lines.append(f"  {one['name']} ({one['type']}, {default}) {one['description']}".rstrip())
    needs = ", ".join(one.replace("|", " or ") for one in kind.needs)
    lines.append(f"columns of a row: {needs or 'none needed'}")
    shared = "samples of one row may share tool results; a record can be branched"
    lines.append(f"repeatable: {shared if kind.repeatable else 'no'}")
    return lines


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _attributes(text: str) -> dict[str, str]:
    """The section "Attributes:" of a docstring in Google's style."""
    about: dict[str, str] = {}
    latest, inside = "", False
    for line in text.splitlines():
        if line.strip() == "Attributes:":
            inside = True
        elif inside and line.strip() and not line.startswith(" "):
            inside = False
        elif inside and (found := _ATTRIBUTE.match(line)) and len(found[1]) <= 4:
            latest = found[2]
            about[latest] = found[3].strip()
        elif inside and latest and line.strip():
            about[latest] = f"{about[latest]} {line.strip()}"
    return about
