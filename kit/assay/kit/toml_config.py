"""Settings as data: a TOML file and `key=value` overrides become one frozen, checked dataclass.

A wrong type, an unknown key or a value out of range is a one-line ConfigError that names the file,
the key and what is expected. The dataclasses carry `__pydantic_config__ = STRICT`; the trainer and
genrm, which import this, bring pydantic.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from assay.kit.errors import ConfigError
from assay.kit.toml_files import in_toml, read

__all__ = ["STRICT", "build", "read", "to_toml"]

STRICT = ConfigDict(extra="forbid", strict=True)

T = TypeVar("T")

# What only the files of one command hold.
_COMMANDS = {
    ("rung",): "assay ladder",
    ("problems",): "assay code-prm",
    ("data", "paths"): "assay train-rm",
    ("rollout",): "assay train",
}


def build(
    kind: type[T], tree: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str
) -> T:
    """A settings value from nested tables and overrides.

    Args:
        kind: a dataclass whose fields are sections or values.
        tree: sections, as TOML has them.
        overrides: `section.key=value`; the value is TOML, or bare text where the field is a text.
        origin: where the tables come from, for messages.

    Raises:
        ConfigError: a setting is unknown, of a wrong type or out of range.
    """
    merged = json.loads(json.dumps(tree, default=str))
    for text in overrides:
        _apply(kind, merged, text)
    try:
        made: T = _adapter(kind).validate_json(json.dumps(merged, default=str))  # type: ignore[arg-type]  # classes can be hashed
        return made
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_explain(kind, error)}{_other(kind, tree)}") from error


def _other(kind: object, tree: Mapping[str, Any]) -> str:
    """The command that takes such a file, where it is not this one."""
    for parts, command in _COMMANDS.items():
        section = tree if len(parts) == 1 else tree.get(parts[0])
        holds = isinstance(section, Mapping) and parts[-1] in section
        if holds and _field_type(kind, list(parts)) is None:
            return f"; it looks like a file of `{command}`"
    return ""


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Cached by kind: making one takes longer than reading a file."""
    return TypeAdapter(kind)


def _apply(kind: object, tree: dict[str, Any], text: str) -> None:
    key, equals, raw = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts) or len(parts) < 2:
        raise ConfigError(
            f"override {text!r} is not of the form section.key=value, such as "
            "optim.learning_rate=1e-5"
        )
    node = tree
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise ConfigError(f"override {text!r}: {part} is a value, not a section")
        node = child
    node[parts[-1]] = _value(kind, parts, raw.strip())


def _value(root: object, parts: list[str], raw: str) -> object:
    """An override's value: TOML; bare text where the field is a text or TOML cannot read it."""
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw
    kind = _field_type(root, parts)
    return raw if kind is str and not isinstance(value, str) else value


def _field_type(kind: Any, parts: list[str]) -> object:
    for part in parts:
        kind = _member(kind, part)
    return kind


def _member(kind: Any, part: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return get_type_hints(kind).get(part)
    if get_origin(kind) in (dict, Mapping):
        return get_args(kind)[1]
    return None


def _explain(kind: object, error: ValidationError) -> str:
    """The first mistake in one line: the key, what is expected, what was there."""
    first = error.errors(include_url=False)[0]
    loc = [str(part) for part in first["loc"]]
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return _explain_unknown(kind, loc) + more
    got = json.dumps(first["input"], ensure_ascii=False)
    got = got if len(got) <= 60 else got[:57] + "..."
    if first["type"] == "missing":
        return f"{'.'.join(loc)} is missing{more}"
    expected = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{'.'.join(loc)}: expected {expected}, got {got}{more}"


def _explain_unknown(kind: Any, loc: list[str]) -> str:
    section, key = loc[:-1], loc[-1]
    for part in section:
        kind = _member(kind, part) or kind
    known = (
        [item.name for item in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    )
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {'.'.join([*section, close[0]])}? " if close else ""
    return f"{'.'.join(loc)} is not a setting; {hint}known here: {', '.join(known)}"


def to_toml(config: Any, heading: str) -> str:
    """A dataclass of sections as TOML; `read` and `build` give back an equal value.

    `heading` is a comment for the first line, without "#".
    """
    return "\n".join([f"# {heading}", *_table(config, "")]) + "\n"


def _table(section: Any, name: str) -> list[str]:
    values = {item.name: getattr(section, item.name) for item in dataclasses.fields(section)}
    sections = {key: value for key, value in values.items() if dataclasses.is_dataclass(value)}
    lines = ["", f"[{name}]"] if name else []
    lines += [
        f"{key} = {in_toml(_plain(value))}" for key, value in values.items() if key not in sections
    ]
    for key, value in sections.items():
        lines += _table(value, f"{name}.{key}" if name else key)
    return lines


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # type: ignore[arg-type]
