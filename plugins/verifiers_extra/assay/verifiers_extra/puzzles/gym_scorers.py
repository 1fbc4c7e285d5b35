"""Scorers in place of those of reasoning-gym 0.1.25 which execute text or judge wrongly.

Each takes the answer and the entry and returns a score in [0, 1], as the package's own would for
honest answers. None of them evaluates text. `REPLACED` says for each data set why.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from assay.verifiers_extra.puzzles.arithmetic import ArithmeticTrouble, work_out
from assay.verifiers_extra.puzzles.formulas import PuzzleFormulaError, read_formula

Entry = Mapping[str, Any]
Scorer = Callable[[str, Entry], float]
_MAX_ROWS_CHARS = 20_000
_MAX_NUMBER_CHARS = 100
_PROBABILITY = re.compile(r"\d+/\d+|\d*\.?\d+(?:[eE][+-]?\d{1,2})?", re.ASCII)
_POINTS = ((1, 7), (3, 5), (-2, 3), (23, 11))


class EntryTrouble(ValueError):
    """The entry does not hold what its data set's entries hold; says what is missing."""


def _countdown(answer: str, entry: Entry) -> float:
    """1 for the target with the numbers, 0.05 for other arithmetic, 0.01 for anything else."""
    try:
        worked = work_out(answer)
    except ArithmeticTrouble:
        return 0.01
    metadata = entry["metadata"]
    right = Counter(worked.numbers) == Counter(metadata["numbers"])
    return 1.0 if right and worked.value == metadata["target"] else 0.05


def _puzzle24(answer: str, entry: Entry) -> float:
    """1 for 24 with the numbers, 0.01 for anything else."""
    try:
        worked = work_out(answer)
    except ArithmeticTrouble:
        return 0.01
    right = Counter(worked.numbers) == Counter(entry["metadata"]["numbers"])
    return 1.0 if right and worked.value == 24 else 0.01


def _integration(answer: str, entry: Entry) -> float:
    """1 if the derivative of the answer is the integrand."""
    import sympy  # noqa: PLC0415 - takes a third of a second, and only workers need it

    name = str(entry["metadata"]["variable"])
    try:
        integrand = read_formula(str(entry["metadata"]["integrand"]), (name,))
    except PuzzleFormulaError as trouble:
        raise EntryTrouble(f"the integrand cannot be read: {trouble}") from trouble
    try:
        found = read_formula(answer, (name, "C"))
    except PuzzleFormulaError:
        return 0.0
    derivative = sympy.diff(found, sympy.Symbol(name))
    # Simplifying a wrong answer can take for ever, and one number shows that it is wrong.
    if _differ(derivative, integrand, sympy.Symbol(name)):
        return 0.0
    return float(sympy.simplify(derivative - integrand) == 0)


def _differ(a: Any, b: Any, variable: Any) -> bool:
    """Whether two expressions have clearly different values at a point; False if it cannot tell."""
    import sympy  # noqa: PLC0415 - as above

    for point in _POINTS:
        values = [one.evalf(30, subs={variable: sympy.Rational(*point)}) for one in (a, b)]
        if not all(value.is_number and value.is_finite for value in values):
            continue
        scale = 1 + abs(values[0]) + abs(values[1])
        if abs(values[0] - values[1]) > scale * sympy.Rational(1, 10**12):
            return True
    return False


def _polynomial(answer: str, entry: Entry) -> float:
    """1 for the same polynomial, written out."""
    names = [str(name) for name in entry["metadata"]["variables"]]
    try:
        wanted = read_formula(str(entry["answer"]), names)
    except PuzzleFormulaError as trouble:
        raise EntryTrouble(f"the answer cannot be read: {trouble}") from trouble
    try:
        return float(read_formula(answer, names) == wanted)
    except PuzzleFormulaError:
        return 0.0


def _bitwise(answer: str, entry: Entry) -> float:
    """1 for the number, in any base that its prefix names; 0.01 for anything else."""
    try:
        wanted = int(str(entry["answer"]), 0)
    except ValueError as error:
        raise EntryTrouble("the answer is no whole number") from error
    try:
        return 1.0 if len(answer) <= 4_000 and int(answer, 0) == wanted else 0.01
    except ValueError:
        return 0.01


def _coin_flip(answer: str, entry: Entry) -> float:
    """1 for the probability, as a decimal or fraction, within 1e-4 and 1 %; else 0."""
    try:
        wanted = Fraction(str(entry["answer"]))
    except ValueError as error:
        raise EntryTrouble("the answer is no number") from error
    plain = answer.replace(",", "").strip()
    if len(plain) > _MAX_NUMBER_CHARS or not _PROBABILITY.fullmatch(plain):
        return 0.0
    try:
        away = abs(Fraction(plain) - wanted)
    except (ValueError, ZeroDivisionError):
        return 0.0
    return float(away <= min(Fraction(1, 10**4), abs(wanted) / 100))


