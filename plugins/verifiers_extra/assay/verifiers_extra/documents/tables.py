"""Tables in HTML or Markdown, as rows of cells."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from assay.reward_server import JsonValue

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,15})\b([^<>]{0,1000})>")
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?(\d{1,4})", re.IGNORECASE)
_DELIMITER = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*(?:\s*:?-+:?)?")
_BAR = re.compile(r"(?<!\\)\|")
_BREAKS = frozenset({"br", "p", "div", "li"})
_CELLS = frozenset({"td", "th"})


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell: its text with single spaces, and how many columns and rows it takes."""

    text: str
    columns: int = 1
    rows: int = 1


Grid = list[list[TableCell]]
"""The rows of a table."""


def read_table(text: str) -> Grid | str:
    """The last table of a text, in HTML where there is any, else in Markdown; or why there is none.

    Linear in the text.
    """
    if re.search(r"<table\b", text, re.IGNORECASE):
        return _html(text)
    return _markdown(text)


def table_of(value: JsonValue) -> Grid | None:
    """A list of lists of texts and numbers as a table; None for anything else."""
    if not isinstance(value, list) or not value:
        return None
    grid: Grid = []
    for row in value:
        if not isinstance(row, list) or not all(isinstance(one, str | int | float) for one in row):
            return None
        grid.append([TableCell(_spaced(str(one))) for one in row])
    return grid if any(grid) else None


class _Reader:
    """Reads the tags of HTML, one by one, into the rows of the last table.

    Attributes:
        grid: the rows so far.
        is_open: a table is open.
        spans: of the cell that is open; None for none.
        said: the cell's text, in pieces.
    """

    def __init__(self) -> None:
        self.grid: Grid = []
        self.is_open = False
        self.spans: tuple[int, int] | None = None
        self.said: list[str] = []

    def open(self, name: str, attributes: str) -> str:
        """Takes an opening tag; says what is wrong with it, or nothing."""
        if name == "table":
            if self.is_open:
                return "a table stands within a table"
            self.grid, self.is_open, self.spans = [], True, None
        elif self.is_open and name == "tr":
            self.close(name)
            self.grid.append([])
        elif self.is_open and name in _CELLS:
            self.close(name)
            if not self.grid:
                return "a cell stands outside of a row"
            self.spans, self.said = _spans(attributes), []
        return ""

    def close(self, name: str) -> None:
        """Ends the cell that is open, and with its own tag the table."""
        if self.spans is not None:
            text = html.unescape("".join(self.said))
            self.grid[-1].append(TableCell(_spaced(text), *self.spans))
            self.spans = None
        if name == "table":
            self.is_open = False


def _html(text: str) -> Grid | str:
    reader = _Reader()
    at = 0
    for match in _TAG.finditer(text):
        ends, name = bool(match[1]), match[2].lower()
        reader.said.append(text[at : match.start()] + (" " if name in _BREAKS else ""))
        at = match.end()
        if not ends:
            trouble = reader.open(name, match[3])
            if trouble:
                return trouble
        elif reader.is_open and (name in _CELLS or name in ("tr", "table")):
            reader.close(name)
    if reader.is_open:
        return "the table is not closed"
    return reader.grid if any(reader.grid) else "the table has no cells"


def _spans(attributes: str) -> tuple[int, int]:
    found = {name.lower(): int(value) for name, value in _SPAN.findall(attributes)}
    return found.get("colspan", 1), found.get("rowspan", 1)


def _markdown(text: str) -> Grid | str:
    lines = text.splitlines()
    start = None
    for place in range(1, len(lines)):
        rule = lines[place].strip()
        if "|" in lines[place - 1] and "-" in rule and _DELIMITER.fullmatch(rule):
            start = place
    if start is None:
        return "there is no table"
    body = []
    for line in lines[start + 1 :]:
        if "|" not in line:
            break
        body.append(line)
    return [list(_cells(line)) for line in (lines[start - 1], *body)]


def _cells(line: str) -> Iterator[TableCell]:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    for part in _BAR.split(line):
        yield TableCell(_spaced(html.unescape(part.replace("\\|", "|"))))


def _spaced(text: str) -> str:
    return " ".join(text.split())
