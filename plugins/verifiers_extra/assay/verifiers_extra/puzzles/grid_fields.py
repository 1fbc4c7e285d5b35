"""The puzzle of a reference, field by field: what is missing or malformed is said in one line."""

from __future__ import annotations

from collections.abc import Mapping

from assay.reward_server import JsonValue
from assay.verifiers_extra.puzzles.grids import Grid

MAX_SIDE = 30
Place = tuple[int, int]

_EMPTY = frozenset({"", "0", ".", "_", "?", "X", "x", "-", "None"})


class PuzzleTrouble(ValueError):
    """The reference is no puzzle of its kind; the message says why."""


class PuzzleFields:
    """A puzzle's document, read by name.

    Every method raises PuzzleTrouble for a field that is missing or is no such thing.
    """

    def __init__(self, document: Mapping[str, JsonValue]) -> None:
        self._document = document

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._document.get(name) is not None

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean."""
        value = self._document.get(name, default)
        if not isinstance(value, bool):
            raise PuzzleTrouble(f"{name} must be true or false")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number between 0 and 1,000,000."""
        return _whole(self._document.get(name, default), name)

    def text(self, name: str, default: str) -> str:
        """A text of 1 to 10 characters."""
        value = self._document.get(name, default)
        if not isinstance(value, str) or not 0 < len(value) <= 10:
            raise PuzzleTrouble(f"{name} must be a text of 1 to 10 characters")
        return value

    def numbers(self, name: str, length: int | None = None) -> list[int | None]:
        """A list of whole numbers, of a length if one is given; 0 where "" or null stands."""
        values = self._list(name)
        if length is not None and len(values) != length:
            raise PuzzleTrouble(f"{name} must have {length} numbers")
        return [None if value is None else _whole(value, name) for value in values]

    def clues(self, name: str) -> list[list[int]]:
        """A list of lists of whole numbers."""
        rows = []
        for row in self._list(name):
            if not isinstance(row, list):
                raise PuzzleTrouble(f"{name} must be lists of numbers")
            rows.append([_whole(value, name) for value in row])
        return rows

    def grid(self, name: str) -> Grid:
        """A rectangle of cells as texts: lists of rows, or rows of characters or words."""
        value = self._document.get(name)
        rows = list(value.splitlines()) if isinstance(value, str) else value
        if not isinstance(rows, list) or not 0 < len(rows) <= MAX_SIDE:
            raise PuzzleTrouble(f"{name} must be a grid of 1 to {MAX_SIDE} rows")
        grid = [_row(row, name) for row in rows]
        if not 0 < len(grid[0]) <= MAX_SIDE or any(len(row) != len(grid[0]) for row in grid):
            raise PuzzleTrouble(f"the rows of {name} must have one length, 1 to {MAX_SIDE}")
        return grid

    def givens(self, name: str) -> dict[Place, int]:
        """The numbers of a grid by their places; the other cells are empty."""
        found = {}
        for place, cell in cells_by_place(self.grid(name)).items():
            if cell in _EMPTY:
                continue
            if not cell.isdecimal() or len(cell) > 6:
                raise PuzzleTrouble(f"{cell!r} in {name} is neither a number nor an empty cell")
            found[place] = int(cell)
        return found

    def places(self, name: str) -> list[Place]:
        """A list of [row, column], from 0."""
        return [_place(value, name) for value in self._list(name)]

    def records(self, name: str) -> list[PuzzleFields]:
        """A list of objects."""
        found = [PuzzleFields(value) for value in self._list(name) if isinstance(value, dict)]
        if len(found) != len(self._list(name)):
            raise PuzzleTrouble(f"{name} must be a list of objects")
        return found

    def relations(self, name: str) -> list[tuple[Place, Place, str]]:
        """A list of [place, place, sign]; the sign is "<" or ">"."""
        found = []
        for value in self._list(name):
            if not isinstance(value, list) or len(value) != 3 or value[2] not in ("<", ">"):
                raise PuzzleTrouble(f'{name} must be lists [[row, column], [row, column], "<"]')
            found.append((_place(value[0], name), _place(value[1], name), str(value[2])))
        return found

    def _list(self, name: str) -> list[JsonValue]:
        value = self._document.get(name)
        if not isinstance(value, list) or len(value) > MAX_SIDE * MAX_SIDE:
            raise PuzzleTrouble(f"{name} must be a list")
        return value


def cells_by_place(grid: Grid) -> dict[Place, str]:
    """The cells of a grid by (row, column), from 0."""
    return {(r, c): cell for r, row in enumerate(grid) for c, cell in enumerate(row)}


def _row(row: JsonValue, name: str) -> list[str]:
    if isinstance(row, str):
        words = row.replace(",", " ").split()
        return list(words[0]) if len(words) == 1 else words
    if not isinstance(row, list):
        raise PuzzleTrouble(f"a row of {name} must be a list or a text")
    return ["" if cell is None else str(cell) for cell in row]


def _whole(value: JsonValue, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise PuzzleTrouble(f"{name} must hold whole numbers from 0 to 1,000,000")
    return value


def _place(value: JsonValue, name: str) -> Place:
    if not isinstance(value, list) or len(value) != 2:
        raise PuzzleTrouble(f"{name} must hold places [row, column]")
    row, column = _whole(value[0], name), _whole(value[1], name)
    if row >= MAX_SIDE or column >= MAX_SIDE:
        raise PuzzleTrouble(f"a place of {name} is out of the grid")
    return row, column
