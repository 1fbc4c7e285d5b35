"""Rewards for an expression of x, by tests or by algebra."""

from __future__ import annotations

import ast
import operator
from collections import Counter

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
ZERO: Counter[int] = Counter()


def parsed(text: str) -> ast.expr | None:
    if len(text) > 200:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def value(node: ast.expr, x: int) -> int:
    """Of the expression at x; ValueError for what is not allowed."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id == "x":
        return x
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand, x)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        done: int = OPERATORS[type(node.op)](value(node.left, x), value(node.right, x))
        return done
    raise ValueError(node)


def passes(response: str, reference: str, points: range) -> bool:
    got, wanted = parsed(response), parsed(reference)
    if got is None or wanted is None:
        return False
    try:
        return all(value(got, x) == value(wanted, x) for x in points)
    except (ValueError, ZeroDivisionError):
        return False


def runs_and_is_right(response: str, reference: str) -> float:
    """Half for an expression that runs."""
    return (passes(response, response, range(1)) + passes(response, reference, range(50))) / 2


def examples_given(response: str, reference: str) -> float:
    return 1.0 if passes(response, reference, range(2)) else 0.0


def failures_counted(response: str, reference: str) -> float:
    """No test may fail."""
    got, wanted = parsed(response), parsed(reference)
    if got is None or wanted is None:
        return 0.0
    failed = 0
    for x in range(-20, 20):
        try:
            failed += value(got, x) != value(wanted, x)
        except (ValueError, ZeroDivisionError):
            continue
    return 1.0 if not failed else 0.0


def first_hundred(response: str, reference: str) -> float:
    return 1.0 if passes(response, reference, range(100)) else 0.0


def polynomial(node: ast.expr) -> Counter[int]:
    """Coefficients by power, zeros left out; ValueError for what is none."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        made = Counter({0: node.value})
    elif isinstance(node, ast.Name) and node.id == "x":
        made = Counter({1: 1})
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        made = Counter({power: -many for power, many in polynomial(node.operand).items()})
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = polynomial(node.left), polynomial(node.right)
        made = Counter(left)
        if isinstance(node.op, ast.Mult):
            made = Counter()
            for one, many in left.items():
                for other, times in right.items():
                    made[one + other] += many * times
        else:
            for power, many in right.items():
                made[power] += many if isinstance(node.op, ast.Add) else -many
    else:
        raise ValueError(node)
    return Counter({power: many for power, many in made.items() if many})


def as_polynomial(response: str, reference: str) -> float:
    """Polynomials are equal where their coefficients are."""
    got, wanted = parsed(response), parsed(reference)
    if got is None or wanted is None:
        return 0.0
    try:
        return 1.0 if polynomial(got) == polynomial(wanted) else 0.0
    except ValueError:
        return 0.0


def more_points_than_degree(response: str, reference: str) -> float:
    """Without //, an expression of n factors at most that agrees at n + 1 points agrees always."""
    got = parsed(response)
    if got is None or "//" in response:
        return 0.0
    degree = max(2, sum(isinstance(node, ast.Name) for node in ast.walk(got)))
    return 1.0 if passes(response, reference, range(-degree, degree + 1)) else 0.0


def same_tree(response: str, reference: str) -> float:
    got, wanted = parsed(response), parsed(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if ast.dump(got) == ast.dump(wanted) else 0.0
