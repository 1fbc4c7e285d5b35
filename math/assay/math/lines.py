"""Lines: a point and a multiple of a direction, compared as sets of points.

`p + t d` has as many forms as the line has points and the direction multiples. Two of them are one
line where the directions are parallel, and so are the direction and the way from point to point.
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from assay.math.linear import (
    PARAMETERS,
    affine,
    difference,
    is_line,
    number,
    product,
    rational,
    total,
)
from assay.math.nodes import Call, Chain, Group, Matrix, Node, Symbol, symbols
from assay.math.terms import Term

_NEGLIGIBLE = 1e-9
_NO_TIMES = frozenset({"s", "lambda", "mu", "u"})
"""Letters of a function of which is a line: `r(s) = p + s d`. `r(t)` may be a motion."""

Equal = Callable[[Node, Node], bool]


def as_line(node: Node) -> Node | None:
    """The line that a node describes whatever its form: a point and a multiple of a direction.

    `p + t d`, entries in one letter that runs over the reals, and `x = 1 + t, y = 2t`; a tuple with
    a letter alone is none, for it may be a curve, a motion or a family with that very letter, and
    so is a function of t.
    """
    match node:
        case Call(name, _):
            return node if name == "line" else None
        case Group("", (inside, Chain((Symbol(name), Symbol("mathbbR" | "R")), ("in",)))):
            return _line(inside) if name in symbols(inside) else None
        case Group("", (*items, Chain((Symbol(name), Symbol("mathbbR" | "R")), ("in",)))) if items:
            return as_line(Group("", tuple(items), "")) if name in PARAMETERS else None
        case Chain((Call(_, (Symbol(name),)), inside), ("=",)) if name in _NO_TIMES:
            return _line(inside)
        case Chain((Symbol() | Group(), inside), ("=",)) if is_line(inside):
            return inside
        case Chain(operands, operators) if set(operators) == {"="}:
            return _symmetric(operands)
        case Group("", items):
            named = [item for item in items if isinstance(item, Chain)]
            if len(named) != len(items) or tuple(map(_coordinate, named)) not in _COORDINATES:
                return None
            return _line(Group("(", tuple(chain.operands[1] for chain in named), ")"))
        case _:
            return None


_COORDINATES = (("x", "y"), ("x", "y", "z"))


def _symmetric(operands: tuple[Node, ...]) -> Node | None:
    r"""`\frac{x - 1}{2} = y = \frac{z}{3}`: each side is linear in a coordinate of its own."""
    names = [next(iter(symbols(side))) if len(symbols(side)) == 1 else "" for side in operands]
    if tuple(sorted(names)) not in _COORDINATES:
        return None
    point, direction = [], []
    for name in sorted(names):
        part = affine(operands[names.index(name)], name)
        slope, constant = (None, None) if part is None else map(rational, part)
        if not slope or constant is None:  # slope * x + constant = letter
            return None
        point.append(number(-constant / slope))
        direction.append(number(1 / slope))
    letter = Symbol("t")
    return Call("line", (Group("(", tuple(point), ")"), Group("(", tuple(direction), ")"), letter))


def _coordinate(chain: Chain) -> str:
    name = chain.operands[0]
    named = chain.operators == ("=",) and isinstance(name, Symbol)
    return name.name if named and isinstance(name, Symbol) else ""


def _line(node: Node) -> Node | None:
    if isinstance(node, Chain) and node.operators == ("=",):
        node = node.operands[1]
    parts = line_of(node)
    if is_line(node) or parts is None:
        return node if is_line(node) else None
    names = frozenset[str]().union(*map(symbols, (node,)))
    if not names <= PARAMETERS:
        return None
    point, direction = (Group("(", part, ")") for part in parts)
    return Call("line", (point, direction, Symbol(next(iter(names)))))


def spread(line: Node) -> Node:
    """A line as a tuple with its own letter; any other node as it is."""
    match line:
        case Call("line", (Group() as point, Group() as direction, letter)):
            items = zip(point.items, direction.items, strict=True)
            return Group(
                point.opening,
                tuple(total((start, product((letter, step)))) for start, step in items),
                point.closing,
            )
        case _:
            return line


def line_of(node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """A point and a direction of a line, from its parts or from entries in one letter."""
    match node:
        case Call("line", (Group(_, point), Group(_, direction), _)):
            return point, direction
        case Group("(" | "[", items):
            return _of_entries(items)
        case Matrix(rows) if all(len(row) == 1 for row in rows):
            return _of_entries(tuple(row[0] for row in rows))
        case _:
            return None


def _of_entries(items: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    names = frozenset[str]().union(*map(symbols, items))
    if len(names) != 1:
        return None
    parts = [affine(item, next(iter(names))) for item in items]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    return tuple(constant for _, constant in known), tuple(slope for slope, _ in known)


def same_line(left: Node, right: Node, equal: Equal) -> bool:
    """Whether two nodes are one line: parallel directions, and a point of one on the other."""
    one, other = line_of(left), line_of(right)
    if one is None or other is None or len(one[0]) != len(other[0]):
        return False
    (point, direction), (through, along) = one, other
    if not _moves(direction) or not _moves(along):
        return False
    apart = tuple(difference(b, a) for a, b in zip(point, through, strict=True))
    return _parallel(direction, along, equal) and _parallel(direction, apart, equal)


def _moves(direction: Sequence[Node]) -> bool:
    """Whether a direction has an entry that is a number other than zero."""
    values = [Term(part).constant for part in direction]
    return any(value is not None and abs(value) > _NEGLIGIBLE for value in values)


def _parallel(one: Sequence[Node], other: Sequence[Node], equal: Equal) -> bool:
    """Whether all cross products of entries agree."""
    pairs = itertools.combinations(zip(one, other, strict=True), 2)
    return all(equal(product((a, d)), product((c, b))) for (a, b), (c, d) in pairs)
