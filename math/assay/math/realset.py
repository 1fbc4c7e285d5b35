"""Sets of real numbers as sorted intervals, so that unions, inequalities and points compare."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from assay.math.nodes import (
    MINUS_ONE,
    Call,
    Chain,
    Constant,
    Group,
    Mul,
    Node,
    SetOperation,
    Symbol,
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


def pieces(node: Node, evaluate: Evaluate) -> Pieces | None:
    """The set as sorted, disjoint pieces; None when it is no such set.

    Args:
        node: an interval, a finite set, a union, a relation of one name with numbers, or a list.
        evaluate: gives the value of an end; None where it has none.
    """
    found = _pieces(node, evaluate)
    return None if found is None or len(found) > MAX_PIECES else _merged(found)


def variable(node: Node) -> Node | None:
    """What a relation, or a list of relations, is about; None when it is about several things."""
    if isinstance(node, Chain):
        subject, _ = _subject(node)
        return subject.arguments[0] if isinstance(subject, Call) else subject
    if isinstance(node, Group):
        subjects = [variable(item) for item in node.items]
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
        return _intersection(_merged(known[0]), _merged(known[1]))
    return _without(_merged(known[0]), known[1])


def _intersection(left: Pieces, right: Pieces) -> Pieces:
    found = []
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
        left = _intersection(left, outside)
    return left


def _subject(chain: Chain) -> tuple[Node | None, int]:
    """The one operand that is a name, and its place; None when there is none or another."""
    named = [
        (operand, place)
        for place, operand in enumerate(chain.operands)
        if _is_variable(operand) or _is_size(operand)
    ]
    return named[0] if len(named) == 1 else (None, 0)


def _is_variable(node: Node) -> bool:
    return isinstance(node, Symbol) and not node.name.startswith("mathbb")


def _is_size(node: Node) -> bool:
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
        found = _intersection(found, ray)
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
    for piece in _intersection(sizes, [Piece(zero, 0.0, True, INFINITY, math.inf, False)]):
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
        common = _intersection(_merged(common), _merged(part))
    return common or joined


def _merged(found: Pieces) -> Pieces:
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
