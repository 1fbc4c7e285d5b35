"""Sets of real numbers as sorted intervals, so that unions, inequalities and points compare."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from assay.math import linear
from assay.math.nodes import (
    MINUS_ONE,
    Call,
    Chain,
    Constant,
    Group,
    Mul,
    Node,
    Pow,
    SetOperation,
    Symbol,
    symbols,
)

Evaluate = Callable[[Node], float | None]
INFINITY = Constant("infinity")
MINUS_INFINITY = Mul((MINUS_ONE, INFINITY))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
MAX_PIECES = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval or a point; the nodes hold the exact ends, the floats order them."""

    low: Node
    low_value: float
    low_closed: bool
    high: Node
    high_value: float
    high_closed: bool


Pieces = list[Piece]
WHOLE = Piece(MINUS_INFINITY, -math.inf, False, INFINITY, math.inf, False)


def pieces(node: Node, evaluate: Evaluate, *, solves: bool = False) -> Pieces | None:
    """The set as sorted, disjoint pieces; None when it is no such set.

    Args:
        node: an interval, a finite set, a union, a relation of one name with numbers, or a list.
        evaluate: gives the value of an end; None where it has none.
        solves: whether `2x + 1 > 4` and `|x - 1| < 2` are taken for their solutions: only in a
            reference, since in an answer they are left to solve.
    """
    found = _solved(node, evaluate) if solves and isinstance(node, Chain) else None
    found = _pieces(node, evaluate) if found is None else found
    return None if found is None or len(found) > MAX_PIECES else merged(found)


def variable(node: Node) -> Node | None:
    """What a relation, or a list of relations, is about; None when it is about several things."""
    if isinstance(node, Chain):
        subject, _ = _subject(node)
        return subject.arguments[0] if _is_size(subject) and isinstance(subject, Call) else subject
    if isinstance(node, Group):
        items = node.items
        if isinstance(items[0], Chain) and items[0].operators == ("!=",):
            items = tuple(item for item in items if isinstance(item, Chain))
        subjects = [variable(item) for item in items]
        return subjects[0] if all(subject == subjects[0] for subject in subjects) else None
    return None


def _pieces(node: Node, evaluate: Evaluate) -> Pieces | None:
    match node:
        case Symbol("mathbbR"):
            return [WHOLE]
        case Group("(" | "[", (low, high), closing):
            return _interval(low, node.opening == "[", high, closing == "]", evaluate)
        case Group("{", items):
            return _points(items, evaluate)
        case SetOperation(name, operands):
            return _operation(name, operands, evaluate)
        case Chain():
            return _relation(node, evaluate)
        case Group("", items):
            return _conditions(node, items, evaluate)
        case _:
            return None


def _interval(
    low: Node, low_closed: bool, high: Node, high_closed: bool, evaluate: Evaluate
) -> Pieces | None:
    first, last = evaluate(low), evaluate(high)
    if first is None or last is None:
        return None
    if first > last or (first == last and not (low_closed and high_closed)):
        return None
    return [
        Piece(
            low, first, low_closed,
            high, last, high_closed,
        )
    ]  # fmt: skip


def _points(items: tuple[Node, ...], evaluate: Evaluate) -> Pieces | None:
    found: Pieces = []
    for item in items:
        value = evaluate(item)
        if value is None:
            return None
        found.append(Piece(item, value, True, item, value, True))
    return found


def _operation(name: str, operands: tuple[Node, ...], evaluate: Evaluate) -> Pieces | None:
    sets = [_pieces(operand, evaluate) for operand in operands]
    if any(part is None for part in sets):
        return None
    known = [part for part in sets if part is not None]
    if name == "union":
        return [piece for part in known for piece in part]
    if name == "intersection":
        return intersection(merged(known[0]), merged(known[1]))
    return _without(merged(known[0]), known[1])


def complement(covered: Pieces) -> Pieces:
    """The real numbers in none of the pieces."""
    left = [WHOLE]
    for piece in merged(covered):
        below = Piece(
            MINUS_INFINITY, -math.inf, False,
            piece.low, piece.low_value, not piece.low_closed,
        )  # fmt: skip
        above = Piece(
            piece.high, piece.high_value, not piece.high_closed,
            INFINITY, math.inf, False,
        )  # fmt: skip
        left = intersection(left, [below, above])
    return left


