"""JSON schemas for hostile values: patterns through RE2, nothing fetched.

The package `jsonschema` decides. Three keywords are replaced, because the validated value is model
text:

- `pattern` is matched by RE2, in linear time. Python's `re` backtracks, and a policy that finds a
  slow text would earn a time-out in place of a 0.
- Keys of `patternProperties` are matched by RE2 beforehand, and each pattern is replaced by the
  list of names in the value that it matches: the package's own uses of it (additionalProperties,
  unevaluatedProperties) then see literals only.
- `uniqueItems` compares by hash; the package falls back to comparing every pair.

A reference ($ref) that leads out of the schema, other than to the drafts' own, is an error when the
schema is read, whatever the value.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from assay.reward_server.domain import JsonValue
from assay.reward_server.verifiers.text.regex import PatternError, compiled

MAX_SCHEMA_CHARS: Final = 200_000
FORMATS: Final = ("date", "email", "idn-email", "ipv4", "ipv6", "uuid")
_MOST_SUBSCHEMAS = 5_000
_REFERENCES: Final = ("$ref", "$dynamicRef")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")


class SchemaError(ValueError):
    """The schema cannot be used; the message says why, and where."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One way in which a value breaks its schema.

    Attributes:
        path: keys and indices that lead to the part of the value.
        missing: the required property that is absent, if that is the error.
        message: what is wrong.
    """

    path: tuple[str | int, ...]
    missing: str | None
    message: str


class Schema:
    """A schema that is ready; made by `load`."""

    def __init__(self, document: JsonValue) -> None:
        """Checks the schema.

        Raises:
            SchemaError: it is no schema of a known draft, refers out of itself, holds a pattern
                that RE2 does not take, or is too large.
        """
        if not isinstance(document, dict | bool):
            raise SchemaError("a schema is an object or a boolean")
        self.document = document
        self._base, self._class = _classes(document)
        self._check(document)
        self._document: Any = copy.deepcopy(document)
        self._patterned = False
        for part in self._parts(self._document):
            part.pop("$schema", None)  # a dialect of its own would bring the package's `re` back
            self._patterned = self._patterned or "patternProperties" in part

    def _check(self, document: JsonValue) -> None:
        import jsonschema  # noqa: PLC0415 - 0.08 s to load
        import referencing.exceptions  # noqa: PLC0415

        try:
            self._base.check_schema(document, format_checker=None)
            list(self._parts(document, check=True))
        except jsonschema.exceptions.SchemaError as error:
            where = "/".join(map(str, error.absolute_path)) or "the schema"
            raise SchemaError(f"{where}: {error.message[:200]}") from None
        except referencing.exceptions.Unresolvable as error:
            raise SchemaError(
                f"the reference {error.ref[:100]!r} leads to nothing in it; nothing is fetched"
            ) from None
        except RecursionError:
            raise SchemaError("it is nested too deeply") from None

    def _parts(self, document: Any, *, check: bool = False) -> Iterator[dict[str, Any]]:
        """The objects of a schema that are schemas themselves, it included."""
        from referencing.jsonschema import specification_with  # noqa: PLC0415

        registry = _registry()
        specification = specification_with(_dialect(self._base))
        root = specification.create_resource(document)
        waiting = [(root, registry.resolver_with_root(root))] if isinstance(document, dict) else []
        for _ in range(_MOST_SUBSCHEMAS):
            if not waiting:
                return
            resource, resolver = waiting.pop()
            if check:
                self._check_part(resource.contents, resolver)
            yield resource.contents
            waiting += [
                (one, resolver.in_subresource(one))
                for one in resource.subresources()
                if isinstance(one.contents, dict)
            ]
        raise SchemaError(f"it has more than {_MOST_SUBSCHEMAS} parts")

    def _check_part(self, part: dict[str, Any], resolver: Any) -> None:
        if not _is_of(part, _dialect(self._base)):
            raise SchemaError("a part of it is of another draft than the whole")
        for name in _REFERENCES:
            if isinstance(part.get(name), str):
                resolver.lookup(part[name])
        patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
        if isinstance(part.get("patternProperties"), dict):
            patterns += part["patternProperties"]
        for pattern in patterns:
            matcher(pattern)

    def troubles(self, value: JsonValue, *, formats: bool) -> Iterator[Trouble]:
        """The ways in which a value breaks the schema; none if it is valid.

        Args:
            value: JSON within the bounds of `json_text`.
            formats: whether `format` counts, for the formats of `FORMATS`.

        Raises:
            RecursionError: value and schema are nested too deeply together, or the schema refers to
                itself without end.
        """
        import jsonschema  # noqa: PLC0415

        document = self._for_value(value) if self._patterned else self._document
        checker = jsonschema.FormatChecker(formats=FORMATS) if formats else None
        validator = self._class(document, registry=_registry(), format_checker=checker)
        for error in validator.iter_errors(value):
            missing = _missing(error) if error.validator == "required" else None
            yield Trouble(tuple(error.absolute_path), missing, error.message)

    def _for_value(self, value: JsonValue) -> Any:
        """The schema with each pattern of names replaced by the value's names that it matches."""
        names = sorted(_names(value))
        document = copy.deepcopy(self._document)
        for part in list(self._parts(document)):
            patterns = part.get("patternProperties")
            if isinstance(patterns, dict):
                part["patternProperties"] = {
                    _literals(pattern, names, index): schema
                    for index, (pattern, schema) in enumerate(patterns.items())
                }
        return document


