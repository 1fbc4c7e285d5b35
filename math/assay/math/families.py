r"""Families of solutions over the integers: `\frac\pi4 + k\pi, k \in \mathbb{Z}`.

Two of them are one set where every member of each is one of the other, whatever the letter, the
member that is written for k = 0, and how many families it is split into. A family is a number, or
the ends of an interval, that grows by one period; what is compared are the members within a common
multiple of all periods. Each step is shown by comparing expressions (`equal`), floating point only
says which pair to try. An index of the natural numbers has a first member: nothing is shifted then,
and such families are left to a comparison with another letter.

Bounded: at most `MAX_MEMBERS` members within the common period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from assay.math.linear import affine, number, product, rational, total
from assay.math.nodes import (
    TWO,
    Call,
    Chain,
    Constant,
    Group,
    Node,
    PlusMinus,
    Pow,
    Quantity,
    Symbol,
    Text,
    rebuilt,
    symbols,
    walk,
)
from assay.math.terms import Term

MAX_MEMBERS = 24
_INDICES = frozenset({"k", "n", "m", "l", "N", "K", "j"})
_INTEGERS = frozenset({"mathbbZ", "Z"})
_NAMED = frozenset({"mathbbZ", "mathbbN", "mathbbR", "mathbbQ", "Z", "N", "R", "Q"})

Equal = Callable[[Node, Node], bool]
Expand = Callable[[Node], list[Node] | None]


class Family(NamedTuple):
    """Members `base + k * period` for all integers k: a number, or the two ends of an interval."""

    brackets: str
    base: tuple[Node, ...]
    period: Node


class _Members(NamedTuple):
    items: list[Node]
    letter: str
    over_integers: bool
    names: frozenset[Node]


def _conditions(node: Node) -> tuple[Node, ...]:
    match node:
        case Group("", items):
            return items
        case Call("builder", (_, Group("", items))):
            return items
        case Call("builder", (_, condition)):
            return (condition,)
        case _:
            return ()


def _says(chain: Chain) -> bool:
    match chain:
        case Chain((Symbol() | Group(), Symbol(domain)), ("in",)):
            return domain in _INTEGERS
        case _:
            return False


def same(left: Node, right: Node, equal: Equal, expand: Expand) -> bool | None:
    """Whether two nodes are one family of solutions; None where they cannot be compared so.

    Args:
        left: the reference.
        right: the answer.
        equal: whether two expressions are equal.
        expand: the values of an expression with plus-minus; None for too many.
    """
    ours, theirs = _members(left), _members(right)
    if ours is None or theirs is None or not (ours.over_integers or theirs.over_integers):
        return None
    if ours.names and theirs.names and ours.names != theirs.names:
        return None
    one, other = _families(ours, expand), _families(theirs, expand)
    if not one or not other:
        return None
    return _one_set(one, other, equal)


def _members(node: Node) -> _Members | None:
    """The expressions of a family and its index; None where its domain is not the integers."""
    items: list[Node]
    conditions: list[Chain]
    match node:
        case Call("builder", (value, _)):
            conditions = [part for part in _conditions(node) if isinstance(part, Chain)]
            items = [value]
            if isinstance(value, Symbol):  # {x | x = k pi, k in Z}
                defined = [part for part in conditions if part.operands[0] == value]
                conditions = [part for part in conditions if part not in defined]
                items = list(defined)
        case Group("", parts):
            conditions = [part for part in parts if isinstance(part, Chain) and _is_domain(part)]
            items = [part for part in parts if part not in conditions]
        case _:
            items, conditions = [node], []
    names = {part.operands[0] for part in conditions}
    if len(names) > 1 or not all(map(_says, conditions)):
        return None
    values = [_value(item) for item in items]
    known = [value for value in values if value is not None]
    if not known or len(known) != len(values):
        return None
    name = next(iter(names), None)
    index = name.name if isinstance(name, Symbol) else _only_index(known)
    named = frozenset(item.operands[0] for item in items if isinstance(item, Chain))
    return _Members(known, index, bool(conditions), named) if index else None


def _is_domain(chain: Chain) -> bool:
    match chain:
        case Chain((Symbol(), Symbol(domain)), ("in",)):
            return domain in _NAMED
        case _:
            return False


def _value(item: Node) -> Node | None:
    """What an item says of a name, if it names one; None for other relations."""
    match item:
        case Chain((Symbol(), value), ("=" | "in",)):
            return value
        case Chain() | Text():
            return None
        case _:
            return item


def _only_index(items: list[Node]) -> str:
    found = frozenset[str]().union(*map(symbols, items))
    return next(iter(found)) if len(found) == 1 and found <= _INDICES else ""


def _families(members: _Members, expand: Expand) -> list[Family] | None:
    found = []
    for item in members.items:
        values = expand(item) if any(isinstance(part, PlusMinus) for part in walk(item)) else [item]
        for value in _by_parity(values or [Text("")], members.letter):
            family = _family(value, members.letter)
            if family is None:
                return None
            found.append(family)
    return found if len(found) <= MAX_MEMBERS else None


def _by_parity(values: list[Node], index: str) -> list[Node]:
    """`(-1)^k` by the signs that it has for even and for odd indices."""
    if not any(_alternates(part, index) for value in values for part in walk(value)):
        return values
    return [
        rebuilt(value, lambda part, odd=odd: _at_parity(part, index, odd))  # type: ignore[misc]
        for value in values
        for odd in (0, 1)
    ]


def _alternates(node: Node, index: str) -> bool:
    return isinstance(node, Pow) and rational(node.base) == -1 and index in symbols(node.exponent)


def _at_parity(node: Node, index: str, odd: int) -> Node:
    """A node for the index 2 k + odd; `rebuilt` has changed what stands in it before."""
    if node == Symbol(index):
        return total((product((TWO, node)), number(Fraction(odd))))
    if not _alternates(node, index) or not isinstance(node, Pow):
        return node
    slope, rest = affine(node.exponent, index) or (node, node)
    turns, start = rational(slope), rational(rest)
    whole = turns is not None and start is not None and turns % 2 == 0 and start.denominator == 1
    return number(Fraction((-1) ** int(start % 2))) if whole and start is not None else node


def _family(value: Node, index: str) -> Family | None:
    brackets = ""
    ends: tuple[Node, ...] = (value,)
    if isinstance(value, Group):
        if value.opening not in ("(", "[") or len(value.items) != 2:
            return None
        brackets, ends = value.opening + value.closing, value.items
    parts = [affine(_plain(end), index) for end in ends]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    period = known[0][0]
    if any(symbols(node) for pair in known for node in pair) or not _size(period):
        return None
    if any(slope != period and _size(slope) != _size(period) for slope, _ in known):
        return None
    return Family(brackets, tuple(base for _, base in known), period)


def _plain(node: Node) -> Node:
    """Degrees as a factor, as they stand within sums."""
    if isinstance(node, Quantity) and node.unit == "degree":
        return product((node.value, Constant("degree")))
    return node


def _size(node: Node) -> float:
    """The value of a constant real node; 0 where it has none."""
    value = Term(node).constant
    return value if isinstance(value, float) and math.isfinite(value) else 0.0


def _one_set(ours: list[Family], theirs: list[Family], equal: Equal) -> bool | None:
    """Whether each member of one is one of the other, within a common multiple of the periods."""
    first = ours[0].period
    ratios = []
    for family in (*ours, *theirs):
        ratio = Fraction(abs(_size(family.period) / _size(first))).limit_denominator(MAX_MEMBERS)
        size = product((number(ratio), first))
        if not ratio or not (equal(family.period, size) or equal(_minus(family.period), size)):
            return False
        ratios.append(ratio)
    common = Fraction(
        math.lcm(*(ratio.numerator for ratio in ratios)),
        math.gcd(*(ratio.denominator for ratio in ratios)),
    )
    turns = [common / ratio for ratio in ratios]
    if sum(turns) > 2 * MAX_MEMBERS or any(turn.denominator != 1 for turn in turns):
        return None
    period = product((number(common), first))
    one = [_shifted(f, k) for f, n in zip(ours, turns, strict=False) for k in range(int(n))]
    rest = turns[len(ours) :]
    other = [_shifted(f, k) for f, n in zip(theirs, rest, strict=True) for k in range(int(n))]

    def held(member: Family, by: list[Family]) -> bool:
        return any(_congruent(member, candidate, period, equal) for candidate in by)

    return all(held(member, other) for member in one) and all(held(m, one) for m in other)


def _minus(node: Node) -> Node:
    return product((number(Fraction(-1)), node))


def _shifted(family: Family, turns: int) -> Family:
    if not turns:
        return family
    step = product((number(Fraction(turns)), family.period))
    return family._replace(base=tuple(total((end, step)) for end in family.base))


def _congruent(one: Family, other: Family, period: Node, equal: Equal) -> bool:
    """Whether two members differ by whole periods."""
    if one.brackets != other.brackets:
        return False
    apart = (_size(one.base[0]) - _size(other.base[0])) / _size(period)
    turns = round(apart)
    if abs(apart - turns) > 1e-9:
        return False
    step = product((number(Fraction(turns)), period))
    return all(
        equal(end, total((start, step))) for end, start in zip(one.base, other.base, strict=True)
    )
