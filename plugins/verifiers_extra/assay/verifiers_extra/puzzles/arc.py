"""`arc`: the grid in the response is the output grid of the reference, as in ARC-AGI.

The reference is the grid, a list of rows of digits 0 to 9, or `{"output": grid}` as in a task's
test pairs; at most 60 by 60 (ARC has 30 by 30). A grid is read from lists in brackets, JSON or
Python, or from rows of digits with or without blanks, commas or bars between them, in the last
`<answer>` element after the thought, or in all that follows it; the last one counts. With
attempts=2 the last two count, and either may be right, as ARC Prize scores.

The reward is `solved`, 1 or 0, or `cells`: the share of equal cells, 0 for another size. What a
policy could game: `cells` pays for copying the input or for the commonest colour, often above 0.8,
so train on `solved` and use `cells` to look at runs. With attempts=2 a response gets two guesses:
set it only where the item allows two.

Known limits. One output grid an item. A bare number on a line is a grid of one row.

Measured: the verdict of Enigmata's verifier on 400 of 400 grids in code blocks (right, a cell or a
row changed, transposed); it reads none without a block.
"""

from __future__ import annotations

from typing import Annotated, Literal

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.geometry.reading import answer_region
from assay.verifiers_extra.puzzles.grids import MAX_SIDE, Grid, find_grids

_COLOURS = frozenset("0123456789")
_SHOWN_CHARS = 500


@verifier(
    "arc",
    tasks=("arc-agi",),
    verdicts=("correct", "incorrect", "unparsed"),
    isolation="inline",
)
def arc(
    item: VerifierItem,
    *,
    attempts: Annotated[
        int, Range(1, 2), "How many grids may be tried: the last one, or the last two."
    ] = 1,
    reward: Annotated[
        Literal["solved", "cells"], "1 for the right grid, or the share of equal cells."
    ] = "solved",
) -> Judgement:
    """The grid in the response is the output grid of the reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no grid of digits.
    """
    wanted = _wanted(item.document())
    region = answer_region(item.response())
    tried = find_grids(region, _COLOURS.__contains__)[-attempts:] if region else []
    if not tried:
        return Judgement.composed(
            "unparsed", (Component("solved", 0.0),), explanation="the answer holds no grid"
        )
    shares = [equal_share(grid, wanted) for grid in tried]
    best = max(shares)
    solved = best == 1.0
    return Judgement.composed(
        "correct" if solved else "incorrect",
        (Component(reward, float(solved) if reward == "solved" else best),),
        extracted_answer=_drawn(tried[shares.index(best)]),
        explanation=f"{best:.1%} of the cells are equal" if best else "another size",
    )


def equal_share(grid: Grid, wanted: Grid) -> float:
    """The share of equal cells; 0 where the sizes differ."""
    if [len(row) for row in grid] != [len(row) for row in wanted]:
        return 0.0
    mine, theirs = ([cell for row in rows for cell in row] for rows in (grid, wanted))
    return sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(theirs)


def _wanted(document: JsonValue) -> Grid:
    grid = document.get("output") if isinstance(document, dict) else document
    if not isinstance(grid, list) or not 0 < len(grid) <= MAX_SIDE:
        raise _unusable("it must be a list of rows, or an object with such an output")
    rows = [row for row in grid if isinstance(row, list) and 0 < len(row) <= MAX_SIDE]
    if len(rows) != len(grid) or len({len(row) for row in rows}) != 1:
        raise _unusable(f"its rows must be lists of one length, 1 to {MAX_SIDE}")
    cells = [[str(cell) for cell in row] for row in rows]
    if not all(cell in _COLOURS for row in cells for cell in row):
        raise _unusable("a cell is no digit")
    return cells


def _drawn(grid: Grid) -> str:
    return "\n".join(" ".join(row) for row in grid)[:_SHOWN_CHARS]


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference is no grid: {trouble}")
