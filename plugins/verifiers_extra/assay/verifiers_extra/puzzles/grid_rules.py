"""The rules of grid puzzles: what of a filled grid, or of chosen cells, breaks them. Pure.

Each rule gives "" when the answer solves the puzzle, else what is wrong. The fields are those of
the reference of `grid-puzzle`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from assay.verifiers_extra.puzzles.grid_fields import (
    Place,
    PuzzleFields,
    PuzzleTrouble,
    cells_by_place,
)
from assay.verifiers_extra.puzzles.grids import Grid

Numbers = list[list[int]]
Chosen = set[Place]

_SIDES = ((-1, 0), (0, -1), (0, 1), (1, 0))
_AROUND = (*_SIDES, (-1, -1), (-1, 1), (1, -1), (1, 1))
ARROWS = {
    "\u2190": (0, -1),
    "\u2191": (-1, 0),
    "\u2192": (0, 1),
    "\u2193": (1, 0),
    "\u2196": (-1, -1),
    "\u2197": (-1, 1),
    "\u2198": (1, 1),
    "\u2199": (1, -1),
}


# --- Filled with numbers --------------------------------------------------------------------------


def latin(puzzle: PuzzleFields, grid: Numbers) -> str:
    """Futoshiki, skyscrapers, calcudoku: each row and column holds 1 to n once."""
    everything = set(range(1, len(grid) + 1))
    if any(set(line) != everything for line in (*grid, *zip(*grid, strict=True))):
        return "a row or column does not hold each number once"
    if puzzle.has("grid") and (changed := _changed(puzzle.givens("grid"), grid)):
        return changed
    if puzzle.has("inequalities"):
        for (r, c), (s, d), sign in puzzle.relations("inequalities"):
            small, large = (grid[r][c], grid[s][d]) if sign == "<" else (grid[s][d], grid[r][c])
            if small >= large:
                return f"an inequality does not hold at ({r}, {c})"
    distinct = puzzle.flag("distinct", default=False)
    cages = puzzle.records("cages") if puzzle.has("cages") else []
    if not all(_cage_holds(cage, grid, distinct=distinct) for cage in cages):
        return "a cage has another result"
    return _skyline(puzzle, grid)


def _skyline(puzzle: PuzzleFields, grid: Numbers) -> str:
    columns = [list(column) for column in zip(*grid, strict=True)]
    seen = sum if puzzle.flag("sum", default=False) else len
    views = {"left": grid, "right": [row[::-1] for row in grid], "top": columns}
    views["bottom"] = [column[::-1] for column in columns]
    for name, lines in views.items():
        if not puzzle.has(name):
            continue
        for clue, line in zip(puzzle.numbers(name, len(grid)), lines, strict=True):
            if clue and seen(_visible(line)) != clue:
                return f"a clue at the {name} does not hold"
    return ""


def _visible(line: Iterable[int]) -> list[int]:
    found: list[int] = []
    for height in line:
        if not found or height > found[-1]:
            found.append(height)
    return found


def _cage_holds(cage: PuzzleFields, grid: Numbers, *, distinct: bool) -> bool:
    values = sorted((grid[r][c] for r, c in cage.places("cells")), reverse=True)
    if distinct and len(set(values)) != len(values):
        return False
    target, operator = cage.number("target"), cage.text("operator", "=")
    if operator == "+":
        return sum(values) == target
    if operator in ("*", "\u00d7"):
        return math.prod(values) == target
    if operator == "-":
        return values[0] - sum(values[1:]) == target
    if operator in ("/", "\u00f7"):
        return values[0] == target * math.prod(values[1:])
    if operator == "=":
        return values == [target]
    raise PuzzleTrouble(f"the operator {operator!r} of a cage is not + - * / or =")


def binario(puzzle: PuzzleFields, grid: Numbers) -> str:
    """As many 0 as 1 in each line, no three alike in a row, no two lines alike."""
    if changed := _changed(_bits(puzzle), grid):
        return changed
    columns = [list(column) for column in zip(*grid, strict=True)]
    for lines in (grid, columns):
        if any(set(line) - {0, 1} or 2 * sum(line) != len(line) for line in lines):
            return "a line has not as many 0 as 1"
        if any(
            a == b == c for line in lines for a, b, c in zip(line, line[1:], line[2:], strict=False)
        ):
            return "three in a row are alike"
        if puzzle.flag("unique", default=True) and len(set(map(tuple, lines))) != len(lines):
            return "two lines are alike"
    return ""


def _bits(puzzle: PuzzleFields) -> dict[Place, int]:
    """The givens of binario, where 0 is a number."""
    cells = cells_by_place(puzzle.grid("grid"))
    return {place: int(cell) for place, cell in cells.items() if cell in ("0", "1")}


def numbrix(puzzle: PuzzleFields, grid: Numbers) -> str:
    """Numbers from 1 on, each beside the next; hidato with diagonals."""
    if changed := _changed(puzzle.givens("grid"), grid):
        return changed
    at = {value: (r, c) for r, row in enumerate(grid) for c, value in enumerate(row)}
    if at.keys() != set(range(1, len(grid) * len(grid[0]) + 1)):
        return "not every number is there once"
    steps = _AROUND if puzzle.flag("diagonal", default=False) else _SIDES
    for value in range(1, len(at)):
        (r, c), (s, d) = at[value], at[value + 1]
        if (s - r, d - c) not in steps:
            return f"{value} is not beside {value + 1}"
    return ""


def magic_square(puzzle: PuzzleFields, grid: Numbers) -> str:
    """Rows, columns and both diagonals have one sum; 1 to n^2 once, or other distinct numbers."""
    if changed := _changed(puzzle.givens("grid"), grid):
        return changed
    n = len(grid)
    cells = [cell for row in grid for cell in row]
    if puzzle.flag("consecutive", default=True) and sorted(cells) != list(range(1, n * n + 1)):
        return "the numbers are not 1 to n^2"
    lines: list[Iterable[int]] = [*grid, *zip(*grid, strict=True)]
    lines += [[grid[k][k] for k in range(n)], [grid[k][n - 1 - k] for k in range(n)]]
    if len(set(cells)) != len(cells) or len({sum(line) for line in lines}) != 1:
        return "a number is there twice or the sums differ"
    return ""


def survo(puzzle: PuzzleFields, grid: Numbers) -> str:
    """The last row and column are the sums of the others; the candidates are used once."""
    givens = puzzle.givens("grid")
    if changed := _changed(givens, grid):
        return changed
    filled = [v for r, row in enumerate(grid) for c, v in enumerate(row) if (r, c) not in givens]
    if puzzle.has("candidates") and sorted(filled) != sorted(
        value or 0 for value in puzzle.numbers("candidates")
    ):
        return "other numbers than the candidates were filled in"
    body = [row[:-1] for row in grid[:-1]]
    if [sum(row) for row in body] != [row[-1] for row in grid[:-1]]:
        return "a row has another sum"
    if [sum(column) for column in zip(*body, strict=True)] != grid[-1][:-1]:
        return "a column has another sum"
    return ""


def _changed(givens: dict[Place, int], grid: Numbers) -> str:
    """What is wrong where a given number was changed; empty where all stand."""
    places = (place for place, value in givens.items() if grid[place[0]][place[1]] != value)
    place = next(places, None)
    return "" if place is None else f"the given number at {place} was changed"


# --- Cells are chosen -----------------------------------------------------------------------------


def kakurasu(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """A chosen cell is worth its column in its row's sum, its row in its column's, from 1."""
    rows, columns = puzzle.numbers("row_sums"), puzzle.numbers("column_sums")
    for r, wanted in enumerate(rows):
        if sum(c + 1 for s, c in chosen if s == r) != wanted:
            return f"the sum of row {r} is another"
    for c, wanted in enumerate(columns):
        if sum(r + 1 for r, d in chosen if d == c) != wanted:
            return f"the sum of column {c} is another"
    return ""


def tents(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """Campsite: each tent beside a tree of its own, no two touching, so many in each line."""
    tree = puzzle.text("tree", "T")
    trees = {place for place, cell in cells_by_place(puzzle.grid("grid")).items() if cell == tree}
    if len(trees) != len(chosen) or chosen & trees:
        return "there are not as many tents as trees, beside them"
    return (
        _counts(puzzle, chosen, "row_counts", "column_counts")
        or _touching(chosen)
        or ("" if _matched(chosen, trees) else "a tent has no tree of its own")
    )


def _matched(tents_at: Chosen, trees: Chosen) -> bool:
    """Whether each tent has a tree beside it that is no other's (augmenting paths)."""
    owner: dict[Place, Place] = {}

    def settle(tent: Place, tried: Chosen) -> bool:
        for tree in _beside(tent, _SIDES):
            if tree in trees and tree not in tried:
                tried.add(tree)
                if tree not in owner or settle(owner[tree], tried):
                    owner[tree] = tent
                    return True
        return False

    return all(settle(tent, set()) for tent in sorted(tents_at))