def _halting(answer: str, entry: Entry) -> float:
    """1 for the right one of "True" and "False", in any case."""
    word = answer.strip().strip(".").lower()
    return float(word in ("true", "false") and word == str(entry["answer"]).strip().lower())


def _string_insertion(answer: str, entry: Entry) -> float:
    """1 for the text, 0.1 for a list of its characters."""
    if answer == entry["answer"]:
        return 1.0
    rows = _rows(answer)
    texts = rows is not None and all(isinstance(cell, str) for cell in rows)
    return 0.1 if texts and "".join(rows or []) == entry["answer"] else 0.0


def _spiral_matrix(answer: str, entry: Entry) -> float:
    """1 for the numbers between blanks, 0.1 for a list of them."""
    wanted = str(entry["answer"]).strip()
    if answer.strip() == wanted:
        return 1.0
    rows = _rows(answer)
    return 0.1 if rows is not None and " ".join(map(str, rows)) == wanted else 0.0


def _binary_matrix(answer: str, entry: Entry) -> float:
    """1 for the matrix, 0.1 for a list of its rows."""
    if answer == entry["answer"]:
        return 1.0
    return 0.1 if _board(answer) == entry["answer"] else 0.0


def _n_queens(answer: str, entry: Entry) -> float:
    """1 for a board that is a solution, 0.5 for a list of its rows."""
    solutions = entry["metadata"]["valid_answers"]
    if answer in solutions:
        return 1.0
    return 0.5 if _board(answer) in solutions else 0.0


def _rows(text: str) -> list[Any] | None:
    """A list as JSON or Python writes it, of texts and numbers or lists of these; None for none."""
    if len(text) > _MAX_ROWS_CHARS:
        return None
    try:
        value = json.loads(text.replace("'", '"'))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _board(text: str) -> str | None:
    """A list of rows, as lines of cells between blanks; None for no such list."""
    rows = _rows(text)
    if rows is None or not all(isinstance(row, list) for row in rows):
        return None
    return "\n".join(" ".join(str(cell) for cell in row) for row in rows)


_EVALUATES = "its scorer passes the answer to eval"
_SYMPY = "its scorer passes the answer to sympy.parse_expr, which evaluates it"
_ENTRY = "its scorer passes a text of the entry to eval"

REPLACED: dict[str, tuple[Scorer, str]] = {
    "binary_matrix": (_binary_matrix, _EVALUATES),
    "bitwise_arithmetic": (_bitwise, _ENTRY),
    "coin_flip": (_coin_flip, 'its scorer gives "0" full marks for what begins with 0'),
    "countdown": (_countdown, _SYMPY),
    "game_of_life_halting": (_halting, 'its scorer takes any text for true, "False" as well'),
    "intermediate_integration": (
        _integration,
        f"{_SYMPY}; and it takes Integral(...) of the question for its answer",
    ),
    "n_queens": (_n_queens, _EVALUATES),
    "polynomial_multiplication": (_polynomial, _SYMPY),
    "puzzle24": (_puzzle24, f"{_SYMPY}; and it rounds 24.9 down and takes other numbers"),
    "simple_integration": (_integration, f"{_SYMPY}; and it takes Integral(...) as well"),
    "spiral_matrix": (_spiral_matrix, _EVALUATES),
    "string_insertion": (_string_insertion, _EVALUATES),
}
"""Data sets whose scorer is ours, and why."""

REFUSED: dict[str, tuple[re.Pattern[str], str]] = {
    "complex_arithmetic": (re.compile("nan|inf", re.IGNORECASE), "its scorer takes nan for right"),
    "rubiks_cube": (re.compile(r"\d{3}"), "its scorer repeats a move as often as it is told"),
}
"""What makes an answer to a data set incorrect before its scorer sees it, and why."""


def safe_entry(name: str, entry: Entry) -> dict[str, Any]:
    """The entry as it may be given to the package's scorer.

    number_sorting evaluates an answer that is not JSON, and writes answers with single quotes; ARC
    boards are tuples, which JSON does not have.

    Raises:
        EntryTrouble: the answer of number_sorting is not a list, or a board is not one of lists.
    """
    copy = dict(entry)
    if name == "number_sorting":
        rows = _rows(str(entry.get("answer")))
        if rows is None:
            raise EntryTrouble("the answer is no list of numbers")
        copy["answer"] = json.dumps(rows)
    if name in ("arc_agi", "rearc"):
        board = entry["metadata"].get("output")
        if not isinstance(board, list | tuple) or not all(
            isinstance(row, list | tuple) for row in board
        ):
            raise EntryTrouble("the output of its metadata is no board")
        copy["metadata"] = {**entry["metadata"], "output": tuple(map(tuple, board))}
    return copy