def equal(left: Pieces, right: Pieces) -> bool:
    """Whether two sets have the same ends, as far as floating point tells."""

    def ends(piece: Piece) -> tuple[float, bool, float, bool]:
        return (piece.low_value, piece.low_closed, piece.high_value, piece.high_closed)

    return len(left) == len(right) and all(
        one == other
        or (
            one[1::2] == other[1::2]
            and math.isclose(one[0], other[0], rel_tol=1e-12)
            and math.isclose(one[2], other[2], rel_tol=1e-12)
        )
        for one, other in zip(map(ends, left), map(ends, right), strict=True)
    )


def intersection(left: Pieces, right: Pieces) -> Pieces:
    """What is in both."""
    found: Pieces = []
    for one in left:
        for other in right:
            low = max((one.low_value, not one.low_closed), (other.low_value, not other.low_closed))
            first = one if low == (one.low_value, not one.low_closed) else other
            high = min((one.high_value, one.high_closed), (other.high_value, other.high_closed))
            last = one if high == (one.high_value, one.high_closed) else other
            if low[0] < high[0] or (low[0] == high[0] and not low[1] and high[1]):
                found.append(
                    Piece(first.low, low[0], not low[1], last.high, high[0], bool(high[1]))
                )
    return found


def _without(left: Pieces, removed: Pieces) -> Pieces | None:
    """The set without points; without anything larger it is not computed."""
    for point in removed:
        if point.low_value != point.high_value:
            return None
        outside = [
            Piece(MINUS_INFINITY, -math.inf, False, point.low, point.low_value, False),
            Piece(point.low, point.low_value, False, INFINITY, math.inf, False),
        ]
        left = intersection(left, outside)
    return left


def _subject(chain: Chain) -> tuple[Node | None, int]:
    """The one operand that is a name, and its place; None when there is none or another."""
    if chain.operators == ("in",):
        first = chain.operands[0]
        return (first, 0) if isinstance(first, Symbol) or _is_value(first) else (None, 0)
    named = [
        (operand, place)
        for place, operand in enumerate(chain.operands)
        if _is_variable(operand) or _is_size(operand) or _is_value(operand)
    ]
    return named[0] if len(named) == 1 else (None, 0)


def integers(condition: Node, evaluate: Evaluate) -> Node | None:
    """The integers on which a condition holds, as a set; None where they are many or none."""
    found: list[Node] = []
    for piece in pieces(condition, evaluate) or []:
        if math.isinf(piece.low_value) or math.isinf(piece.high_value):
            return None
        low, high = math.ceil(piece.low_value), math.floor(piece.high_value)
        first = low + (low == piece.low_value and not piece.low_closed)
        last = high - (high == piece.high_value and not piece.high_closed)
        if last - first > MAX_PIECES:
            return None
        found += [linear.number(Fraction(value)) for value in range(first, last + 1)]
    return Group("{", tuple(found), "}") if 0 < len(found) <= MAX_PIECES else None


def _is_value(node: Node) -> bool:
    """Whether it is a value of a function that nobody defined, f(x)."""
    return (
        isinstance(node, Call)
        and len(node.name) == 1
        and all(isinstance(argument, Symbol) for argument in node.arguments)
    )


def _solved(chain: Chain, evaluate: Evaluate) -> Pieces | None:
    """The solutions of a relation that is linear in one name, or in an absolute value of that."""
    inside = [at for at, operand in enumerate(chain.operands) if symbols(operand)]
    if len(inside) != 1 or not set(chain.operators) <= {*_FLIPPED, "!="}:
        return None
    operand = chain.operands[inside[0]]
    size = isinstance(operand, Call) and operand.name == "abs"
    linear_part = operand.arguments[0] if size and isinstance(operand, Call) else operand
    names = symbols(linear_part)
    parts = linear.affine(linear_part, next(iter(names))) if len(names) == 1 else None
    slope = None if parts is None else evaluate(parts[0])
    if parts is None or not slope:
        return None
    stand_in: Node = Call("abs", (Symbol("u"),)) if size else Symbol("u")
    operands = tuple(stand_in if part is operand else part for part in chain.operands)
    found = _relation(Chain(operands, chain.operators), evaluate)
    if found is None:
        return None

    def place(end: Node, value: float) -> tuple[Node, float] | None:
        if math.isinf(value):
            turned = value * slope
            return (INFINITY if turned > 0 else MINUS_INFINITY), turned
        node = linear.product((linear.difference(end, parts[1]), Pow(parts[0], MINUS_ONE)))
        at = evaluate(node)
        return None if at is None else (node, at)

    moved = []
    for piece in found:
        low, high = place(piece.low, piece.low_value), place(piece.high, piece.high_value)
        if low is None or high is None:
            return None
        ends = [(*low, piece.low_closed), (*high, piece.high_closed)]
        moved.append(Piece(*(ends[0] + ends[1] if slope > 0 else ends[1] + ends[0])))
    return moved


