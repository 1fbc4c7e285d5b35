"""`arc`, `assignment` and `grid-puzzle`: laws, puzzles by their rules, references that are none."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.reward_server.domain import Candidate, Judgement, Unjudgeable, Verifier, VerifierItem
from assay.verifiers_extra.puzzles.arc import arc
from assay.verifiers_extra.puzzles.assignment import assignment
from assay.verifiers_extra.puzzles.grid_puzzle import ALIASES, KINDS, grid_puzzle
from assay.verifiers_extra.puzzles.grids import find_grid, find_grids, find_places


def judge(verifier: Verifier, response: str, reference: Any, **parameters: Any) -> Judgement:
    complete = verifier.spec.complete(parameters)
    candidate = Candidate(response)
    if isinstance(reference, str):
        item = VerifierItem(candidate, references=(reference,), parameters=complete)
    else:
        item = VerifierItem(candidate, data=reference, parameters=complete)
    judgement = verifier.judge(item)
    assert judgement.verdict in verifier.spec.verdicts
    return judgement


# --- Grids in text --------------------------------------------------------------------------------

DIGITS = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from("0123456789"), min_size=width, max_size=width),
        min_size=2,
        max_size=6,
    )
)
WRITTEN = {
    "json": lambda grid: json.dumps([[int(cell) for cell in row] for row in grid]),
    "json of texts": json.dumps,
    "python": str,
    "pretty": lambda grid: json.dumps(grid, indent=1),
    "blanks": lambda grid: "\n".join(" ".join(row) for row in grid),
    "commas": lambda grid: "\n".join(", ".join(row) for row in grid),
    "table": lambda grid: "\n".join("| " + " | ".join(row) + " |" for row in grid),
    "ruled": lambda grid: "\n---+---\n".join(" | ".join(row) for row in grid),
    "characters": lambda grid: "\n".join("".join(row) for row in grid),
    "numpy": lambda grid: "[" + "\n ".join("[" + " ".join(row) + "]" for row in grid) + "]",
}


@pytest.mark.parametrize("form", sorted(WRITTEN))
@given(DIGITS)
def test_a_grid_is_read_in_each_form(form: str, grid: list[list[str]]) -> None:
    text = f"The grid is:\n\n{WRITTEN[form](grid)}\n\nThat is all."
    assert find_grid(text, len(grid), len(grid[0]), str.isdigit) == grid
    assert find_grids(text, str.isdigit)[-1] == grid
    assert judge(arc, text, [[int(cell) for cell in row] for row in grid]).verdict == "correct"


def test_rows_parted_by_commas_are_read_in_double_brackets() -> None:
    assert find_grid("[[1 2,2 1]]", 2, 2, str.isdigit) == [["1", "2"], ["2", "1"]]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[(1, 2), (3, 4)]", [(1, 2), (3, 4)]),
        ("[[1, 2], [3, 4]]", [(1, 2), (3, 4)]),
        ("the stars: {'A': [(1, 2)], 'B': [(3, 4)]}", [(1, 2), (3, 4)]),
        ("(1,2) and (3,4)", [(1, 2), (3, 4)]),
        ("first [(5, 5)], no: [(1, 2)]", [(1, 2)]),
        ("first [(5, 5), (6, 6)], no: [(1, 2), (2, 2)]", [(1, 2), (2, 2)]),
        ("[]", []),
        ("none", None),
    ],
)
def test_places(text: str, places: Any) -> None:
    assert find_places(text) == places


# --- ARC ------------------------------------------------------------------------------------------

L_SHAPE = [[0, 3, 0], [0, 3, 3]]


@pytest.mark.parametrize(
    ("response", "parameters", "verdict", "reward"),
    [
        ("[[0, 3, 0], [0, 3, 3]]", {}, "correct", 1.0),
        ("[[0, 3, 0], [0, 3, 0]]", {}, "incorrect", 0.0),
        ("[[0, 3, 0], [0, 3, 0]]", {"reward": "cells"}, "incorrect", 5 / 6),
        ("[[0, 3], [0, 3]]", {"reward": "cells"}, "incorrect", 0.0),
        ("[[0, 0], [3, 3], [0, 3]]", {}, "incorrect", 0.0),
        ("030\n033\n\nthen\n\n000\n000", {}, "incorrect", 0.0),
        ("030\n033\n\n000\n000", {"attempts": 2}, "correct", 1.0),
        ("030\n033\n\n000\n000\n\n111\n111", {"attempts": 2}, "incorrect", 0.0),
        ('{"attempt_1": [[0,3,0],[0,3,3]], "attempt_2": [[1]]}', {"attempts": 2}, "correct", 1.0),
        ("<think>030\n033</think> nothing", {}, "unparsed", 0.0),
        ("030\n033<answer>[[1]]</answer>", {}, "incorrect", 0.0),
        ("a grid", {}, "unparsed", 0.0),
    ],
)
def test_arc(response: str, parameters: Any, verdict: str, reward: float) -> None:
    judgement = judge(arc, response, {"output": L_SHAPE}, **parameters)
    assert (judgement.verdict, judgement.reward) == (verdict, pytest.approx(reward))


@pytest.mark.parametrize("grid", [[], [[]], [[1], [1, 2]], [[10]], [["a"]], {"input": [[1]]}, 5])
def test_unusable_outputs(grid: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(arc, "[[1]]", grid)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


# --- Assignments ----------------------------------------------------------------------------------

ISLANDERS = "(1) Zoey is a knave\n(2) Oliver is a knight\n(3) Mary Ann is a knave"


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        (f"<answer>{ISLANDERS}</answer>", "correct"),
        ("<answer>Mary Ann is a knave, Oliver is a KNIGHT. Zoey: knave</answer>", "correct"),
        ('{"Zoey": "knave", "Oliver": "knight", "Mary Ann": "knave"}', "correct"),
        ("| Name | Role |\n|--|--|\n| Zoey | knave |\n| Oliver | knight |\n| Mary Ann | knave |",
         "correct"),
        (f"If Zoey is a knight, Oliver lies.\n\n{ISLANDERS}", "correct"),
        (f"<answer>{ISLANDERS.replace('knight', 'knave')}</answer>", "incorrect"),
        ("<answer>Zoey is a knave, Oliver is a knight</answer>", "incorrect"),
        (f"<answer>{ISLANDERS}\n(4) Zoey is a knight</answer>", "incorrect"),
        ("<answer>Zoey is not a knight</answer>", "unparsed"),
        ("Either Zoey is a knave or Oliver is a knight; Mary Ann is a knave.", "unparsed"),
        ("All of them are knaves.", "unparsed"),
        (f"<think>{ISLANDERS}", "unparsed"),
    ],
)  # fmt: skip
def test_knights_and_knaves(response: str, verdict: str) -> None:
    for reference in (
        ISLANDERS,
        {"solution_text_format": ISLANDERS},
        {"Zoey": "knave", "Oliver": "knight", "Mary Ann": "knave"},
    ):
        assert judge(assignment, response, reference).verdict == verdict


HOUSES = {
    "header": ["House", "Name", "HairColor"],
    "rows": [["1", "Eric", "light brown"], ["2", "Ada", "gray"]],
}
TABLE = {
    "House 1": {"Name": "Eric", "HairColor": "light brown"},
    "House 2": {"Name": "Ada", "HairColor": "gray"},
}


@pytest.mark.parametrize(
    ("response", "share"),
    [
        (json.dumps({"reasoning": "so", "solution": TABLE}), 1.0),
        ("```json\n" + json.dumps(TABLE, indent=2) + "\n```", 1.0),
        ('{"reasoning": "one\ntwo", "solution": ' + json.dumps(TABLE) + "}", 1.0),
        (json.dumps({"solution": HOUSES}), 1.0),
        (json.dumps(TABLE).upper(), 1.0),
        ("| House | Name | HairColor |\n|-|-|-|\n|1|Eric | Light Brown |\n| 2 | Ada | gray |", 1.0),
        (json.dumps(TABLE | {"House 2": {"Name": "Ada"}}), 0.75),
        (json.dumps(TABLE | {"House 2": {"Name": ["Ada", "Eric"], "HairColor": ["gray"]}}), 0.75),
        (json.dumps(TABLE | {"house 2": {"Name": "Eric", "HairColor": "gray"}}), 0.75),
        (json.dumps({"House 1": TABLE["House 2"], "House 2": TABLE["House 1"]}), 0.0),
    ],
)  # fmt: skip
def test_zebra(response: str, share: float) -> None:
    for reference in (HOUSES, TABLE, {"solution": TABLE}):
        assert judge(assignment, response, reference, reward="cells").reward == share
        assert judge(assignment, response, reference).reward == float(share == 1.0)


@pytest.mark.parametrize(
    "reference", [{}, [], 5, "Zoey is tall", {"header": ["House"], "rows": []}, {"a": None}]
)
def test_unusable_solutions(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(assignment, "x", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


# --- Puzzles by their rules -----------------------------------------------------------------------

# Each puzzle with an answer that solves it and answers that break one rule each. Small enough to be
# checked by eye; the rules are those of the puzzles' articles on Wikipedia.
PUZZLES: list[tuple[dict[str, Any], str, list[str]]] = [
    (
        {"kind": "futoshiki", "grid": "1..\n...\n...", "inequalities": [[[1, 0], [2, 0], "<"]]},
        "1 2 3\n2 3 1\n3 1 2",
        ["1 3 2\n3 2 1\n2 1 3", "2 3 1\n1 2 3\n3 1 2", "1 2 3\n2 3 1\n3 2 1"],
    ),
    (
        {"kind": "skyscraper", "top": [3, 2, 1], "left": [3, 0, 1], "bottom": [1, 2, 2],
         "right": [1, 2, 2]},
        "1 2 3\n2 3 1\n3 1 2",
        ["3 2 1\n2 1 3\n1 3 2", "1 3 2\n2 1 3\n3 2 1", "1 2 3\n1 2 3\n1 2 3"],
    ),
    (
        {"kind": "sum-skyscraper", "left": [6, 5, 3], "size": 3},
        "1 2 3\n2 3 1\n3 1 2",
        ["3 2 1\n2 1 3\n1 3 2"],
    ),
    (
        {"kind": "calcudoku", "size": 3, "cages": [
            {"cells": [[0, 0], [0, 1]], "target": 3, "operator": "+"},
            {"cells": [[1, 0], [2, 0]], "target": 6, "operator": "*"},
            {"cells": [[0, 2], [1, 2]], "target": 2, "operator": "-"},
            {"cells": [[2, 1], [2, 2]], "target": 2, "operator": "/"},
            {"cells": [[1, 1]], "target": 3}]},
        "1 2 3\n2 3 1\n3 1 2",
        ["2 1 3\n1 3 2\n3 2 1", "1 2 3\n3 1 2\n2 3 1"],
    ),
    (
        {"kind": "binario", "grid": "0___\n____\n__1_\n____"},
        "0 1 0 1\n1 0 1 0\n0 0 1 1\n1 1 0 0",
        ["1 0 1 0\n0 1 0 1\n0 0 1 1\n1 1 0 0", "0 1 0 1\n1 0 1 0\n0 1 0 1\n1 0 1 0",
         "0 1 0 1\n1 0 0 0\n0 0 1 1\n1 1 0 0", "0 0 0 1\n1 1 0 0\n0 0 1 1\n1 1 1 0"],
    ),
    (
        {"kind": "numbrix", "grid": [[1, "X", "X"], ["X", "X", "X"], ["X", "X", 9]]},
        "1 2 3\n6 5 4\n7 8 9",
        ["1 2 3\n4 5 6\n7 8 9", "9 8 7\n4 5 6\n3 2 1", "1 2 3\n6 5 4\n7 7 9"],
    ),
    (
        {"kind": "hidato", "grid": [[1, 0], [0, 0]]},
        "1 3\n4 2",
        ["2 3\n4 1", "1 3\n4 4"],
    ),
    (
        {"kind": "magic-square", "grid": "2 . .\n. . .\n. . 8"},
        "2 7 6\n9 5 1\n4 3 8",
        ["2 6 7\n9 5 1\n4 3 8", "8 1 6\n3 5 7\n4 9 2", "5 5 5\n5 5 5\n5 5 5"],
    ),
    (
        {"kind": "survo", "grid": [[1, 0, 3], [0, 4, 7], [4, 6, 10]], "candidates": [2, 3]},
        "1 2 3\n3 4 7\n4 6 10",
        ["1 3 3\n2 4 7\n4 6 10", "1 2 3\n3 4 8\n4 6 10"],
    ),
    (
        {"kind": "kakurasu", "row_sums": [3, 2], "column_sums": [1, 3]},
        "1 1\nX 1",
        ["1 1\n1 1", "1 1\nX X"],
    ),
    (
        {"kind": "nonogram", "rows": [[1, 1], [3], []], "columns": [[2], [1], [2]]},
        "#.#\n###\n...",
        ["###\n#.#\n...", "#.#\n###\n..#"],
    ),
    (
        {"kind": "campsite", "grid": ["T..", "...", "..T"], "row_counts": [1, 0, 1],
         "column_counts": [0, 2, 0]},
        "TC.\n...\n.CT",
        ["T..\nCC.\n..T", "T.C\n...\nC.T", ".C.\n...\n.CT", "TC.\n.C.\n..T"],
    ),
    (
        {"kind": "campsite", "grid": ["T.T.", "....", "....", "...."],
         "row_counts": [1, 0, 1, 0], "column_counts": [0, 1, 1, 0]},
        "none here",
        ["TCT.\n....\n..C.\n....", "TCT.\n....\n..C.\n...."],
    ),
    (
        {"kind": "star-battle", "regions": ["AABB", "AABB", "CCDD", "CCDD"], "stars": 1},
        ".*..\n...*\n*...\n..*.",
        ["*...\n..*.\n.*..\n...*", ".*..\n...*\n*...\n....", "*...\n.*..\n..*.\n...*"],
    ),
    (
        {"kind": "norinori", "regions": ["AAB", "AAB", "AAB"]},
        "#..\n#.#\n..#",
        ["#..\n#..\n...", "#..\n#.#\n#.#", "##.\n.##\n...", "#.#\n...\n#.#"],
    ),
    (
        {"kind": "hitori", "grid": ["112", "231", "312"], "origin": 1},
        "none here",
        ["[]", "[(1, 1), (1, 2)]", "[(1, 1), (2, 2)]"],
    ),
    (
        {"kind": "hitori", "grid": ["112", "231", "321"], "origin": 1},
        "[(1, 1), (2, 3)]",
        ["[(1, 2), (2, 3)]", "[(1, 1)]", "[(1, 1), (3, 3), (2, 1)]", "[(4, 1)]"],
    ),
    (
        {"kind": "minesweeper", "grid": ["1.1", "122", "..."], "origin": 0, "mines": 2},
        "none here",
        ["[(0, 1)]", "[(0, 0), (0, 1)]"],
    ),
    (
        {"kind": "minesweeper", "grid": ["1.1", "111"], "origin": 0},
        "[(0, 1)]",
        ["[]", "[(1, 1)]", "[(0, 1), (0, 0)]"],
    ),
    (
        {"kind": "light-up", "grid": ["...", ".#.", "..1"]},
        "..*\n*#.\n.*1",
        ["..*\n*#*\n.*1", "..*\n.#.\n.*1", "*.*\n*#.\n.*1", "..*\n*#.\n*.1", "..*\n**.\n.*1"],
    ),
    (
        {"kind": "nurikabe", "grid": ["2..", "...", "..2"]},
        "2AA\nXAX\nAA2",
        ["2XA\nAAA\nAA2", "2AA\nXAA\nAA2", "AAA\nXAX\nAA2", "2AA\nXXX\nAA2", "2AA\nXAX\nXA2"],
    ),
    (
        {"kind": "number-wall", "grid": ["2..", "...", "1.1"]},
        "2XA\nAAA\n1A1",
        ["2AA\nXAA\n1A1", "2XA\nA1A\n1A1", "2AA\nXAX\n1A1"],
    ),
    (
        {"kind": "arrow-maze", "grid": [["2", "X", "X"], ["X", "X", "X"], ["2", "X", "X"]]},
        "none here",
        ['[["2","\u2192","\u2192"],["\u2191","\u2191","\u2191"],["2","\u2192","\u2192"]]'],
    ),
    (
        {"kind": "arrow-maze", "grid": [["2", "X", "X"], ["1", "X", "0"]]},
        '[["2","\u2192","\u2192"],["1","\u2192","0"]]',
        ['[["2","\u2192","X"],["1","\u2192","0"]]', '[["2","\u2192","\u2192"],["1","\u2190","0"]]'],
    ),
    (
        {"kind": "equal", "solution": [["/", "\\"], ["\\", "/"]]},
        "/ \\\n\\ /",
        ["/ /\n\\ /"],
    ),
    (
        {"kind": "places", "size": [3, 3], "solution": [[0, 1], [2, 2]], "origin": 1},
        "(1, 2), (3, 3)",
        ["(1, 2)", "(0, 1), (2, 2)", "[(1, 2), (3, 3), (3, 1)]"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("puzzle", "right", "wrong"), PUZZLES)
def test_puzzles_by_their_rules(puzzle: Any, right: str, wrong: list[str]) -> None:
    solvable = right != "none here"
    assert judge(grid_puzzle, right, puzzle).verdict == ("correct" if solvable else "unparsed")
    for answer in wrong:
        assert judge(grid_puzzle, answer, puzzle).verdict == "incorrect", answer


def test_every_kind_has_a_puzzle_here() -> None:
    tested = {puzzle["kind"] for puzzle, _, _ in PUZZLES}
    assert {ALIASES[kind][0] if kind in ALIASES else kind for kind in tested} == set(KINDS)


@st.composite
def latin_squares(draw: st.DrawFn) -> list[list[int]]:
    n = draw(st.integers(2, 7))
    names = draw(st.permutations(range(1, n + 1)))
    rows, columns = draw(st.permutations(range(n))), draw(st.permutations(range(n)))
    return [[names[(r + c) % n] for c in columns] for r in rows]


@given(latin_squares(), st.data())
def test_a_solution_solves_what_is_made_of_it_and_no_swap_in_a_row_does(
    square: list[list[int]], data: st.DataObject
) -> None:
    n = len(square)
    puzzle = {
        "kind": "latin",
        "grid": [[cell if data.draw(st.booleans()) else 0 for cell in row] for row in square],
        "left": [len({max(row[: k + 1]) for k in range(n)}) for row in square],
    }
    assert judge(grid_puzzle, str(square), puzzle).verdict == "correct"
    square[0][0], square[0][1] = square[0][1], square[0][0]
    if n > 2:
        assert judge(grid_puzzle, str(square), puzzle).verdict == "incorrect"


@pytest.mark.parametrize(
    "puzzle",
    [
        {}, 5, [], {"kind": "chess"}, {"kind": "latin"}, {"kind": "latin", "size": 99},
        {"kind": "latin", "grid": ["12"]}, {"kind": "latin", "top": [1, 2], "left": [1]},
        {"kind": "latin", "size": 2, "inequalities": [[[0, 0], [0, 5], "<"]]},
        {"kind": "latin", "size": 2, "inequalities": [[[0, 0], [0, 1], "="]]},
        {"kind": "latin", "size": 2, "cages": [{"cells": [[0, 0]], "target": 1, "operator": "^"}]},
        {"kind": "kakurasu", "row_sums": [1]}, {"kind": "nonogram", "rows": [1], "columns": [[1]]},
        {"kind": "tents", "grid": ["T."], "row_counts": [1, 1], "column_counts": [0, 1]},
        {"kind": "numbrix", "grid": [["a"]]}, {"kind": "hitori", "grid": ["12", "1"]},
        {"kind": "places", "size": [2, 2], "solution": [[2, 2]]},
        {"kind": "norinori", "regions": ["AA"], "origin": 7},
        {"kind": "nurikabe", "grid": ["T2"]}, {"kind": "binario", "grid": "01", "unique": 1},
    ],
)  # fmt: skip
def test_unusable_puzzles(puzzle: Any) -> None:
    for response in ("nothing", "1 2\n2 1", "[]"):
        with pytest.raises(Unjudgeable) as caught:
            judge(grid_puzzle, response, puzzle)
        assert caught.value.reason == "UNUSABLE_REFERENCE"


@given(st.text(alphabet="0123[]() ,\n|#*X'\"-", max_size=200), st.sampled_from(PUZZLES))
def test_any_text_gets_a_judgement(text: str, puzzle: Any) -> None:
    judge(grid_puzzle, text, puzzle[0])


@settings(deadline=None)
@given(st.sampled_from(["[", "[[", "[[1,", "1 ", "1\n", "(1,2)", "{", "'", "]]", "|1|\n", "is a "]))
def test_hostile_texts_end_soon(piece: str) -> None:
    text = piece * (1_048_576 // len(piece))
    for verifier, reference in (
        (arc, [[1]]), (assignment, HOUSES), (assignment, ISLANDERS),
        (grid_puzzle, PUZZLES[0][0]), (grid_puzzle, PUZZLES[15][0]),
    ):  # fmt: skip
        start = time.process_time()
        judge(verifier, text, reference)
        assert time.process_time() - start < 2.0
