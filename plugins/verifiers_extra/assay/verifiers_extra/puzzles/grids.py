"""Grids in text, as models write them: lists in brackets, rows of cells, rows of characters.

Brackets are read as JSON and Python write lists of lists, quoted or not, with commas or blanks:
`[[1, 0], [0, 1]]`, `[['X' 'A']]`, and `[[1 0, 0 1]]`, whose rows are parted by commas. A drawn grid
is lines in a row with as many cells each; bars, commas and blanks part cells, a line of one word is
read by its characters, and lines of dashes may stand between. Cells at "(row, column)"
are read in place of a grid where the puzzle chooses cells.

Linear; callers pass the answer's region, 20,000 characters at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Grid = list[list[str]]
IsCell = Callable[[str], bool]

MAX_SIDE = 60
_LINE_CHARS = 1_000
_MOST_LINES = 2_000
_TOKEN = re.compile(r"""[\[(]|[\])]|,|"([^"\n]{0,20})"|'([^'\n]{0,20})'|([^\s\[\](),"']{1,20})""")
_PARTED = re.compile(r"[\s,|;\u2500-\u257f]+")
_RULE = re.compile(r"[\s+|=:\-\u2500-\u257f]*(?:```\w{0,20})?\s*\Z")
_BAR = re.compile(r"[ \t|=+:\-\u2500-\u257f]*[|=+\-\u2500-\u257f][ \t|=+:\-\u2500-\u257f]*\s*\Z")
_PLACE = re.compile(r"[(\[]\s{0,4}(\d{1,3})\s{0,4},\s{0,4}(\d{1,3})\s{0,4}[)\]]")


@dataclass(frozen=True, slots=True)
class FoundGrid:
    """A grid of a text and where it begins and ends in it."""

    cells: Grid
    start: int
    end: int


def find_grid(text: str, rows: int, columns: int, is_cell: IsCell) -> Grid | None:
    """The last grid of a size; one in brackets before one that is drawn; None for none.

    Args:
        text: what is read.
        rows: its rows.
        columns: the cells of each.
        is_cell: what may stand in a cell.
    """
    for found in reversed(list(bracketed(text))):
        for cells in _shapes(found.cells, rows, columns):
            if all(is_cell(cell) for row in cells for cell in row):
                return cells
    block: Grid = []
    for line in reversed(text.splitlines()[-_MOST_LINES:]):
        row = cells_of(line, columns, is_cell)
        if row is not None:
            block.insert(0, row)
            if len(block) == rows:
                return block
        elif block and not _RULE.match(line):
            block = []
    return None


def find_grids(text: str, is_cell: IsCell) -> list[Grid]:
    """All grids of a text, whatever their sizes, in order."""
    lists = list(bracketed(text))
    found = [FoundGrid(one.cells, one.start, one.end) for one in lists if _even(one.cells)]
    found = [one for one in found if all(is_cell(cell) for row in one.cells for cell in row)]
    inside = [(one.start, one.end) for one in lists]
    found += _drawn(text, inside, is_cell)
    return [one.cells for one in sorted(found, key=lambda one: one.start)]


def bracketed(text: str) -> Iterator[FoundGrid]:
    """The lists of lists of a text, as texts of cells with the commas among them, in order.

    Rows may differ in length; of lists of grids each grid is found.
    """
    stack: list[tuple[int, list[str], Grid]] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in ("[", "("):
            stack.append((token.start(), [], []))
        elif sign not in ("]", ")"):
            if stack:
                stack[-1][1].append(next((part for part in token.groups() if part), sign))
        elif stack:
            start, cells, rows = stack.pop()
            if rows and all(cell == "," for cell in cells):
                yield FoundGrid(rows, start, token.end())
            elif stack and cells and not rows:
                stack[-1][2].append(cells)


def _shapes(rows: Grid, height: int, width: int) -> Iterator[Grid]:
    """The readings of lists that have a size; commas stand among their cells."""
    bare = [[cell for cell in row if cell != ","] for row in rows]
    if len(bare) == height and all(len(row) == width for row in bare):
        yield bare
    if len(rows) == 1 and len(bare[0]) == height * width and rows[0].count(",") == height - 1:
        parts: Grid = [[]]
        for cell in rows[0]:
            if cell == ",":
                parts.append([])
            else:
                parts[-1].append(cell)
        if all(len(part) == width for part in parts):
            yield parts


def _even(rows: Grid) -> bool:
    """Takes the commas out; whether the rows are of one length."""
    for row in rows:
        row[:] = [cell for cell in row if cell != ","]
    return bool(rows[0]) and all(len(row) == len(rows[0]) for row in rows)


def _drawn(text: str, taken: list[tuple[int, int]], is_cell: IsCell) -> Iterator[FoundGrid]:
    """The blocks of lines in a row with as many cells each, outside of brackets."""
    block: Grid = []
    start = end = at = 0
    places = iter([*taken, (len(text) + 1, len(text) + 1)])
    span = next(places)
    for line in text.splitlines(keepends=True):
        while span[1] <= at:
            span = next(places)
        covered = span[0] < at + len(line)
        row = None if covered else cells_of(line, None, is_cell)
        if row is not None and block and len(row) != len(block[0]):
            yield FoundGrid(block, start, end)
            block = []
        if row is not None:
            start = at if not block else start
            block.append(row)
            end = at + len(line)
        elif block and (covered or not _BAR.match(line)):
            yield FoundGrid(block, start, end)
            block = []
        at += len(line)
    if block:
        yield FoundGrid(block, start, end)


def cells_of(line: str, columns: int | None, is_cell: IsCell) -> list[str] | None:
    """The cells of a line; None when it is no row, or has not so many."""
    cells = [cell for cell in _PARTED.split(line[:_LINE_CHARS].strip().strip("`")) if cell]
    if len(cells) == 1 and (columns is None or len(cells[0]) == columns):
        cells = list(cells[0])
    if not cells or len(cells) > MAX_SIDE or (columns is not None and len(cells) != columns):
        return None
    return cells if all(map(is_cell, cells)) else None


def find_places(text: str) -> list[tuple[int, int]] | None:
    """The cells "(row, column)" that a text lists, in order; None where it lists none.

    Of several lists in brackets the last counts; "[]" is the empty list.
    """
    closes = max(text.rfind("]"), text.rfind("}"))
    if closes < 0:
        places = [(int(found[1]), int(found[2])) for found in _PLACE.finditer(text)]
        return places or None
    depth, opens = 0, closes
    while opens >= 0:
        depth += (text[opens] in "]}") - (text[opens] in "[{")
        if not depth:
            break
        opens -= 1
    content = text[max(opens, 0) : closes + 1]
    places = [(int(found[1]), int(found[2])) for found in _PLACE.finditer(content)]
    if len(places) <= 1 and content.startswith("[") and _PLACE.fullmatch(content):
        whole = [(int(found[1]), int(found[2])) for found in _PLACE.finditer(text)]
        return whole or None
    return places if places or not content.strip("[]{} \n\t") else None
