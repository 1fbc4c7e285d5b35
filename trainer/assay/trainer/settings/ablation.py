"""Switches parts off. Pure: values in, values out, no TOML."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from assay.kit.errors import ConfigError
from assay.trainer.settings.part import Part
from assay.trainer.settings.registry import part_names, parts_on

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def ablated(config: Config, names: Iterable[str], *, written: Collection[str] = ()) -> Config:
    """Switches parts off, one after the other.

    `written` holds the dotted keys that the config file itself sets. A part that is off already
    passes if the file sets all of its keys, so that the saved settings of an ablated run load.

    Returns:
        The settings, whose `ablate` lists each part that is switched off once.

    Raises:
        ConfigError: a part is unknown, off already, or has no switch. The message names those that
            can be switched off.
    """
    asked = tuple(dict.fromkeys(names))
    # All are judged by what is there now: without the critic, its parts would not be found.
    parts = [_part(config, name, written) for name in asked]
    switches = [part.off for part in parts if part.off is not None and part.is_on(config)]
    for off in switches:
        for key, value in off(config).items():
            config = _replaced(config, key.split("."), value)
    return dataclasses.replace(config, ablate=tuple(dict.fromkeys((*config.ablate, *asked))))


def _part(config: Config, name: str, written: Collection[str]) -> Part:
    part = part_names().get(name)
    if part is None:
        close = difflib.get_close_matches(name, part_names(), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"ablate: {name!r} is not a part; {hint}{_choices(config)}")
    if part.off is None:
        raise ConfigError(
            f"ablate: {name} cannot be switched off by itself, nothing would be left to learn "
            f"from; {_choices(config)}"
        )
    if not part.is_on(config) and not written_off(part, config, written):
        raise ConfigError(f"ablate: {name} is not on; {_choices(config)}")
    return part


def written_off(part: Part, config: Config, written: Collection[str]) -> bool:
    """Whether a part is off and a file sets all of its keys."""
    return part.off is not None and all(key in written for key in part.off(config))


def _choices(config: Config) -> str:
    on = [part.name for part in parts_on(config) if part.off is not None]
    return f"on here: {', '.join(on) or 'none'}"


def _replaced(value: Any, path: list[str], new: object) -> Any:
    name, rest = path[0], path[1:]
    inner = _replaced(getattr(value, name), rest, new) if rest else new
    return dataclasses.replace(value, **{name: inner})
