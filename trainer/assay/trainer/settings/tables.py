"""Sections that are made of what is installed: a dataclass with a table for each plug-in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, make_dataclass
from typing import Any

from assay.clients.toml_config import STRICT


def with_tables(name: str, base: type[Any], tables: Iterable[tuple[str, type[Any]]]) -> type[Any]:
    """A section with the fields of `base` and tables beside them.

    Args:
        name: of the class.
        base: a frozen dataclass.
        tables: the name of each, and the class of its settings, whose fields have defaults.
    """
    return make_dataclass(
        name,
        [(table, kind, field(default_factory=kind)) for table, kind in tables],
        bases=(base,),
        namespace={"__pydantic_config__": STRICT, "__module__": base.__module__},
        frozen=True,
        slots=True,
    )
