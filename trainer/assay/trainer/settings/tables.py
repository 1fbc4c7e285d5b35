"""Sections with a table for each installed plug-in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields, make_dataclass
from types import MappingProxyType
from typing import Annotated, Any

from assay.kit.errors import ConfigError
from assay.kit.toml_config import STRICT
from assay.trainer.settings.reading import ReadWhere


def with_tables(
    name: str,
    base: type[Any],
    tables: Iterable[tuple[str, type[Any]]],
    *,
    section: str,
    read: Mapping[str, ReadWhere] = MappingProxyType({}),
) -> type[Any]:
    """A section with the fields of `base` and a table of settings for each (name, class).

    `section` names its place in messages; `read` says where a table is read, if not everywhere.

    Raises:
        ConfigError: two plug-ins want one table, or one wants a key that every run has.
    """
    taken: dict[str, object] = {one.name: "every run" for one in fields(base)}
    found = list(tables)
    for table, kind in found:
        whose = f"{kind.__module__}.{kind.__qualname__}"
        if table in taken:
            raise ConfigError(
                f"[{section}.{table}] would hold the settings of {taken[table]} and of {whose}: "
                "rename one of the two plug-ins, or uninstall its package"
            )
        taken[table] = whose
    return make_dataclass(
        name,
        [
            (
                table,
                Annotated[kind, read[table]] if table in read else kind,
                field(default_factory=kind),
            )
            for table, kind in found
        ],
        bases=(base,),
        namespace={"__pydantic_config__": STRICT, "__module__": base.__module__},
        frozen=True,
        slots=True,
    )
