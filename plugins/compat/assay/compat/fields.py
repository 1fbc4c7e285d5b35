"""Reads fields of an untrusted JSON object, and says which one is wrong. Pure.

Unknown fields are ignored, as by the servers whose formats these are.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
from collections.abc import Mapping

_ALSO = "/mnt/"

REQUIRED = object()
"""As a default: the field must be there."""


class BadField(ValueError):
    """A field is missing or wrong.

    Attributes:
        path: where it is, e.g. ("config", "run_timeout").
        problem: what is wrong with it, in a few words.
    """

    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        super().__init__(f"{'.'.join(map(str, path)) or 'the body'}: {problem}")
        self.path = path
        self.problem = problem


class Fields:
    """The fields of one object, at `path` in the body.

    Raises:
        BadField: it is no object.
    """

    def __init__(self, value: object, path: tuple[str | int, ...] = ()) -> None:
        if not isinstance(value, Mapping):
            raise BadField(path, "must be an object")
        self._fields: Mapping[str, object] = value
        self._path = path

    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(str(name) for name in self._fields)

    def raw(self, name: str, default: object = REQUIRED) -> object:
        """A field of any type."""
        value = self._fields.get(name, default)
        if value is REQUIRED:
            raise BadField((*self._path, name), "is required")
        return value

    def has(self, name: str) -> bool:
        """Whether the field is there, and not null."""
        return self._fields.get(name) is not None

    def bad(self, name: str, problem: str) -> BadField:
        """The error about a field."""
        return BadField((*self._path, name), problem)

    def inner(self, name: str, default: object = REQUIRED) -> Fields:
        """An object."""
        return Fields(self.raw(name, default), (*self._path, name))

    def text(self, name: str, default: object = REQUIRED) -> str:
        """A text that UTF-8 can carry."""
        value = self.raw(name, default)
        if not isinstance(value, str):
            raise self.bad(name, "must be a string")
        return self._encodable(name, value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where it is absent."""
        value = self.raw(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.bad(name, "must be a list of strings")
        return tuple(self._encodable(name, each) for each in value)

    def flag(self, name: str) -> bool:
        """True or false; false where it is absent."""
        value = self.raw(name, False)
        if not isinstance(value, bool):
            raise self.bad(name, "must be true or false")
        return value

    def number(self, name: str, default: object = REQUIRED) -> float:
        """A finite number."""
        value = self.raw(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, "must be a number")
        if not -(2**53) < value < 2**53:  # NaN, infinities and what no float can hold are not
            raise self.bad(name, "must be a finite number below 2**53")
        return float(value)

    def positive(self, name: str, default: object = REQUIRED) -> float:
        """A number above 0."""
        value = self.number(name, default)
        if value <= 0:
            raise self.bad(name, "must be above 0")
        return value

    def seconds(self, name: str, default: float) -> float:
        """A number above 0; null counts as absent."""
        return self.positive(name) if self.has(name) else default

    def identity(self, name: str) -> int | str:
        """The caller's name for something: a number or a text."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise self.bad(name, "must be a number or a string")
        return value

    def loaded(self, name: str) -> object:
        """A field that may be JSON within a text."""
        value = self.raw(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value, strict=False)
        except (ValueError, RecursionError) as error:
            raise self.bad(name, f"is not JSON: {error}") from error

    def loaded_object(self, name: str) -> Fields:
        """As `loaded`, of an object."""
        return Fields(self.loaded(name), (*self._path, name))

    def files(self, name: str = "") -> dict[str, bytes]:
        """A map from relative paths to contents in base64; null stands for no file.

        With an empty name this object itself is the map.
        """
        contents: dict[str, bytes] = {}
        inner = self.inner(name, {}) if name else self
        for path, content in inner._fields.items():
            if content is None:
                continue
            where = f"{name}[{path[:80]!r}]"
            if not isinstance(content, str):
                raise self.bad(where, "must be a string in base64, or null")
            try:
                data = base64.b64decode("".join(content.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.bad(where, f"is not base64: {error}") from error
            contents[self.own_path(where, path)] = data
        return contents

    def own_path(self, name: str, path: str) -> str:
        """A path inside the program's folder, which programs find under /mnt as well."""
        return self.relative_path(name, path.removeprefix(_ALSO))

    def relative_path(self, name: str, path: str) -> str:
        """A normalised path inside the program's folder."""
        plain = posixpath.normpath(self._encodable(name, path)) if path else ""
        if not plain or plain == "." or plain.startswith(("/", "../")) or plain == "..":
            raise self.bad(name, "must be a relative path inside the program's folder")
        return plain

    def _encodable(self, name: str, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.bad(name, "holds half a surrogate pair, which is no text") from error
        return value