def _is_variable(node: Node) -> bool:
    return isinstance(node, Symbol) and not node.name.startswith("mathbb")


def _is_size(node: Node | None) -> bool:
    return isinstance(node, Call) and node.name == "abs" and isinstance(node.arguments[0], Symbol)


def _relation(chain: Chain, evaluate: Evaluate) -> Pieces | None:
    subject, place = _subject(chain)
    if subject is None or len(chain.operands) > 3:
        return None
    if chain.operators == ("in",):
        return _pieces(chain.operands[1], evaluate) if place == 0 else None
    found: Pieces = [WHOLE]
    for at, operator in enumerate(chain.operators):
        if at not in (place - 1, place):
            return None
        bound = chain.operands[at + 1] if at == place else chain.operands[at]
        ray = _ray(bound, operator if at == place else _FLIPPED.get(operator, operator), evaluate)
        if ray is None:
            return None
        found = intersection(found, ray)
    if _is_size(subject):
        return _both_signs(found)
    return found


def _ray(bound: Node, operator: str, evaluate: Evaluate) -> Pieces | None:
    """The numbers that stand in a relation to a bound."""
    value = evaluate(bound)
    if value is None:
        return None
    below = Piece(MINUS_INFINITY, -math.inf, False, bound, value, operator == "<=")
    above = Piece(bound, value, operator == ">=", INFINITY, math.inf, False)
    match operator:
        case "<" | "<=":
            return [below]
        case ">" | ">=":
            return [above]
        case "!=":
            return [below, above]
        case "=":
            return [Piece(bound, value, True, bound, value, True)]
        case _:
            return None


def _both_signs(sizes: Pieces) -> Pieces:
    """The numbers whose absolute value lies in a set."""
    zero = Mul((MINUS_ONE, INFINITY))
    found = []
    for piece in intersection(sizes, [Piece(zero, 0.0, True, INFINITY, math.inf, False)]):
        if piece.low_value == 0.0 and piece.low is zero:
            found.append(_mirrored(piece, piece))
            continue
        found += [piece, _mirrored_only(piece)]
    return found


def _mirrored(piece: Piece, _: Piece) -> Piece:
    return Piece(
        Mul((MINUS_ONE, piece.high)), -piece.high_value, piece.high_closed,
        piece.high, piece.high_value, piece.high_closed,
    )  # fmt: skip


def _mirrored_only(piece: Piece) -> Piece:
    return Piece(
        Mul((MINUS_ONE, piece.high)), -piece.high_value, piece.high_closed,
        Mul((MINUS_ONE, piece.low)), -piece.low_value, piece.low_closed,
    )  # fmt: skip


def _conditions(node: Group, items: tuple[Node, ...], evaluate: Evaluate) -> Pieces | None:
    """Relations in a list: all of them hold, or any where the list says "or"."""
    match items[0]:
        case Chain((Symbol() as name, _), ("!=",)):  # x != 1, 2
            items = tuple(
                item if isinstance(item, Chain) else Chain((name, item), ("!=",)) for item in items
            )
    if not all(isinstance(item, Chain | Group | SetOperation) for item in items):
        return None
    sets = [_pieces(item, evaluate) for item in items]
    if any(part is None for part in sets):
        return None
    known = [part for part in sets if part is not None]
    joined = [piece for part in known for piece in part]
    relations = all(isinstance(item, Chain) for item in items)
    if node.alternatives or not relations:
        return joined if relations or not node.alternatives else None
    common = known[0]
    for part in known[1:]:
        common = intersection(merged(common), merged(part))
    return common or joined


def merged(found: Pieces) -> Pieces:
    """Sorted, with pieces that overlap or touch joined."""
    ordered = sorted(found, key=lambda piece: (piece.low_value, not piece.low_closed))
    merged: Pieces = []
    for piece in ordered:
        last = merged[-1] if merged else None
        if last is None or not _touches(last, piece):
            merged.append(piece)
        elif (piece.high_value, piece.high_closed) > (last.high_value, last.high_closed):
            merged[-1] = Piece(
                last.low, last.low_value, last.low_closed,
                piece.high, piece.high_value, piece.high_closed,
            )  # fmt: skip
    return merged


def _touches(left: Piece, right: Piece) -> bool:
    if right.low_value < left.high_value:
        return True
    return right.low_value == left.high_value and (right.low_closed or left.high_closed)
