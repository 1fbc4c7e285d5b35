"""Which columns of the data are the prompt and the reference. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from assay.kit.errors import ConfigError
from assay.trainer.settings.sections import ColumnsConfig, DataConfig

ALIASES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "problem"),
    "reference": ("reference", "answer", "solution", "ground_truth"),
}
"""Names that a column may have; the first is that of `assay score`."""
_GENERATED = {"prompt": "question", "reference": "answer"}


def found_columns(
    config: DataConfig,
    rows: Iterable[Mapping[str, Any]],
    origin: str,
    needs: Collection[str] = ("prompt", "reference"),
) -> ColumnsConfig:
    """The columns with those of prompt and reference named; `origin` names the rows in messages.

    A column that another key of data.columns names counts where no other one is there. Where
    `needs` lacks a key, it stays empty if there is no column: of a reference, none of that very
    name.

    Raises:
        ConfigError: no column has one of the names, or several have.
    """
    columns = config.columns
    wanted = [key for key in ALIASES if not getattr(columns, key)]
    if columns.tests and "reference" in wanted:
        wanted.remove("reference")
    if not wanted:
        return columns
    if config.source == "reasoning_gym":
        return replace(columns, **{key: _GENERATED[key] for key in wanted})
    there = dict.fromkeys(name for row in rows for name in row)
    taken = {columns.prompt, columns.anchor, columns.tests, columns.solution}
    chosen = {
        key: _one_of(key, there, taken, origin)
        if key in needs
        else _any_of(key, there, taken.union(needs))
        for key in wanted
    }
    return replace(columns, **chosen)


def _any_of(key: str, there: Mapping[str, None], taken: set[str]) -> str:
    names = ALIASES[key] if key == "prompt" else (key,)
    return next((name for name in names if name in there and name not in taken), "")


def _one_of(key: str, there: Mapping[str, None], taken: set[str], origin: str) -> str:
    every = [name for name in ALIASES[key] if name in there]
    found = [name for name in every if name not in taken] or every
    if not found:
        raise ConfigError(
            f"{origin}: no column for the {key}: none is named {', '.join(ALIASES[key])}; name it "
            f"with data.columns.{key}; there are: {', '.join(map(str, there))}"
        )
    if len(found) > 1:
        raise ConfigError(
            f"{origin}: the columns {' and '.join(map(repr, found))} may both be the {key}; name "
            f"one with data.columns.{key}, such as data.columns.{key}={found[0]}"
        )
    return found[0]