def load(document: JsonValue) -> Schema:
    """The schema, ready; the last 64 are kept.

    Raises:
        SchemaError: it cannot be used.
    """
    try:
        text = json.dumps(document, sort_keys=True)
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaError(f"it has more than {MAX_SCHEMA_CHARS:,} characters")
    return _loaded(text)


@lru_cache(maxsize=64)
def _loaded(text: str) -> Schema:
    return Schema(json.loads(text))


def matcher(pattern: str) -> Any:
    r"""A pattern of a schema (ECMA-262) compiled by RE2; `\u00e9` is written `\x{00e9}` there.

    Raises:
        SchemaError: RE2 does not take it: look-ahead and back-references do not exist there.
    """
    try:
        return compiled(_UNICODE_ESCAPE.sub(r"\\x{\1}", pattern))
    except PatternError as error:
        raise SchemaError(f"the pattern {pattern[:80]!r} is not one of RE2: {error}") from None


def _literals(pattern: str, names: list[str], index: int) -> str:
    """A pattern that matches those of the names which the given one matches, and nothing else."""
    own = matcher(pattern)
    matched = [re.escape(name) for name in names if own.search(_encodable(name)) is not None]
    apart = f"(?#{index})"  # two patterns may match the same names, and are keys of one object
    return f"^(?:{'|'.join(matched)})\\Z{apart}" if matched else f"(?!){apart}"


def _names(value: JsonValue) -> set[str]:
    names: set[str] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            names.update(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return names


@lru_cache(maxsize=1)
def _registry() -> Any:
    """The drafts' own schemas, and no way to fetch others."""
    from jsonschema_specifications import (  # type: ignore[import-untyped]  # noqa: PLC0415
        REGISTRY,
    )

    return REGISTRY


def _dialect(validator_class: Any) -> str:
    schema = validator_class.META_SCHEMA
    return str(schema.get("$id", schema.get("id")))


def _is_of(part: dict[str, Any], dialect: str) -> bool:
    named = part.get("$schema", dialect)
    return isinstance(named, str) and named.rstrip("#") == dialect.rstrip("#")


def _classes(document: dict[str, JsonValue] | bool) -> tuple[Any, Any]:
    """The package's class for a schema's draft, and ours, which differs in two keywords."""
    from jsonschema import validators  # noqa: PLC0415

    named = document.get("$schema") if isinstance(document, dict) else None
    base: Any = validators.Draft202012Validator
    if named is not None:
        base = validators.validator_for({"$schema": named}, default=cast("Any", None))
    if base is None:
        raise SchemaError(f"$schema {str(named)[:100]!r} is not a known draft")
    return base, _extended(base)


@lru_cache(maxsize=16)
def _extended(base: Any) -> Any:
    from jsonschema import validators  # noqa: PLC0415

    extend: Any = validators.extend
    return extend(base, {"pattern": _pattern, "uniqueItems": _unique_items})


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415

    del schema
    if (
        validator.is_type(instance, "string")
        and matcher(pattern).search(_encodable(instance)) is None
    ):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern[:100]!r}")


def _unique_items(validator: Any, unique: bool, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415

    del schema
    if unique and validator.is_type(instance, "array"):
        keys = [_key(one) for one in instance]
        if len(set(keys)) != len(keys):
            yield ValidationError("a list has an item twice")


def _key(value: Any) -> Any:
    """A hashable that is equal for equal JSON values: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(one)) for name, one in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(_key, value)))
    return ("boolean", value) if isinstance(value, bool) else ("plain", value)


def _missing(error: Any) -> str | None:
    """The property that an error of `required` misses."""
    wanted = error.validator_value
    if not isinstance(wanted, list) or not isinstance(error.instance, dict):
        return None
    for name in wanted:
        if error.message == f"{name!r} is a required property":
            return str(name)
    return None


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
