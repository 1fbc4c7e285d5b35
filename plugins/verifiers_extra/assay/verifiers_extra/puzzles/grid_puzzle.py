"""`grid-puzzle`: the answer solves the grid puzzle of the reference, by the puzzle's own rules.

The reference is the puzzle, `{"kind": ..., ...}`; no solution is needed, and of several each is
right. Places are [row, column] from 0; a cell that is 0, null, "", ".", "_" or "X" is empty.

Filled with numbers:

 - `latin` (futoshiki, skyscraper, calcudoku): each line holds 1 to n once. Any of `grid` (givens),
   `inequalities` ([[r, c], [r, c], "<"]), `top`, `bottom`, `left`, `right` (clues; 0 for none; with
   `sum` true the heights seen are added), `cages` ({"cells", "target", "operator"}; with `distinct`
   true no number is twice in one), `size`;
 - `binario`: `grid`; `unique` false allows lines alike;
 - `numbrix` (hidato): `grid`; `diagonal` true for steps to corners;
 - `magic-square`: `grid`; `consecutive` false for other numbers than 1 to n^2;
 - `survo`: `grid` with the sums in its last row and column, `candidates`.

Cells are chosen:

 - `kakurasu`: `row_sums`, `column_sums`; `nonogram`: `rows`, `columns`, lists of runs;
 - `tents` (campsite): `grid` with "T" for trees, `row_counts`, `column_counts`;
 - `star-battle`: `regions`, `stars`; `norinori`: `regions`; `hitori`: `grid`;
 - `minesweeper`: `grid`, `mines` (how many); `light-up` (akari): `grid` with "#" and numbers;
 - `nurikabe`: `grid`; `connected` and `corners` false for walls in parts and islands that touch at
   no corner, which is `number-wall`;
 - `places`: `solution`, a list of places, `size`: the same cells; for one solution.

Filled with signs: `arrow-maze` (`grid`), and `equal` (`solution`): the same grid.

The answer is read in the last `<answer>` element after the thought, or in all that follows it: the
last grid of the puzzle's size, as `grids` reads it. Where cells are chosen, `mark` says which sign
does (by default 1 in kakurasu, C in tents, A in nurikabe, * in star-battle, minesweeper and
light-up, # else), and with `origin` 0 or 1 in the reference a list of places, "(1, 2), (2, 4)", is
read where there is no grid.

The reward is 1 or 0. What a policy could game: a reference whose rules are fewer than the
question's. Known limits: 30 by 30; that a puzzle can be solved is not checked.

Measured: against SynLogic's verifiers (12 kinds, arXiv 2505.19641) and Enigmata's (5 kinds, arXiv
2505.19914) on 14,000 solved puzzles and mutations of them: they agree on 13,738, and part where
theirs leave rules out (regions without a domino, rows of skyscrapers that are no permutation, tents
without a tree of their own) or judge the writing (a domino said twice).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.geometry.reading import answer_region
from assay.verifiers_extra.puzzles.grid_fields import (
    MAX_SIDE,
    Place,
    PuzzleFields,
    PuzzleTrouble,
    cells_by_place,
)
from assay.verifiers_extra.puzzles.grid_rules import ARROWS, OF_NUMBERS, OF_PLACES, OF_SIGNS
from assay.verifiers_extra.puzzles.grids import Grid, find_grid, find_places

KINDS: Final = tuple(sorted([*OF_NUMBERS, *OF_PLACES, *OF_SIGNS]))
ALIASES: Final[Mapping[str, tuple[str, Mapping[str, JsonValue]]]] = {
    "akari": ("light-up", {}),
    "calcudoku": ("latin", {}),
    "campsite": ("tents", {}),
    "futoshiki": ("latin", {}),
    "hidato": ("numbrix", {"diagonal": True}),
    "number-wall": ("nurikabe", {"connected": False, "corners": False}),
    "skyscraper": ("latin", {}),
    "sum-skyscraper": ("latin", {"sum": True}),
}
_NEEDED: Final = {
    "kakurasu": ("row_sums", "column_sums"),
    "nonogram": ("rows", "columns"),
    "tents": ("grid", "row_counts", "column_counts"),
    "star-battle": ("regions",),
    "norinori": ("regions",),
    "places": ("solution", "size"),
    "equal": ("solution",),
    "latin": (),
}
_LINES: Final = {
    "row_sums": False,
    "column_sums": True,
    "row_counts": False,
    "column_counts": True,
    "top": True,
    "bottom": True,
    "left": False,
    "right": False,
}
"""Lists of numbers, and whether there is one for each column."""
_FLAGS: Final = ("connected", "consecutive", "corners", "diagonal", "distinct", "sum", "unique")
_OF_GIVENS: Final = frozenset(OF_NUMBERS) - {"binario"} | {"nurikabe"}
_OPERATORS: Final = frozenset("+-*/=\u00d7\u00f7")
_MARKS: Final = {
    "kakurasu": "1",
    "tents": "C",
    "nurikabe": "A",
    "star-battle": "*",
    "minesweeper": "*",
    "light-up": "*",
}
_BLANK: Final = frozenset([".", "_", "-", "0", "X", "x", "O", "o", ""])
_SHOWN_CHARS = 500


@verifier(
    "grid-puzzle",
    verdicts=("correct", "incorrect", "unparsed"),
    isolation="inline",
)
def grid_puzzle(item: VerifierItem) -> Judgement:
    """The grid or the cells in the response solve the puzzle of the reference by its rules.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong with the puzzle.
    """
    document = item.document()
    try:
        kind, puzzle = _puzzle(document)
        size = _checked(kind, puzzle)
        region = answer_region(item.response()) or ""
        if kind in OF_PLACES:
            return _chosen(kind, puzzle, size, region)
        return _filled(kind, puzzle, size, region)
    except PuzzleTrouble as trouble:
        raise Unjudgeable(UNUSABLE_REFERENCE, f"the puzzle cannot be used: {trouble}") from trouble


def _filled(kind: str, puzzle: PuzzleFields, size: Place, region: str) -> Judgement:
    is_cell = _is_sign if kind in OF_SIGNS else _is_number
    grid = find_grid(region, *size, is_cell)
    if grid is None:
        return _unparsed(f"the answer holds no grid of {size[0]} rows of {size[1]} cells")
    if kind in OF_SIGNS:
        trouble = OF_SIGNS[kind](puzzle, grid)
    else:
        trouble = OF_NUMBERS[kind](puzzle, [[int(cell) for cell in row] for row in grid])
    return _judgement(trouble, "\n".join(" ".join(row) for row in grid))


def _chosen(kind: str, puzzle: PuzzleFields, size: Place, region: str) -> Judgement:
    mark = puzzle.text("mark", _MARKS.get(kind, "#"))
    given = cells_by_place(puzzle.grid("grid")) if puzzle.has("grid") else {}
    signs = {mark, "1", *_BLANK, *given.values()}
    grid = find_grid(region, *size, signs.__contains__)
    if grid is not None:
        cells = cells_by_place(grid)
        chosen = {place for place, cell in cells.items() if cell == mark}
        if kind != "hitori" and not _kept(given, cells, mark):
            return _judgement("a given cell was changed", _listed(chosen))
        return _judgement(OF_PLACES[kind](puzzle, chosen), _listed(chosen))
    places = find_places(region) if puzzle.has("origin") else None
    if places is None:
        return _unparsed(
            f"the answer holds no grid of {size[0]} rows of {size[1]} cells, nor places"
        )
    origin = puzzle.number("origin")
    chosen = {(row - origin, column - origin) for row, column in places}
    if any(not (0 <= row < size[0] and 0 <= column < size[1]) for row, column in chosen):
        return _judgement("a place is out of the grid", _listed(chosen))
    return _judgement(OF_PLACES[kind](puzzle, chosen), _listed(chosen))


def _kept(given: dict[Place, str], cells: dict[Place, str], mark: str) -> bool:
    """Whether an answer leaves the puzzle's signs, or marks them, and adds no number above 1."""
    return all(
        cells[at] in ((*_BLANK, mark) if cell in _BLANK else (cell, mark))
        for at, cell in given.items()
    )


