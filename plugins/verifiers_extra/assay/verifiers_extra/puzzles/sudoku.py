"""`sudoku`: the grid in the response solves the puzzle of the reference.

Any size n^2, n from 2 to 5. The reference is `{"puzzle": grid}` or the grid itself, where a grid is
a list of rows of numbers (0 or null for an empty cell) or of texts, or one text of rows or of all
cells in a row (0, `.`, `_` and `*` are empty; beyond 9 there is a blank or comma between cells).
The grid is solved when it keeps the givens and each row, column and box holds 1 to n^2 once: no
solution is needed in the reference, and with several solutions any will do.

The response's grid is the last N lines in a row that hold N cells each, whatever lines of dashes
are between them and bars between cells; or a JSON list of N lists; or N * N digits in one word.
Only what follows the last `</think>` is read, of that the last `<answer>` element if there is one.

The reward is `solved`, 1 or 0, or `fraction`: the share of the 3N rows, columns and boxes that are
right, 0 if a given was changed. What a policy could game: `fraction` is well above 0 for a grid
that is easy to find (all rows right is a third), and for a solved puzzle only it is 1; `solved`
cannot be gamed, since solving is checking.

Limits. Squares of n^2 with boxes of n by n: no other shapes, no further rules. Givens that clash
are UNUSABLE_REFERENCE; that a puzzle can be solved is not checked otherwise, and one that cannot
gets no right answer.

Measured: nine written forms of one solution, six wrong ones, and larger grids
(`tests/unit/test_verifier_puzzles.py`): no difference. A grid is right or not; misread real
responses: not yet, because no labelled ones are at hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal

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
from assay.verifiers_extra.puzzles import grids

SIDES = (4, 9, 16, 25)
Grid = list[list[int]]

_EMPTY = {"0", ".", "_", "*", "x", "X", "-"}
_RULE = re.compile(r"[\s+|=\u2500-\u257f-]*\Z")


@verifier(
    "sudoku", verdicts=("correct", "incorrect", "unparsed"), isolation="inline", cacheable=False
)
def sudoku(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["solved", "fraction"],
        "1 for a solved puzzle, or the share of rows, columns and boxes that are right.",
    ] = "solved",
) -> Judgement:
    """The grid in the response solves the sudoku and keeps its givens.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    puzzle = _puzzle(item)
    region = answer_region(item.response())
    grid = find_grid(region, len(puzzle)) if region else None
    if grid is None:
        return Judgement.composed(
            "unparsed",
            (Component("solved", 0.0),),
            explanation=f"the answer holds no grid of {len(puzzle)} rows of {len(puzzle)}",
        )
    kept = all(
        not given or given == cell
        for givens, row in zip(puzzle, grid, strict=True)
        for given, cell in zip(givens, row, strict=True)
    )
    share = right_share(grid) if kept else 0.0
    solved = share == 1.0
    why = f"{share:.0%} of rows, columns and boxes are right" if kept else "a given was changed"
    return Judgement.composed(
        "correct" if solved else "incorrect",
        (Component(reward, float(solved) if reward == "solved" else share),),
        extracted_answer="\n".join(" ".join(map(str, row)) for row in grid),
        explanation="solves the puzzle" if solved else why,
    )


def right_share(grid: Grid) -> float:
    """The share of the rows, columns and boxes of a full grid that hold each number once."""
    side = len(grid)
    n = math.isqrt(side)
    units = [*grid, *map(list, zip(*grid, strict=True))]
    for top in range(0, side, n):
        band = grid[top : top + n]
        units += [
            [cell for row in band for cell in row[left : left + n]] for left in range(0, side, n)
        ]
    wanted = set(range(1, side + 1))
    return sum(set(unit) == wanted for unit in units) / len(units)


def find_grid(text: str, side: int) -> Grid | None:
    """The last grid of a text with so many rows and columns; None for none."""
    grid = grids.find_grid(text, side, side, _is_cell)
    if grid is None and side <= 9:
        words = re.findall(rf"(?<!\w)[0-9]{{{side * side}}}(?!\w)", text)
        if words:
            grid = [list(words[-1][start : start + side]) for start in range(0, side * side, side)]
    return None if grid is None else [_numbers(row) for row in grid]


def _is_cell(cell: str) -> bool:
    return cell in _EMPTY or (cell.isdecimal() and len(cell) <= 3)


def _numbers(row: list[str]) -> list[int]:
    return [0 if cell in _EMPTY else int(cell) for cell in row]


def _puzzle(item: VerifierItem) -> Grid:
    value: JsonValue = None
    if item.data is None and len(item.references) == 1:
        value = item.references[0] if item.references[0].lstrip()[:1] not in ("{", "[") else None
    if value is None:
        value = item.document()
    if isinstance(value, dict):
        value = value.get("puzzle")
    grid = _given_grid(value)
    if len(grid) not in SIDES or any(len(row) != len(grid) for row in grid):
        raise _unusable(f"the puzzle of the reference must have {SIDES} rows of as many cells")
    if any(not 0 <= cell <= len(grid) for row in grid for cell in row):
        raise _unusable(f"a cell of the puzzle is not between 0 and {len(grid)}")
    for unit in (*grid, *zip(*grid, strict=True)):
        givens = [cell for cell in unit if cell]
        if len(set(givens)) != len(givens):
            raise _unusable("the puzzle of the reference holds a number twice in a row or column")
    return grid


def _given_grid(value: JsonValue) -> Grid:
    if isinstance(value, str):
        lines = [line for line in value.splitlines() if line.strip() and not _RULE.match(line)]
        text = "".join(lines)
        side = math.isqrt(len(text))
        if len(lines) == 1 and side * side == len(text) and side in (4, 9):
            lines = [text[start : start + side] for start in range(0, len(text), side)]
        return [_given_row(line, len(lines)) for line in lines]
    if not isinstance(value, list):
        raise _unusable('the reference must be a grid or an object {"puzzle": grid}')
    return [_given_row(row, len(value)) for row in value]


def _given_row(row: JsonValue | Sequence[int], side: int) -> list[int]:
    if isinstance(row, str):
        cells = grids.cells_of(row, side, _is_cell)
        if cells is None:
            raise _unusable(f"{row[:60]!r} of the reference is no row of {side} cells")
        return _numbers(cells)
    if not isinstance(row, list):
        raise _unusable("a row of the puzzle must be a list or a text")
    found = []
    for cell in row:
        if cell is not None and (isinstance(cell, bool) or not isinstance(cell, int)):
            raise _unusable(f"a cell of the puzzle must be a whole number or null, not {cell!r}")
        found.append(cell or 0)
    return found


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, trouble)
