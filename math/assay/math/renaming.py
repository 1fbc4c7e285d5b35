"""Letters that are free to choose: constants of integration and indices.

An answer's letter is changed into the reference's before the two are compared. Only letters that
the reference itself shows to be arbitrary are: a summand C, numbered constants C_1 and C_2, an
index that is said to run over the integers; and only into letters that are usual in their place.
Nothing else is renamed: `x^2 + y` is no `x^2 + C`, and the t of `f(t) = 2t` is no x.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from assay.math.nodes import (
    Add,
    Call,
    Chain,
    Group,
    Node,
    Symbol,
    rebuilt,
    symbols,
)

MAX_CONSTANTS = 3
_SINGLE = frozenset({"C", "c", "K", "k", "C_1", "C_0", "c_1", "c_0", "k_1", "K_1", "C'", "D"})
_NUMBERED = re.compile(r"[Cc]_[0-9]")
_SEVERAL = re.compile(r"[CcKk]_[0-9]|[A-D]")
_INDICES = frozenset({"k", "n", "m", "l", "N", "K"})
_INTEGERS, _REALS = Symbol("mathbbZ"), Symbol("mathbbR")


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The tree with variables renamed, all at once."""

    def change(part: Node) -> Node:
        return Symbol(names.get(part.name, part.name)) if isinstance(part, Symbol) else part

    return rebuilt(node, change)


def alternatives(left: Node, right: Node) -> Iterator[tuple[Node, Node]]:
    """The two sides with the answer's free letters changed into the reference's, in each way.

    Args:
        left: the reference.
        right: the answer.
    """
    ours, our_index, our_domain = _parametric(left)
    theirs, their_index, their_domain = _parametric(right)
    if our_domain is not None or their_domain is not None:
        if None not in (our_domain, their_domain) and our_domain != their_domain:
            return
        if _INTEGERS not in (our_domain, their_domain) and _REALS not in (our_domain, their_domain):
            return
        our_index = our_index or _only_index(ours)
        their_index = their_index or _only_index(theirs)
        usual = our_index == their_index or {our_index, their_index} <= _INDICES
        if usual and our_index and our_index not in symbols(theirs) - {their_index}:
            yield ours, renamed(theirs, {their_index: our_index})
        return
    for names in _constants(left, symbols(left), symbols(right)):
        yield left, renamed(right, names)


def _parametric(node: Node) -> tuple[Node, str, Node | None]:
    """An expression behind which an index's domain is said, the index and the domain."""
    match node:
        case Group("", (value, Chain((Symbol(name), Symbol() as domain), ("in",)))) if (
            name in symbols(value)
        ):
            return value, name, domain
        case Call("builder", (value, Chain((Symbol(name), Symbol() as domain), ("in",)))) if (
            name in symbols(value) and not isinstance(value, Symbol | Chain)
        ):
            return value, name, domain
        case _:
            return node, "", None


def _only_index(node: Node) -> str:
    """The letter that must be the index where its domain is not said; empty if there is none."""
    found = symbols(node) & (_INDICES | {"C", "c"})
    return next(iter(found)) if len(found) == 1 else ""


def _constants(left: Node, used: frozenset[str], other: frozenset[str]) -> Iterator[dict[str, str]]:
    """Ways to rename the answer's constants of integration into the reference's."""
    single = _summand(left)
    free = used - other
    if single and free == {single}:
        candidates = (other - used) & _SINGLE
        if len(candidates) == 1:
            yield {next(iter(candidates)): single}
        return
    numbered = sorted(name for name in used if _NUMBERED.fullmatch(name))
    if not 2 <= len(numbered) <= MAX_CONSTANTS:
        return
    theirs = sorted(name for name in other - (used - set(numbered)) if _SEVERAL.fullmatch(name))
    if len(theirs) != len(numbered):
        return
    for order in itertools.permutations(numbered):
        yield dict(zip(theirs, order, strict=True))


def _summand(node: Node) -> str:
    """The constant of integration that an expression ends or begins with; empty if none."""
    if isinstance(node, Chain) and node.operators == ("=",):
        node = node.operands[1]
    if not isinstance(node, Add):
        return ""
    names = [term.name for term in node.terms if isinstance(term, Symbol)]
    found = [name for name in names if name in ("C", "C_1", "K", "c")]
    return found[0] if len(found) == 1 else ""


def unnumbered(left: Group, right: Group) -> tuple[Group, Group]:
    """`x_1 = 3, x_2 = -3` with the name x, where the other side writes x for all of them.

    Where both are numbered the numbers are part of the answer: x_1 and x_2 may be two unknowns.
    """
    ours, theirs = _numbered(left), _numbered(right)
    if theirs and {_name(item) for item in left.items} == {theirs}:
        right = _with_name(right, theirs)
    if ours and {_name(item) for item in right.items} == {ours}:
        left = _with_name(left, ours)
    return left, right


def _numbered(group: Group) -> str:
    """The name that is numbered from 1 in a list of equations; empty if none is."""
    names = [_name(item) for item in group.items]
    base = names[0].rpartition("_")[0]
    expected = [f"{base}_{at}" for at in range(1, len(names) + 1)]
    return base if len(names) > 1 and names == expected else ""


def _with_name(group: Group, name: str) -> Group:
    chains = (item for item in group.items if isinstance(item, Chain))
    items = tuple(Chain((Symbol(name), *item.operands[1:]), item.operators) for item in chains)
    return Group(group.opening, items, group.closing, group.alternatives)


def _name(node: Node) -> str:
    if isinstance(node, Chain) and node.operators == ("=",):
        first = node.operands[0]
        return first.name if isinstance(first, Symbol) else ""
    return ""