def _is_number(cell: str) -> bool:
    return cell.isdecimal() and len(cell) <= 4


def _is_sign(cell: str) -> bool:
    return cell in ARROWS or 0 < len(cell) <= 4


def _listed(chosen: set[Place]) -> str:
    return ", ".join(map(str, sorted(chosen)))


def _judgement(trouble: str, answer: str) -> Judgement:
    return Judgement.composed(
        "incorrect" if trouble else "correct",
        (Component("solved", float(not trouble)),),
        extracted_answer=answer[:_SHOWN_CHARS] or None,
        explanation=trouble or "solves the puzzle",
    )


def _unparsed(why: str) -> Judgement:
    return Judgement.composed("unparsed", (Component("solved", 0.0),), explanation=why)


# --- The reference --------------------------------------------------------------------------------


def _puzzle(document: JsonValue) -> tuple[str, PuzzleFields]:
    if not isinstance(document, dict):
        raise PuzzleTrouble('it must be an object {"kind": ..., ...}')
    kind = document.get("kind")
    name, preset = ALIASES.get(kind, (kind, {})) if isinstance(kind, str) else ("", {})
    if name not in KINDS:
        known = ", ".join(sorted([*KINDS, *ALIASES]))
        raise PuzzleTrouble(f"kind must be one of {known}")
    return name, PuzzleFields({**preset, **document})


