"""Data sets of the hub as rows: `hf://datasets/NAME[@REVISION][?subset=NAME&split=NAME]`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from assay.cli.scoring.files import as_line
from assay.clients.rows.hub import load_hub
from assay.kit.errors import ConfigError

HUB = "hf://datasets/"
_QUERY = ("subset", "split")


@dataclass(frozen=True, slots=True)
class HubRows:
    """What an address names; the name may be a local folder.

    Attributes:
        revision: a branch, tag or commit; empty for the newest.
        subset: empty for the only one.
        split: empty for the only one.
    """

    name: str
    revision: str = ""
    subset: str = ""
    split: str = ""


def read_address(text: str) -> HubRows:
    """An address taken apart.

    Raises:
        ConfigError: it has another form.
    """
    rest, _, query = text.removeprefix(HUB).partition("?")
    name, _, revision = rest.partition("@")
    asked = parse_qsl(query, keep_blank_values=True)
    known = dict(asked)
    if not name or len(known) < len(asked) or not set(known) <= set(_QUERY) or "" in known.values():
        raise ConfigError(f"{text}: write {HUB}NAME[@REVISION][?subset=NAME&split=NAME]")
    return HubRows(name, revision, **known)


@contextmanager
def spooled_hub(text: str) -> Iterator[Path]:
    """The rows of a data set as a file of JSON Lines.

    Raises:
        ConfigError: the address has another form, or the data set cannot be loaded.
    """
    found = read_address(text)
    rows = load_hub(found.name, found.subset, found.split, found.revision)
    with tempfile.NamedTemporaryFile(prefix="assay-hub-", suffix=".jsonl") as file:
        for row in rows:
            file.write(as_line(row) + b"\n")
        file.flush()
        yield Path(file.name)
