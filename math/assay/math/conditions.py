r"""Values with the domain on which they hold: `\ln(x^2), x > 0`; `x + 1, x \ne 1`.

A condition is part of an answer unless it says only what the other side says anyway. Of two sides
with the same condition the values are compared on it: under x > 0 `\sqrt{x^2}` is x. A condition
that one side alone writes must hold wherever the other side has a real value (`\ln x, x > 0` is
`\ln x`), or, in an answer, only leave points out (`x + 1, x \ne 1` for `x + 1`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from assay.math import numeric
from assay.math.linear import rational
from assay.math.nodes import (
    Call,
    Chain,
    Group,
    Matrix,
    Mul,
    Node,
    Quantity,
    SetOperation,
    Symbol,
    Text,
    rebuilt,
    symbols,
)

MAX_CONDITIONS = 4
_KINDS = frozenset({"<", "<=", ">", ">=", "!="})
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_STEPS = (Fraction(1, 3), Fraction(7, 5), Fraction(19, 6))

Match = Callable[[Node, Node], bool]


class NameBound(NamedTuple):
    """`name operator limit`."""

    name: str
    operator: str
    limit: Fraction


class Conditional(NamedTuple):
    """A value and the bounds of its variables."""

    value: Node
    bounds: frozenset[NameBound]


def split(node: Node) -> Conditional | None:
    """The value and its conditions; None where a node has none that are understood."""
    match node:
        case Group("", (value, *said)) | Mul((value, *said)) if (
            said and len(said) <= MAX_CONDITIONS and all(isinstance(part, Chain) for part in said)
        ):
            bounds = [_bound(part) for part in said]
        case _:
            return None
    known = frozenset(bound for bound in bounds if bound is not None)
    stated = not isinstance(value, Chain) or value.operators == ("=",)
    if None in bounds or not stated or isinstance(value, Text | Group | Matrix | SetOperation):
        return None
    return Conditional(value, known) if {one.name for one in known} <= symbols(value) else None


def _bound(node: Node) -> NameBound | None:
    match node:
        case Chain((Symbol(name), limit), (operator,)) if operator in _KINDS:
            value = rational(limit)
        case Chain((limit, Symbol(name)), (operator,)) if operator in _KINDS:
            value, operator = rational(limit), _FLIPPED[operator]
        case _:
            return None
    return None if value is None else NameBound(name, operator, value)


def same(left: Node, right: Node, match: Match) -> bool:
    """Whether an answer equals a reference, one of which is written with conditions.

    Args:
        left: the reference.
        right: the answer.
        match: whether a node of the answer equals a node of the reference.
    """
    ours, theirs = split(left), split(right)
    if ours is not None and theirs is not None:
        return ours.bounds == theirs.bounds and _equal(ours.value, theirs.value, ours.bounds, match)
    if theirs is not None:
        points = all(bound.operator == "!=" for bound in theirs.bounds)
        if points and match(left, theirs.value):
            return True
        return _implies(left, theirs.bounds) and _equal(left, theirs.value, theirs.bounds, match)
    if ours is not None:
        return _implies(right, ours.bounds) and _equal(ours.value, right, ours.bounds, match)
    return False


def _equal(left: Node, right: Node, bounds: frozenset[NameBound], match: Match) -> bool:
    """Whether two values agree where the variables that have to be positive are."""
    positive = {
        bound.name for bound in bounds if bound.operator in (">", ">=") and bound.limit >= 0
    }

    def change(part: Node) -> Node:
        inside = isinstance(part, Symbol) and part.name in positive
        return Call("abs", (part,)) if inside else part

    return match(rebuilt(left, change), rebuilt(right, change))


def _implies(node: Node, bounds: frozenset[NameBound]) -> bool:
    """Whether a value is no real number at points where one of the bounds does not hold."""
    if isinstance(node, Chain) and node.operators == ("=",):
        node = node.operands[-1]
    if isinstance(node, Chain | Group | Matrix | SetOperation | Text | Quantity):
        return False
    return not any(_is_real(node, bound.name, at) for bound in bounds for at in _outside(bound))


def _outside(bound: NameBound) -> list[Fraction]:
    """Numbers that a bound leaves out."""
    _, operator, limit = bound
    if operator == "!=":
        return [limit]
    at_limit = [] if operator in ("<=", ">=") else [limit]
    sign = -1 if operator in (">", ">=") else 1
    return at_limit + [limit + sign * step for step in _STEPS]


def _is_real(node: Node, name: str, at: Fraction) -> bool:
    try:
        value = numeric.evaluate(node, 0, {name: float(at)})
    except numeric.Invalid:
        return False
    return isinstance(value, float) or abs(value.imag) <= 1e-12 * abs(value)