def _checked(kind: str, puzzle: PuzzleFields) -> Place:
    """The size of the puzzle's grid; what the rules read is read once, so that it is sound."""
    missing = [name for name in _NEEDED.get(kind, ("grid",)) if not puzzle.has(name)]
    if missing:
        raise PuzzleTrouble(f"{kind} needs {', '.join(missing)}")
    height, width = _size(kind, puzzle)
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise PuzzleTrouble(f"a grid has 1 to {MAX_SIDE} rows and columns")
    if kind in ("latin", "magic-square") and height != width:
        raise PuzzleTrouble(f"{kind} has as many rows as columns")
    for name in filter(puzzle.has, ("grid", "regions")):
        if _size_of(puzzle.grid(name)) != (height, width):
            raise PuzzleTrouble(f"{name} has another size than the clues")
    for name in filter(puzzle.has, _LINES):
        puzzle.numbers(name, width if _LINES[name] else height)
    for name in filter(puzzle.has, _FLAGS):
        puzzle.flag(name, default=False)
    if any(row >= height or column >= width for row, column in _places(kind, puzzle)):
        raise PuzzleTrouble("a place is out of the grid")
    if kind in _OF_GIVENS and puzzle.has("grid"):
        puzzle.givens("grid")
    if puzzle.number("origin", 0) > 1:
        raise PuzzleTrouble("origin must be 0 or 1")
    return height, width


def _size_of(grid: Grid) -> Place:
    return len(grid), len(grid[0])


def _size(kind: str, puzzle: PuzzleFields) -> Place:
    grid = next(filter(puzzle.has, ("grid", "regions")), "solution" if kind == "equal" else None)
    if grid is not None:
        return _size_of(puzzle.grid(grid))
    if kind == "kakurasu":
        return len(puzzle.numbers("row_sums")), len(puzzle.numbers("column_sums"))
    if kind == "nonogram":
        return len(puzzle.clues("rows")), len(puzzle.clues("columns"))
    if kind == "places":
        height, width = (value or 0 for value in puzzle.numbers("size", 2))
        return height, width
    clue = next(filter(puzzle.has, ("top", "bottom", "left", "right")), None)
    side = puzzle.number("size") if clue is None else len(puzzle.numbers(clue))
    return side, side


def _places(kind: str, puzzle: PuzzleFields) -> list[Place]:
    """The places that the puzzle's fields name."""
    found = list(puzzle.places("solution")) if kind == "places" else []
    if kind == "latin" and puzzle.has("inequalities"):
        found += [
            place for one, other, _ in puzzle.relations("inequalities") for place in (one, other)
        ]
    if kind == "latin" and puzzle.has("cages"):
        for cage in puzzle.records("cages"):
            cells = cage.places("cells")
            if not cells or cage.text("operator", "=") not in _OPERATORS:
                raise PuzzleTrouble("a cage needs cells, and one of the operators + - * / =")
            cage.number("target")
            found += cells
    return found
