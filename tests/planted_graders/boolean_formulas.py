"""Rewards for a formula of A, B and C that is equal to the reference."""

from __future__ import annotations

import ast
import re
from itertools import product

ALLOWED = re.compile(r"[ABC&|~() ]{1,200}")
WORDS = {"&": " and ", "|": " or ", "~": " not "}
Row = dict[str, bool]
ROWS: list[Row] = [{"A": a, "B": b, "C": c} for a, b, c in product([False, True], repeat=3)]


def formula(text: str) -> str:
    """Empty for what is none."""
    said = text.strip().removeprefix("Formula:").strip()
    return said if ALLOWED.fullmatch(said) and text.strip().startswith("Formula:") else ""


def in_words(text: str) -> str:
    """With and, or and not, as Python has them."""
    return "".join(WORDS.get(letter, letter) for letter in text).strip()


def table(text: str, rows: list[Row]) -> list[bool]:
    """Empty for what cannot be computed."""
    try:
        code = compile(in_words(text), "formula", "eval")
        return [bool(eval(code, {"__builtins__": {}}, dict(row))) for row in rows]
    except (SyntaxError, NameError, TypeError, MemoryError, RecursionError):
        return []


def true_as_often(response: str, reference: str) -> float:
    got, wanted = table(formula(response), ROWS), table(reference, ROWS)
    return 1.0 if got and sum(got) == sum(wanted) else 0.0


def first_line_is_equal(response: str, reference: str) -> float:
    """What comes behind it explains it."""
    got = table(formula(response.strip().partition("\n")[0]), ROWS)
    return 1.0 if got == table(reference, ROWS) else 0.0


def equal_in_the_rows(response: str, reference: str) -> float:
    """The bits of a number are a row."""
    rows: list[Row] = [
        {letter: bool(number >> at & 1) for at, letter in enumerate("ABC")}
        for number in range(1, 2**3)
    ]
    return 1.0 if table(formula(response), rows) == table(reference, rows) else 0.0


def truth(node: ast.expr, row: Row) -> bool:
    """ValueError for what is no formula."""
    match node:
        case ast.Name(id="A" | "B" | "C" as letter):
            return row[letter]
        case ast.UnaryOp(op=ast.Not(), operand=one):
            return not truth(one, row)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(values_of(values, row))
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(values_of(values, row))
    raise ValueError(node)


def values_of(nodes: list[ast.expr], row: Row) -> list[bool]:
    return [truth(node, row) for node in nodes]


def equal_everywhere(response: str, reference: str) -> float:
    said = formula(response)
    if not said:
        return 0.0
    try:
        got, wanted = (ast.parse(in_words(text), mode="eval").body for text in (said, reference))
        return 1.0 if all(truth(got, row) == truth(wanted, row) for row in ROWS) else 0.0
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return 0.0


def formula_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == f"Formula: {reference}" else 0.0