def star_battle(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """So many stars in each row, column and region, no two touching."""
    regions, stars = puzzle.grid("regions"), puzzle.number("stars", 1)
    cells = cells_by_place(regions)
    if any(count != stars for count in _by_region(cells, chosen).values()):
        return "a region has another number of stars"
    for count, size in (
        (Counter(r for r, _ in chosen), len(regions)),
        (Counter(c for _, c in chosen), len(regions[0])),
    ):
        if any(count[line] != stars for line in range(size)):
            return "a row or column has another number of stars"
    return _touching(chosen)


def _by_region(cells: dict[Place, str], chosen: Chosen) -> Counter[str]:
    """How many cells of each region are chosen."""
    counts = Counter(dict.fromkeys(cells.values(), 0))
    counts.update(cells[place] for place in chosen)
    return counts


def norinori(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """Two shaded cells in each region; each is beside exactly one other."""
    cells = cells_by_place(puzzle.grid("regions"))
    if any(count != 2 for count in _by_region(cells, chosen).values()):
        return "a region has not two shaded cells"
    if any(sum(place in chosen for place in _beside(one, _SIDES)) != 1 for one in chosen):
        return "the shaded cells are not dominoes apart from one another"
    return ""


def hitori(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """What is not shaded has no number twice in a line and hangs together; no two shaded touch."""
    grid = puzzle.grid("grid")
    lines = [[(r, c) for c in range(len(grid[0]))] for r in range(len(grid))]
    lines += [[(r, c) for r in range(len(grid))] for c in range(len(grid[0]))]
    for line in lines:
        left = [grid[r][c] for r, c in line if (r, c) not in chosen]
        if len(set(left)) != len(left):
            return "a number is twice in a line"
    if any(place in chosen for one in chosen for place in _beside(one, _SIDES)):
        return "two shaded cells touch"
    return _in_one_piece(cells_by_place(grid).keys() - chosen, "what is not shaded")


def minesweeper(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """Each number has so many mines around it; mines are in cells without a number."""
    cells = cells_by_place(puzzle.grid("grid"))
    numbers = {place: int(cell) for place, cell in cells.items() if cell.isdecimal()}
    if chosen & numbers.keys():
        return "a mine is in a cell with a number"
    for place, number in numbers.items():
        if sum(other in chosen for other in _beside(place, _AROUND)) != number:
            return f"the number at {place} has another count of mines"
    if puzzle.has("mines") and len(chosen) != puzzle.number("mines"):
        return "there is another number of mines"
    return ""


def nurikabe(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """Number wall: what no wall covers is islands, each with one number, its size."""
    cells = cells_by_place(puzzle.grid("grid"))
    numbers = puzzle.givens("grid")
    if chosen & numbers.keys():
        return "a wall covers a number"
    if any(chosen >= {(r, c), (r, c + 1), (r + 1, c), (r + 1, c + 1)} for r, c in chosen):
        return "walls fill a square of 2 by 2"
    islands = list(_pieces(cells.keys() - chosen))
    for island in islands:
        own = [numbers[place] for place in island if place in numbers]
        if own != [len(island)]:
            return "an island has not one number that is its size"
    if not puzzle.flag("corners", default=True) and _corner(islands):
        return "two islands touch at a corner"
    connected = puzzle.flag("connected", default=True)
    return _in_one_piece(chosen, "the wall") if connected else ""


def _corner(islands: list[Chosen]) -> bool:
    of = {place: number for number, island in enumerate(islands) for place in island}
    return any(
        of.get((r + dr, c + dc), number) != number
        for (r, c), number in of.items()
        for dr, dc in ((1, 1), (1, -1))
    )


def nonogram(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """The runs of filled cells of each line are those of its clue; [] and [0] are none."""
    rows, columns = puzzle.clues("rows"), puzzle.clues("columns")
    for r, clue in enumerate(rows):
        if _runs((r, c) in chosen for c in range(len(columns))) != [n for n in clue if n]:
            return f"row {r} has other runs"
    for c, clue in enumerate(columns):
        if _runs((r, c) in chosen for r in range(len(rows))) != [n for n in clue if n]:
            return f"column {c} has other runs"
    return ""


def _runs(line: Iterable[bool]) -> list[int]:
    marks = "".join("#" if filled else " " for filled in line)
    return [len(run) for run in marks.split()]


def light_up(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """Akari: bulbs light every white cell, none lights another; numbers count those beside."""
    cells = cells_by_place(puzzle.grid("grid"))
    walls = {place for place, cell in cells.items() if cell == "#" or cell.isdecimal()}
    if chosen & walls:
        return "a bulb is in a wall"
    for place in walls:
        if cells[place].isdecimal() and int(cells[place]) != sum(
            other in chosen for other in _beside(place, _SIDES)
        ):
            return f"the number at {place} has another count of bulbs"
    lit = set(chosen)
    for r, c in chosen:
        for dr, dc in _SIDES:
            place = (r + dr, c + dc)
            while place in cells and place not in walls:
                if place in chosen:
                    return "a bulb lights another"
                lit.add(place)
                place = (place[0] + dr, place[1] + dc)
    return "" if lit | walls == cells.keys() else "a cell is dark"


def _counts(puzzle: PuzzleFields, chosen: Chosen, rows: str, columns: str) -> str:
    for r, wanted in enumerate(puzzle.numbers(rows)):
        if wanted is not None and sum(s == r for s, _ in chosen) != wanted:
            return f"row {r} has another count"
    for c, wanted in enumerate(puzzle.numbers(columns)):
        if wanted is not None and sum(d == c for _, d in chosen) != wanted:
            return f"column {c} has another count"
    return ""


def _touching(chosen: Chosen) -> str:
    touching = any(place in chosen for one in chosen for place in _beside(one, _AROUND))
    return "two of them touch" if touching else ""


def _beside(place: Place, steps: Iterable[Place]) -> Iterator[Place]:
    return ((place[0] + dr, place[1] + dc) for dr, dc in steps)


def _pieces(cells: Iterable[Place]) -> Iterator[Chosen]:
    """The parts of cells that hang together by their sides."""
    left = set(cells)
    while left:
        piece, waiting = set(), [left.pop()]
        while waiting:
            one = waiting.pop()
            piece.add(one)
            near = [place for place in _beside(one, _SIDES) if place in left]
            left.difference_update(near)
            waiting += near
        yield piece


def _in_one_piece(cells: Iterable[Place], what: str) -> str:
    return "" if len(list(_pieces(cells))) <= 1 else f"{what} does not hang together"


# --- Filled with signs ----------------------------------------------------------------------------


def arrow_maze(puzzle: PuzzleFields, grid: Grid) -> str:
    """From each number go as many arrows as it says, in rays; every arrow is of a ray."""
    given, cells = cells_by_place(puzzle.grid("grid")), cells_by_place(grid)
    kept = {place: cell for place, cell in given.items() if cell.isdecimal() or cell in ARROWS}
    if any(cells[place] != cell for place, cell in kept.items()):
        return "a given cell was changed"
    if any(cell not in ARROWS for place, cell in cells.items() if not given[place].isdecimal()):
        return "a cell is no arrow"
    covered: Chosen = set()
    for place, cell in given.items():
        if not cell.isdecimal():
            continue
        count = 0
        for arrow, (dr, dc) in ARROWS.items():
            at = (place[0] + dr, place[1] + dc)
            while cells.get(at) == arrow:
                covered.add(at)
                count += 1
                at = (at[0] + dr, at[1] + dc)
        if count != int(cell):
            return f"the number at {place} has another count of arrows"
    arrows = {place for place, cell in cells.items() if cell in ARROWS}
    return "" if covered == arrows else "an arrow belongs to no number"


def equal(puzzle: PuzzleFields, grid: Grid) -> str:
    """The grid is the solution's, cell by cell; for puzzles with one solution."""
    return "" if grid == puzzle.grid("solution") else "a cell differs"


def equal_places(puzzle: PuzzleFields, chosen: Chosen) -> str:
    """The chosen cells are the solution's; for puzzles with one solution."""
    return "" if chosen == set(puzzle.places("solution")) else "other cells are chosen"


OF_NUMBERS: dict[str, Callable[[PuzzleFields, Numbers], str]] = {
    "binario": binario,
    "latin": latin,
    "magic-square": magic_square,
    "numbrix": numbrix,
    "survo": survo,
}
OF_PLACES: dict[str, Callable[[PuzzleFields, Chosen], str]] = {
    "hitori": hitori,
    "kakurasu": kakurasu,
    "light-up": light_up,
    "minesweeper": minesweeper,
    "nonogram": nonogram,
    "norinori": norinori,
    "nurikabe": nurikabe,
    "places": equal_places,
    "star-battle": star_battle,
    "tents": tents,
}
OF_SIGNS: dict[str, Callable[[PuzzleFields, Grid], str]] = {
    "arrow-maze": arrow_maze,
    "equal": equal,
}
