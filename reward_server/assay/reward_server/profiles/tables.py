"""Reads tables of TOML strictly: the error for a wrong type or a misspelt key says where it is."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from assay.kit.errors import ConfigError
from assay.reward_server.domain import ParameterValue

_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME_CHARS = 64

Default = TypeVar("Default")


def guess(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing, and what is known."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint}; known: {', '.join(names) or 'none'}"


class TomlTable:
    """One table, whose keys are taken out one by one.

    Args:
        value: from the file.
        where: the file and the place in it, for messages.

    Raises:
        ConfigError: the value is no table. So does every method for a value of a wrong kind.
    """

    def __init__(self, value: object, where: str) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise self.error(f"must be a table, not {_kind(value)}")
        self._left: dict[str, Any] = dict(value)

    def error(self, trouble: str) -> ConfigError:
        """An error that says where it is."""
        return ConfigError(f"{self.where}: {trouble}")

    def has(self, key: str) -> bool:
        """Whether the key is there and was not taken yet."""
        return key in self._left

    def rest(self) -> Mapping[str, object]:
        """The keys that were not taken yet."""
        return self._left

    def only(self, *keys: str) -> None:
        """Checks that no other key is there; call it first, so that its error names a misspelt key.

        Raises:
            ConfigError: there is one.
        """
        for key in self._left:
            if key not in keys:
                raise self.error(f"key {key!r} is not one{guess(key, keys)}")

    def text(self, key: str, default: Default) -> str | Default:
        """A text that is not blank."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{key!r} must be a text that is not blank, not {_kind(value)}")
        return value

    def name(self, key: str, default: Default) -> str | Default:
        """A kebab-case name."""
        value = self.text(key, None)
        return default if value is None else self.checked_name(key, value)

    def checked_name(self, key: str, value: str) -> str:
        """The value, if it is a kebab-case name."""
        if not _KEBAB.fullmatch(value) or len(value) > _MAX_NAME_CHARS:
            raise self.error(
                f"{key!r} must be in kebab-case (small letters, digits, single hyphens; at most "
                f"{_MAX_NAME_CHARS} characters), not {value[:80]!r}"
            )
        return value

    def required(self, key: str, value: Default | None) -> Default:
        """The value, unless the key is absent."""
        if value is None:
            raise self.error(f"{key!r} is missing")
        return value

    def number(self, key: str, default: Default) -> float | Default:
        """A finite number."""
        value = self._take(key)
        return default if value is None else self._number(key, value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(f"{key!r} must be true or false, not {_kind(value)}")
        return value

    def whole(self, key: str) -> int | None:
        """A whole number, at least 0."""
        value = self._take(key)
        if value is not None and (type(value) is not int or value < 0):
            raise self.error(f"{key!r} must be a whole number, at least 0")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Texts: a list of them, or one; empty when absent."""
        value = self._take(key)
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise self.error(f"{key!r} must be a text or a list of texts")
        if not values:
            raise self.error(f"{key!r} is empty: leave it out")
        return tuple(values)

    def bounds(self, key: str) -> tuple[float, float] | None:
        """Two numbers, the lower one first; each may be infinite, one only."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise self.error(f"{key!r} must be a list of two numbers, like [0.0, 1.0]")
        low, high = (self._number(key, one, infinite=True) for one in value)
        if not low < high:
            raise self.error(f"{key!r}: the first number must be below the second")
        return low, high

    def parameters(self, key: str) -> dict[str, ParameterValue]:
        """Values of a verifier's parameters, by name."""
        found: dict[str, ParameterValue] = {}
        for name, value in self.table_of(key).items():
            found[name] = self.value(f"{key}.{name}", value)
        return found

    def value(self, key: str, value: object) -> ParameterValue:
        """A value of a parameter."""
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        if isinstance(value, bool | int | float | str):
            return value
        raise self.error(
            f"{key!r} must be true, false, a number, a text or a list of texts, not {_kind(value)}"
        )

    def table_of(self, key: str) -> Mapping[str, object]:
        """A table of anything; empty when absent."""
        value = self._take(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"{key!r} must be a table, not {_kind(value)}")
        return value

    def tables(self, key: str, what: str) -> list[TomlTable]:
        """An array of tables; empty when absent."""
        value = self._take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{key!r} must be an array of tables: write [[profile.{key}]]")
        return [
            TomlTable(one, f"{self.where}, {what} {_title(one, number)}")
            for number, one in enumerate(value, start=1)
        ]

    def take(self, key: str) -> object:
        """Anything; None when absent."""
        return self._take(key)

    def _take(self, key: str) -> Any:
        return self._left.pop(key, None)

    def _number(self, key: str, value: object, *, infinite: bool = False) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{key!r} must be a number, not {_kind(value)}")
        try:
            number = float(value)
        except OverflowError:
            raise self.error(f"{key!r} is too large") from None
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise self.error(f"{key!r} must be a finite number")
        return number


def _title(value: object, number: int) -> str:
    name = value.get("name") or value.get("verifier") if isinstance(value, dict) else None
    return repr(name) if isinstance(name, str) else f"number {number}"


def _kind(value: object) -> str:
    kinds = {dict: "a table", list: "a list", str: "a text", bool: "true or false"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else "a date")
