"""Old names of settings, which work for one release with a warning. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from assay.kit.errors import ConfigError

RENAMED: Mapping[str, str] = {
    "algorithm": "method",
    "cotraining": "method.cotraining",
    "rollout.fire": "method.fire",
    "data.selection.hints": "method.hints",
}
"""Tables of 0.1 and their new places."""
VALUES: Mapping[tuple[str, str], str] = {
    ("method.loss.importance_correction", "truncate"): "token-truncate",
}
"""Values of 0.1, by key, and their new names."""
UNTIL = "0.3"


def renamed(
    tree: Mapping[str, Any], overrides: Iterable[str]
) -> tuple[Mapping[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Tables and overrides under today's names, and a line for each old name found.

    Raises:
        ConfigError: a key is given under both names.
    """
    found: Any = copy.deepcopy(dict(tree))
    met: dict[str, str] = {}
    for old, new in RENAMED.items():
        *above, last = old.split(".")
        holder = found
        for name in above:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(last), dict):
            _merge(_table(found, new), holder.pop(last), old, new)
            met[old] = new
    texts = []
    named: dict[str, str] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        for old, new in RENAMED.items():
            if equals and f"{key.strip()}.".startswith(f"{old}."):
                key, met[old] = new + key.strip()[len(old) :], new
        for (path, old), new in VALUES.items():
            if key.strip() == path and value.strip().strip("\"'") == old:
                value = named[f'{path} = "{old}"'] = new
        texts.append(f"{key}{equals}{value}")
    for (path, old), new in VALUES.items():
        *above, last = path.split(".")
        holder = found
        for name in above:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and holder.get(last) == old:
            holder[last] = named[f'{path} = "{old}"'] = new
    lines = (
        *(f"[{old}] is now [{new}]; the old name works until {UNTIL}" for old, new in met.items()),
        *(f'{old} is now "{new}"; the old name works until {UNTIL}' for old, new in named.items()),
    )
    return found, tuple(texts), lines


def _table(tree: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.split("."):
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{path}: {name} is a value, not a section")
    return tree


def _merge(into: dict[str, Any], table: Mapping[str, Any], old: str, new: str) -> None:
    for key, value in table.items():
        if isinstance(value, Mapping) and isinstance(into.setdefault(key, {}), dict):
            _merge(into[key], value, f"{old}.{key}", f"{new}.{key}")
        elif key in into:
            raise ConfigError(f"{old}.{key} is now {new}.{key}, and both are given; take one out")
        else:
            into[key] = value
