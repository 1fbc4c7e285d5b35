"""TOML files as tables, and values as TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean


def read(path: Path, *, examples: str = "configs/ holds examples") -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: the file is not there, cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        near = did_you_mean(path.name, (beside.name for beside in path.parent.glob("*.toml")))
        raise ConfigError(f"config file {path} does not exist{near}; {examples}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {path} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"config file {path} is not valid TOML: {error}") from error


def in_toml(value: object) -> str:
    """A value as TOML has it on the right of its key.

    Raises:
        TypeError: TOML has no such kind.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return (
                "{"
                + ", ".join(f"{json.dumps(key)} = {in_toml(item)}" for key, item in value.items())
                + "}"
            )
        case list() | tuple():
            return "[" + ", ".join(in_toml(item) for item in value) + "]"
    raise TypeError(f"no TOML for {type(value).__name__}")
