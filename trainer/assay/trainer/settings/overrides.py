"""Short forms of overrides.

model=PATH_OR_NAME        model.name
data=FILE.jsonl[.gz]      data.source = "jsonl" and data.path
data=FOLDER_OR_NAME       data.source = "hub" and data.name, which takes folders as well
reward=VERIFIER           reward.verifier
ablate=PART,PART          parts to switch off, besides those in the file
over=FILE.toml            its tables laid over the config's, such as configs/scale/7b.toml
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError

_JSONL = (".jsonl", ".jsonl.gz", ".parquet")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Overrides of the command line."""

    texts: tuple[str, ...]  # `section.key=value`, short forms written out
    ablate: tuple[str, ...]  # names of parts to switch off


def expand(texts: Iterable[str]) -> Overrides:
    """Writes short forms out; anything else stays as it is.

    Raises:
        ConfigError: the data are neither a .jsonl file, a folder nor a name.
    """
    written: list[str] = []
    names: list[str] = []
    for text in texts:
        key, equals, value = text.partition("=")
        match key.strip() if equals else None:
            case "model":
                written.append(f"model.name={value.strip()}")
            case "reward":
                written.append(f"reward.verifier={value.strip()}")
            case "data":
                written += _data(value.strip())
            case "ablate":
                names += _names(value)
            case _:
                written.append(text)
    return Overrides(tuple(written), tuple(names))


def laid_over(
    tree: Mapping[str, Any], texts: Iterable[str], read: Callable[[Path], Mapping[str, Any]]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Lays the tables of each `over=FILE` over `tree`, in order; also returns the other overrides.

    `read` gives the tables of a file.
    """
    rest: list[str] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if equals and key.strip() == "over":
            tree = _merged(tree, read(Path(value.strip())))
        else:
            rest.append(text)
    return tree, tuple(rest)


def _merged(tree: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(tree)
    for name, value in over.items():
        beneath = both.get(name)
        tables = isinstance(value, Mapping) and isinstance(beneath, Mapping)
        both[name] = _merged(beneath, value) if tables else value  # type: ignore[arg-type]  # tables
    return both


def _names(value: str) -> list[str]:
    bare = value.strip().removeprefix("[").removesuffix("]")
    return [name for part in bare.split(",") if (name := part.strip().strip("\"'"))]


def _data(value: str) -> list[str]:
    if value.endswith(_JSONL):
        return ["data.source=jsonl", f"data.path={value}"]
    path = Path(value)
    if path.is_file() or (not path.is_dir() and value.startswith((".", "/", "~"))):
        raise ConfigError(
            f"override 'data={value}': give a {' or '.join(_JSONL)} file, a folder that is there, "
            "or the name of a data set on the hub"
        )
    return ["data.source=hub", f"data.name={value}"]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys with their values."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def merged(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with others laid over them."""
    laid = dict(tree)
    for key, value in changes.items():
        below = laid.get(key)
        laid[key] = (
            merged(below if isinstance(below, Mapping) else {}, value)
            if isinstance(value, Mapping)
            else value
        )
    return laid


def with_source(
    tree: Mapping[str, Any], texts: Iterable[str], *, file: str = "path"
) -> tuple[str, ...]:
    """Overrides, with the source of files or a data set that are named without one.

    What the command line names takes precedence over what the file names.

    Args:
        tree: the tables of a file.
        texts: overrides.
        file: the key of [data] that names files; `name` names a data set of the hub.

    Raises:
        ConfigError: both are named.
    """
    texts = tuple(texts)
    own = {key.strip(): value.strip() for key, _, value in (t.partition("=") for t in texts)}
    below = tree.get("data", {})
    if "data.source" in own or not isinstance(below, Mapping) or "source" in below:
        return texts
    sources = {file: "jsonl", "name": "hub"}
    typed = {key: own.get(f"data.{key}", "").strip("\"'").replace("[]", "") for key in sources}
    left = {key: None if f"data.{key}" in own else below.get(key) for key in sources}
    for given in (typed, left):
        named = [key for key in sources if given[key]]
        if len(named) > 1:
            told = " and ".join(f"data.{key} = {json.dumps(given[key])}" for key in named)
            raise ConfigError(f"{told} name two data sets; take one of them out")
        if named:
            return (*texts, f"data.source={sources[named[0]]}")
    return texts
