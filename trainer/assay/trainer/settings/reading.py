"""Which settings a run reads. Pure.

A section declares beside a setting, or a whole table, where it is read:

    path: Annotated[str, only("data.source", "jsonl")] = ""

A setting that is not read there and has another value than its default is an error, which names
both. Where the command line, or a file laid over another, chose the mode, what lies beneath has for
another mode is left out instead, and that is said.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar, get_type_hints

from assay.kit.errors import ConfigError

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class ReadWhere:
    """A mark within Annotated: where a setting is read.

    Attributes:
        key: dotted, of the setting that decides.
        holds: whether its value is one with which the marked setting is read.
        words: those values.
        also: of all settings, whether they read it whatever `key` is.
    """

    key: str
    holds: Callable[[Any], bool]
    words: str
    also: Callable[[Any], bool] = lambda _config: False

    def __call__(self, config: Any) -> bool:
        """Whether these settings read what is marked."""
        return self.holds(attrgetter(self.key)(config)) or self.also(config)


def only(key: str, *values: object) -> ReadWhere:
    """Read where `key` has one of these values."""
    return ReadWhere(key, lambda value: value in values, " or ".join(map(_written, values)))


def other_than(key: str, off: object) -> ReadWhere:
    """Read where `key` has another value than this one."""
    return ReadWhere(key, lambda value: value != off, f"not {_written(off)}")


def above(key: str, least: int) -> ReadWhere:
    """Read where `key` is above `least`."""
    return ReadWhere(key, lambda value: value > least, f"above {least}")


@dataclass(frozen=True, slots=True)
class UnreadSetting:
    """A setting with a value of its own that this run does not read."""

    key: str
    value: object
    mark: ReadWhere
    decides: object  # the value of mark.key

    def __str__(self) -> str:
        return (
            f"{self.key} = {_written(self.value)} is read only where {self.mark.key} is "
            f"{self.mark.words}, and {self.mark.key} = {_written(self.decides)}; take one of the "
            "two out"
        )


def unread(config: Any) -> Iterator[UnreadSetting]:
    """Settings of their own value that are not read, in the order of the sections."""
    return _unread(config, config, type(config)(), "", ())


def _unread(
    config: Any, section: Any, default: Any, prefix: str, above: tuple[ReadWhere, ...]
) -> Iterator[UnreadSetting]:
    kind: Any = type(section)
    marks_of = _marks(kind)
    for one in fields(section):
        value, plain = getattr(section, one.name), getattr(default, one.name)
        if value == plain:
            continue
        marks, key = (*above, *marks_of.get(one.name, ())), prefix + one.name
        if is_dataclass(value) and type(value) is type(plain):
            yield from _unread(config, value, plain, f"{key}.", marks)
            continue
        for mark in marks:
            decides = attrgetter(mark.key)(config)
            if not mark(config):
                yield UnreadSetting(key, value, mark, decides)
                break


@functools.cache
def _marks(kind: Any) -> dict[str, tuple[ReadWhere, ...]]:
    hints = get_type_hints(kind, include_extras=True)
    found = {
        name: tuple(m for m in getattr(hint, "__metadata__", ()) if isinstance(m, ReadWhere))
        for name, hint in hints.items()
    }
    return {name: marks for name, marks in found.items() if marks}


def settled(
    config: S,
    *,
    layers: Sequence[Collection[str]],
    exempt: Callable[[str], bool] = lambda _key: False,
    lenient: bool = False,
    say: Callable[[str], None],
) -> S:
    """The settings without what they do not read.

    Args:
        config: the settings.
        layers: keys and tables that are set above the file, such as by the command line; each layer
            lies over those before it.
        exempt: tells keys that decided otherwise when the unread ones were written.
        lenient: leaves out whatever is not read, as from the saved settings of a run.
        say: gets a line about what is left out.

    Raises:
        ConfigError: a setting is not read, and no layer above its own chose so.
    """
    left: dict[str, list[str]] = {}
    for one in list(unread(config)):
        if exempt(one.mark.key):
            continue
        if not lenient and _height(one.mark.key, layers) <= _height(one.key, layers):
            raise ConfigError(str(one))
        config = _without(config, one.key.split("."))
        left.setdefault(f"{one.mark.key} = {_written(one.decides)}", []).append(one.key)
    for decides, keys in left.items():
        say(f"left out, since {decides}: {', '.join(keys)}")
    return config


def said_of(origin: str) -> Callable[[str], None]:
    """Prints notes on settings from `origin` on stderr."""
    return lambda line: print(f"note: {origin}: {line}", file=sys.stderr)


def _height(key: str, layers: Sequence[Collection[str]]) -> int:
    """The highest layer that sets a key, from 1; 0 for the file."""
    found = [
        height
        for height, layer in enumerate(layers, start=1)
        if any(f"{key}.".startswith(f"{one}.") for one in layer)
    ]
    return max(found, default=0)


def given_by(texts: Iterable[str]) -> frozenset[str]:
    """Keys and tables that overrides set."""
    return frozenset(text.partition("=")[0].strip() for text in texts)


def _without(section: Any, path: list[str]) -> Any:
    name, rest = path[0], path[1:]
    if rest:
        return replace(section, **{name: _without(getattr(section, name), rest)})
    return replace(section, **{name: getattr(type(section)(), name)})


def _written(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            text = f'"{value}"'
        case list() | tuple():
            text = f"[{', '.join(map(_written, value))}]"
        case _:
            text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
