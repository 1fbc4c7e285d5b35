"""Settings with parts switched off. Pure: values in, values out, no TOML."""

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
    """The settings with parts switched off, one after the other.

    Args:
        config: the settings.
        names: of the parts.
        written: dotted keys that the config file itself sets. A part that is off already is let
            pass if the file sets all of its keys, as the complete settings of an ablated run do:
            so these can be loaded again.

    Returns:
        The settings; `ablate` lists the parts that are switched off, each once.

    Raises:
        ConfigError: a part is unknown, is not on, or has no switch. The message names those that
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
    """The part of a name, if it can be switched off."""
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
    """Whether a file sets all keys of a part that is off."""
    return part.off is not None and all(key in written for key in part.off(config))


def _choices(config: Config) -> str:
    on = [part.name for part in parts_on(config) if part.off is not None]
    return f"on here: {', '.join(on) or 'none'}"


def _replaced(value: Any, path: list[str], new: object) -> Any:
    """A frozen dataclass with one value replaced, down a path of fields."""
    name, rest = path[0], path[1:]
    inner = _replaced(getattr(value, name), rest, new) if rest else new
    return dataclasses.replace(value, **{name: inner})
