"""Plus and minus: an expression with such signs as the list of its values."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from assay.math.nodes import (
    MINUS_ONE,
    Add,
    Call,
    Chain,
    Group,
    Mul,
    Node,
    PlusMinus,
    Pow,
    Quantity,
    walk,
)

MAX_SIGNS = 4


def has_signs(node: Node) -> bool:
    """Whether plus-minus stands anywhere in it."""
    return any(isinstance(part, PlusMinus) for part in walk(node))


def expanded(node: Node, *, joint: bool) -> list[Node] | None:
    """The values of an expression with plus-minus; None when there are too many signs.

    Args:
        node: an expression.
        joint: whether all signs are chosen together, so that minus-plus is the opposite sign.
    """
    count = sum(isinstance(part, PlusMinus) for part in walk(node))
    if not count:
        return [node]
    if count > MAX_SIGNS:
        return None
    both = any(isinstance(part, PlusMinus) and part.sign < 0 for part in walk(node))
    if joint or both:
        return [_chosen(node, itertools.repeat(sign)) for sign in (1, -1)]
    return [_chosen(node, iter(signs)) for signs in itertools.product((1, -1), repeat=count)]


def _chosen(node: Node, signs: Iterator[int]) -> Node:
    """The expression with its plus-minuses replaced, from left to right."""
    match node:
        case PlusMinus(operand, sign):
            chosen = next(signs) * sign
            inner = _chosen(operand, signs)
            return inner if chosen > 0 else Mul((MINUS_ONE, inner))
        case Add(terms):
            return Add(tuple(_chosen(term, signs) for term in terms))
        case Mul(factors):
            return Mul(tuple(_chosen(factor, signs) for factor in factors))
        case Pow(base, exponent):
            return Pow(_chosen(base, signs), _chosen(exponent, signs))
        case Call(name, arguments):
            return Call(name, tuple(_chosen(argument, signs) for argument in arguments))
        case Quantity(value, unit):
            return Quantity(_chosen(value, signs), unit)
        case _:
            return node


def unfolded(items: Sequence[Node]) -> list[Node]:
    """Items with those that hold plus-minus replaced by their values."""
    found: list[Node] = []
    for item in items:
        simple = not isinstance(item, Group | Chain) and has_signs(item)
        values = expanded(item, joint=False) if simple else None
        found.extend(values or [item])
    return found
