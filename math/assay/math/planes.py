r"""Planes and sets of points as equations: `r \cdot n = d`, `p + s u + t v`, `\{(x, y): y = 2x\}`.

Each form is put as the equation that its points satisfy, in x, y and z, so that two of them are
compared as equations. A plane by two directions needs rational entries: its normal is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from assay.math.linear import affine, is_line, number, product, rational, total
from assay.math.nodes import (
    ZERO,
    Add,
    Call,
    Chain,
    Group,
    Matrix,
    Node,
    Pow,
    SetOperation,
    Symbol,
    Text,
)

_POINTS = ("r", "over_r")
_NAMES = ("x", "y", "z")
_SPACE = 3


def as_equation(node: Node) -> Node:
    """A plane, a line by its normal or a set of points as its equation; any other node as it is."""
    match node:
        case Chain((left, right), ("=",)):
            return _dotted(left, right) or _dotted(right, left) or _spanned(right) or node
        case Add():
            return _spanned(node) or node
        case Call("builder", (element, Chain() as condition)):
            return condition if _is_point(element) else node
        case _:
            return node


def _is_point(element: Node) -> bool:
    """Whether it is (x, y) or (x, y, z), perhaps with the space that it is from."""
    match element:
        case Chain((Group() as point, Pow(Symbol("mathbbR"), _)), ("in",)):
            element = point
        case _:
            pass
    if not isinstance(element, Group) or element.opening != "(":
        return False
    names = tuple(map(Symbol, _NAMES))
    return element.items in (names[:2], names)


def _dotted(left: Node, right: Node) -> Node | None:
    r"""`r \cdot n = d` as an equation; None where it is none."""
    normal = _normal(left)
    if normal is None or isinstance(right, Group | Matrix | Chain | SetOperation | Text):
        return None
    return None if is_line(right) else _equation(normal, right)


def _normal(node: Node) -> Sequence[Node] | None:
    match node:
        case Call("line", (Group(_, point), Group(_, normal), Symbol(name))) if name in _POINTS:
            return normal if all(part == ZERO for part in point) else None
        case Group("(" | "[", entries):
            return _of_entries(entries)
        case Matrix(rows) if all(len(row) == 1 for row in rows):
            return _of_entries(tuple(row[0] for row in rows))
        case _:
            return None


def _of_entries(entries: Sequence[Node]) -> Sequence[Node] | None:
    """What the letter of a point is multiplied by in every entry."""
    for name in _POINTS:
        parts = [affine(entry, name) for entry in entries]
        slopes = [part[0] for part in parts if part is not None and rational(part[1]) == 0]
        if len(slopes) == len(entries) and any(rational(slope) != 0 for slope in slopes):
            return slopes
    return None


def _equation(normal: Sequence[Node], right: Node) -> Node | None:
    if not 1 < len(normal) <= _SPACE:
        return None
    pairs = zip(normal, map(Symbol, _NAMES), strict=False)
    terms = [product((part, name)) for part, name in pairs if rational(part) != 0]
    return Chain((total(terms), right), ("=",)) if terms else None


def _spanned(node: Node) -> Node | None:
    """`p + s u + t v` in three dimensions as the equation of the plane."""
    if not isinstance(node, Add):
        return None
    lines = [term for term in node.terms if isinstance(term, Call) and is_line(term)]
    if len(lines) != 2 or lines[0].arguments[2] == lines[1].arguments[2]:
        return None
    starts = [_numbers(term) for term in node.terms if term not in lines]
    starts += [_numbers(line.arguments[0]) for line in lines]
    first, second = (_numbers(line.arguments[1]) for line in lines)
    known = [start for start in starts if start is not None]
    if first is None or second is None or len(known) != len(starts):
        return None
    point = [sum(entries, Fraction(0)) for entries in zip(*known, strict=True)]
    normal = _crossed(first, second)
    if not any(normal):
        return None
    right = sum((a * b for a, b in zip(normal, point, strict=True)), Fraction(0))
    return _equation([number(part) for part in normal], number(right))


def _numbers(node: Node) -> list[Fraction] | None:
    """The entries of a tuple or column of three rational numbers."""
    match node:
        case Group(_, items):
            entries = items
        case Matrix(rows) if all(len(row) == 1 for row in rows):
            entries = tuple(row[0] for row in rows)
        case _:
            return None
    values = [rational(entry) for entry in entries]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) == _SPACE else None


def _crossed(one: Sequence[Fraction], two: Sequence[Fraction]) -> list[Fraction]:
    return [
        one[1] * two[2] - one[2] * two[1],
        one[2] * two[0] - one[0] * two[2],
        one[0] * two[1] - one[1] * two[0],
    ]
