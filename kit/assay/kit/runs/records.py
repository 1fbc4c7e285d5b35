"""Files of one JSON object per line, readable whatever a kill left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class JsonLines:
    """A file of one JSON object per line, flushed line by line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, row: Mapping[str, Any]) -> None:
        """Appends one row."""
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        self._file.close()


def read_rows(path: Path) -> list[Row]:
    """Rows of a JSON-lines file, without a last one that a kill cut short; none if it is absent."""
    if not path.is_file():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a file of rows, which appears by one rename; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    beside.replace(path)


def mend(path: Path) -> None:
    """Removes a last row that a kill cut short, so that the next begins on a line of its own."""
    if not path.is_file():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(whole)
        beside.replace(path)


def truncate_after(path: Path, step: int) -> None:
    """Drops the rows after a step, so that a resumed run continues the same curve."""
    write_rows(path, [row for row in read_rows(path) if row["step"] <= step])
