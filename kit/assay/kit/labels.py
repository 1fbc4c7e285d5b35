"""Labels of an item: a few names with texts, by which its caller finds it afterwards. Pure.

They are echoed, kept and counted, and nobody judges by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assay.kit.errors import ConfigError

MAX_LABELS = 16
MAX_NAME_CHARS = 64
MAX_VALUE_BYTES = 256

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_NAMES = f"a letter or '_', then letters, digits, '_', '-' and '.', at most {MAX_NAME_CHARS}"


def is_name(name: str) -> bool:
    """Whether a label may have this name."""
    return len(name) <= MAX_NAME_CHARS and _NAME.fullmatch(name) is not None


def trouble_of(labels: Mapping[str, str]) -> str:
    """What is wrong with labels, and what to write; empty where nothing is."""
    if len(labels) > MAX_LABELS:
        return f"{len(labels)} labels; give at most {MAX_LABELS}"
    for name, value in labels.items():
        if not is_name(name):
            return f"a label has the name {name[:80]!r}; write {_NAMES}"
        if len(value) > MAX_VALUE_BYTES or size_of(value) > MAX_VALUE_BYTES:
            return f"the label {name!r} has more than {MAX_VALUE_BYTES} bytes; shorten it"
    return ""


def size_of(value: str) -> int:
    """The bytes of a value on the wire."""
    return len(value.encode("utf-8", "surrogatepass"))


def fitting(value: str) -> str:
    """The value, or as much of its beginning as a label holds; for what nobody typed."""
    text = value.encode("utf-8", "replace")[:MAX_VALUE_BYTES]
    return text.decode("utf-8", "ignore")


def read_labels(pairs: Iterable[str], whose: str) -> dict[str, str]:
    """Labels from texts "NAME=VALUE"; `whose` begins the errors: "--label".

    Raises:
        ConfigError: a text has no "=", a name occurs twice, or they are out of bounds.
    """
    labels: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals:
            raise ConfigError(f"{whose} {pair[:80]!r} has no '='; write NAME=VALUE")
        if name in labels:
            raise ConfigError(f"{whose} gives {name[:80]!r} twice; give it once")
        labels[name] = value.strip()
    if trouble := trouble_of(labels):
        raise ConfigError(f"{whose}: {trouble}")
    return labels
