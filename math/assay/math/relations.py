"""Equations, inequalities and memberships: against one another and against what they state."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import re

from assay.math import exact, numeric, quantities, realset, renaming
from assay.math.nodes import (
    MINUS_ONE,
    Add,
    Call,
    Chain,
    Group,
    Matrix,
    Mul,
    Node,
    Number,
    Pow,
    Quantity,
    SetOperation,
    Symbol,
    Text,
    symbols,
    walk,
)
from assay.math.parts import PartMatcher
from assay.math.policy import Policy
from assay.math.terms import Term, Verdict, difference, same

_EQUAL = frozenset({"=", "approx", "equiv"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_KNOWN_CALLS = frozenset(numeric._FUNCTIONS) | {"root", "sum", "product", "integral", "limit"}  # noqa: SLF001
_REALS = Symbol("mathbbR")
_VARIATION = 1e-3
_GEOMETRY = frozenset({"angle", "triangle", "square"})


def _no(note: str) -> Verdict:
    return Verdict(False, "structural", note)


def is_name(node: Node) -> bool:
    """Whether a node only names a quantity: x, f(x), AB, |AB|, AB/CD, (p, q), V_1:V_2."""
    match node:
        case Symbol():
            return True
        case Call("abs", (inner,)):
            return is_name(inner)
        case Call("ratio", parts):
            return all(map(is_name, parts))
        case Call(name, _):
            return name not in _KNOWN_CALLS
        case Group(_, items, _, _):
            return all(map(is_name, items))
        case Mul(factors):
            return all(map(_is_letter, factors))
        case _:
            return False


def _is_letter(node: Node) -> bool:
    """An upper-case letter, as in the segment AB or the quotient of two segments."""
    if isinstance(node, Pow):
        return _is_letter(node.base) and not isinstance(node.exponent, Symbol)
    if isinstance(node, Mul):
        return all(map(_is_letter, node.factors))
    return isinstance(node, Symbol) and (node.name[0].isupper() or node.name in _GEOMETRY)


def match(matcher: PartMatcher, left: Node, right: Node) -> Verdict:
    """Two nodes of which at least one is a relation."""
    if isinstance(left, Chain) and isinstance(right, Chain):
        return _chains(matcher, left, right)
    if isinstance(left, Chain):
        return _stated_by_reference(matcher, left, right)
    assert isinstance(right, Chain)  # noqa: S101 - the caller has checked
    return _stated_by_answer(matcher, left, right)


# A relation against what it states.


def _stated_by_reference(matcher: PartMatcher, left: Chain, right: Node) -> Verdict:
    if set(left.operators) <= _EQUAL:
        if set(left.operators) == {"approx"} and not any(map(is_name, left.operands)):
            return matcher.match(left.operands[0], right)
        value = _assigned(left)
        if value is None or not matcher.policy.strip_name:
            return _no("an equation against something else")
        return matcher.match(value, right)
    return _set_against(matcher, left, right, chain_is_ours=True)


def _assigned(chain: Chain) -> Node | None:
    """What an equation says that a name is."""
    first, last = chain.operands[0], chain.operands[-1]
    if is_name(first):
        return last
    if is_name(last) and len(chain.operands) == 2:
        return first
    return None


def _set_against(matcher: PartMatcher, left: Node, right: Node, *, chain_is_ours: bool) -> Verdict:
    """A membership or an inequality against a set."""
    chain, other = (left, right) if chain_is_ours else (right, left)
    assert isinstance(chain, Chain)  # noqa: S101 - the caller has checked
    if chain.operators == ("in",) and is_name(chain.operands[0]):
        members = chain.operands[1]
        return matcher.match(members, other) if chain_is_ours else matcher.match(other, members)
    if isinstance(other, Group | SetOperation) or other == _REALS:
        verdict = matcher.real_sets(left, right)
        if verdict is not None:
            return verdict
    return _no("a relation against something else")


def _stated_by_answer(matcher: PartMatcher, left: Node, right: Chain) -> Verdict:
    if set(right.operators) <= _EQUAL:
        if not matcher.policy.strip_name and is_name(right.operands[0]):
            return _no("a name that the reference has not")
        return _last_of_chain(matcher, left, right)
    if "to" in right.operators and set(right.operators) <= _EQUAL | {"to"}:
        return _no("a derivation, not an answer")
    return _set_against(matcher, left, right, chain_is_ours=False)


def _last_of_chain(matcher: PartMatcher, left: Node, right: Chain) -> Verdict:
    """`name = value`, or a calculation whose parts are equal, against a value."""
    operands = list(right.operands)
    if len(operands) == 2 and is_name(operands[1]) and not is_name(operands[0]):
        operands.reverse()
    if _is_unsolved(operands[0], operands[-1]):
        return _no("an equation that is left to solve")
    exact_operands = [operands[0]]
    for operator, operand in zip(right.operators, operands[1:], strict=True):
        if operator == "approx" and not is_name(exact_operands[-1]):
            break
        exact_operands.append(operand)
    for earlier in exact_operands[:-1]:
        if _contradicts(earlier, exact_operands[-1]):
            return _no("an equation that does not hold")
    return matcher.match(left, exact_operands[-1])


_UNKNOWN = re.compile(r"[a-z](?:_.{1,8})?'{0,3}")
_REALS_ONLY = frozenset("xyt")
_BINDING = frozenset({"sum", "product", "integral", "limit"})


def _is_unsolved(node: Node, value: Node) -> bool:
    """Whether `node = value` leaves its letter to be found, and states no value of the node.

    A name, a calculation that holds and an expression in several letters (`a + b = 3`) have the
    value that is said; so have functions of points and angles (`cos A`). An equation in one lower-
    case Latin letter (`2x = 3`, `x^2 = 5`), one with 0 on its right and one with words do not.
    """
    parts = list(walk(node))
    if any(isinstance(part, Text) and part.words for part in parts):
        return True
    names = {part.name for part in parts if isinstance(part, Symbol)}
    if isinstance(node, Call) and node.name == "abs" and is_name(node):
        return names <= _REALS_ONLY
    if not names or is_name(node):
        return False
    if any(isinstance(part, Call) and part.name in _BINDING for part in parts):
        return False
    if any(isinstance(part, Group | Chain | Matrix | SetOperation) for part in (*parts, value)):
        return False
    left, right = Term(node), Term(value)
    if same(left, right, Policy()).equal:
        return False
    return right.rational == 0 or (len(names) == 1 and all(map(_UNKNOWN.fullmatch, names)))


def _is_undefined(node: Node) -> bool:
    """Whether it is a value of a function that nobody defined, such as f(2)."""
    if not isinstance(node, Call) or node.name in _KNOWN_CALLS:
        return False
    return len(node.name) == 1 or node.name[1] in "_'"


def _contradicts(one: Node, other: Node) -> bool:
    """Whether two parts of a chain are numbers and differ."""
    if isinstance(one, Group | Chain | Text) or isinstance(other, Group | Chain | Text):
        return False
    if any(map(_is_undefined, walk(one))) or any(map(_is_undefined, walk(other))):
        return False
    numbers = [part.value if isinstance(part, Quantity) else part for part in (one, other)]
    left, right = Term(numbers[0]), Term(numbers[1])
    if left.names or right.names:
        return False
    first, second = left.constant, right.constant
    if first is None or second is None:
        return left.rational is not None and left.rational != right.rational
    return not numeric.close(first, second)


# Two relations.


def _chains(matcher: PartMatcher, left: Chain, right: Chain) -> Verdict:
    kinds = {_kind(left), _kind(right)}
    if kinds == {"equation"}:
        return _equations(matcher, left, right)
    if kinds <= {"order", "unequal", "member"}:
        return _orders(matcher, left, right)
    if {"similar", "cong"} & {*left.operators, *right.operators}:  # points in order
        return Verdict(left == right, "structural", "figures that correspond")
    if left.operators == right.operators:
        return matcher.in_order(left.operands, right.operands)
    return _no("different relations")


def _kind(chain: Chain) -> str:
    operators = set(chain.operators)
    if operators <= _EQUAL:
        return "equation"
    if operators <= _ORDER:
        return "order"
    if operators == {"!="}:
        return "unequal"
    return "member" if operators == {"in"} else "other"


def _equations(matcher: PartMatcher, left: Chain, right: Chain) -> Verdict:
    if _is_arithmetic(left) and _is_arithmetic(right):  # else 2 = 2 would pass for 3 - 1 = 2
        ours, theirs = (tuple(map(_ordered, chain.operands)) for chain in (left, right))
        return Verdict(theirs in (ours, ours[::-1]), "structural", "equations without unknowns")
    if len(left.operands) == len(right.operands):
        direct = matcher.in_order(left.operands, right.operands)
        if direct.equal:
            return direct
    if len(left.operands) == 2 and len(right.operands) > 2:
        right = Chain((right.operands[0], right.operands[-1]), ("=",))
    if len(left.operands) != 2 or len(right.operands) != 2:
        return _no("chains of different lengths")
    crossed = matcher.in_order(left.operands, right.operands[::-1])
    if crossed.equal:
        return crossed
    if not _are_expressions(left) or not _are_expressions(right):
        return _no("different equations")
    if _leaves_value(left, right):
        return _no("an equation that is left to solve")
    ratio = _ratio(left, right)
    if ratio is None:
        return _no("equations that are not proportional")
    return Verdict(True, "exact", "proportional equations")


def _leaves_bound(left: Chain, right: Chain) -> bool:
    """Whether the reference bounds a letter, `x > 2`, and the answer leaves it, `2x + 1 > 5`."""
    names = symbols(left)
    if len(names) != 1 or names != symbols(right):
        return False
    name = Symbol(next(iter(names)))
    apart = (name, Mul((MINUS_ONE, name)))  # -x > -1 has but the sign to turn
    return name in left.operands and not any(side in right.operands for side in apart)


def _leaves_value(left: Chain, right: Chain) -> bool:
    """Whether the reference says what a letter is, `x = 4`, and the answer leaves it, `2x = 8`.

    `x - 4 = 0` is the general form of a line, and may be meant so.
    """
    value = _assigned(left)
    if value is None or symbols(value) or len(symbols(left)) != 1:
        return False
    name = Symbol(next(iter(symbols(left))))
    if name in right.operands or name not in left.operands:
        return False
    match right:
        case Chain((Add(terms), Number(zero)), _) | Chain((Number(zero), Add(terms)), _):
            return bool(zero) or name not in terms
        case _:
            return True


def _is_arithmetic(chain: Chain) -> bool:
    """Whether an equation of plain numbers holds no unknown, so that its sides have one value."""
    return all(
        isinstance(part, Number | Add | Mul | Pow)
        for operand in chain.operands
        for part in walk(operand)
    )


def _ordered(node: Node) -> Node:
    """The same expression with its terms and factors in one order, deepest first."""
    match node:
        case Add(terms):
            return Add(tuple(sorted(map(_ordered, terms), key=repr)))
        case Mul(factors):
            return Mul(tuple(sorted(map(_ordered, factors), key=repr)))
        case Pow(base, exponent):
            return Pow(_ordered(base), _ordered(exponent))
        case Number(value):
            return Number(value)
        case _:
            return node


def _are_expressions(chain: Chain) -> bool:
    return not any(isinstance(operand, Group | Chain | Text) for operand in chain.operands)


def _without_units(chain: Chain) -> Chain | None:
    """The relation without units; None when words say more than a unit."""
    operands = [quantities.without_unit(operand) for operand in chain.operands]
    known = tuple(operand for operand in operands if operand is not None)
    return Chain(known, chain.operators) if len(known) == len(operands) else None


def _ratio(left: Chain, right: Chain) -> numeric.Value | None:
    """The constant by which the two sides' differences differ; None when there is none."""
    ours, theirs = _without_units(left), _without_units(right)
    if ours is None or theirs is None or not quantities.agree(left.operands, right.operands):
        return None
    return _proportion(Term(difference(*ours.operands)), Term(difference(*theirs.operands)))


def _proportion(left: Term, right: Term) -> numeric.Value | None:
    """The constant by which two expressions with variables differ; None when there is none."""
    if not left.names or left.names != right.names:
        return None
    residues = [(left.residue(point), right.residue(point)) for point in (0, 2, 4)]
    if all(one is not None and other is not None for one, other in residues):
        (one, other) = residues[0]
        assert one is not None  # noqa: S101 - checked in the line above
        assert other is not None  # noqa: S101 - checked in the line above
        if not one or not other or all(earlier == one for earlier, _ in residues):
            return None  # one side vanishes, or the variables cancel out
        crossed = all(
            one * (further or 0) % exact.PRIMES[0] == other * (earlier or 0) % exact.PRIMES[0]
            for earlier, further in residues[1:]
        )
        if not crossed:
            return None
        if not left.has_exponents and not right.has_exponents:
            return _sign_of_ratio(left, right)
    return _float_proportion(left, right)


def _sign_of_ratio(left: Term, right: Term) -> numeric.Value:
    """The ratio of two expressions that are known to be proportional, roughly."""
    for point in numeric.POSITIVE_POINTS + numeric.MIXED_POINTS:
        one, other = left.value(point), right.value(point)
        if one and other:
            return one / other
    return 1.0


def _float_proportion(left: Term, right: Term) -> numeric.Value | None:
    """The same in floating point, where the values vary enough to tell a ratio from a shift."""
    values: list[tuple[numeric.Value, numeric.Value]] = []
    for point in numeric.POSITIVE_POINTS + numeric.MIXED_POINTS:
        one, other = left.value(point), right.value(point)
        if one and other:
            values.append((one, other))
    if len(values) < 2:
        return None
    first, second = values[0]
    if not all(numeric.close(first * other, second * one) for one, other in values):
        return None
    varies = any(abs(one - first) > _VARIATION * abs(first) for one, _ in values)
    return first / second if varies else None


def _orders(matcher: PartMatcher, left: Chain, right: Chain) -> Verdict:
    """Inequalities: as sets of the same variable, part by part, or proportional."""
    ours, theirs = realset.variable(left), realset.variable(right)
    if ours is not None and ours == theirs:
        verdict = matcher.real_sets(left, right)
        if verdict is not None:
            return verdict
    if ours is None and theirs is not None and symbols(left) == symbols(right):
        verdict = matcher.real_sets(left, right)
        if verdict is not None and verdict.equal:
            return verdict
    left, right = _rising(left), _rising(right)
    if left.operators != right.operators:
        return _no("different relations")
    direct = matcher.in_order(left.operands, right.operands)
    if direct.equal or len(left.operands) != 2 or not _are_expressions(left):
        return direct
    if not _are_expressions(right) or left.operators == ("in",):
        return direct
    if _leaves_bound(left, right):
        return _no("an inequality that is left to solve")
    ratio = _ratio(left, right)
    if ratio is None or isinstance(ratio, complex):
        return _no("inequalities that are not proportional")
    same_way = ratio > 0 or left.operators == ("!=",)
    return Verdict(same_way, "exact", "proportional inequalities")


def _rising(chain: Chain) -> Chain:
    """The chain from the smaller to the larger side."""
    if chain.operators[0] in (">", ">=") and set(chain.operators) <= {">", ">="}:
        flipped = tuple(_FLIPPED[operator] for operator in reversed(chain.operators))
        return Chain(chain.operands[::-1], flipped)
    return chain


# Lists of relations.


def match_lists(matcher: PartMatcher, left: Group, right: Group) -> Verdict | None:
    """Bare lists of which one holds relations; None when neither does."""
    ours = any(isinstance(item, Chain) for item in left.items)
    theirs = any(isinstance(item, Chain) for item in right.items)
    if not ours and not theirs:
        return None
    unequal = all(isinstance(item, Chain) and _kind(item) != "equation" for item in left.items)
    if unequal and realset.variable(left) == realset.variable(right):
        verdict = matcher.real_sets(left, right)
        if verdict is not None:
            return verdict
    left, right = _distributed(left), _distributed(right)
    left, right = renaming.unnumbered(left, right)
    names = [name_of(item) for item in left.items]
    if ours and not theirs and len(set(names)) > 1:
        return matcher.in_order(left.items, right.items)
    if theirs and not ours:
        other_names = {name_of(item) for item in right.items}
        if len(other_names) > 1 and not _numbers_one_name(other_names):
            return matcher.in_order(left.items, right.items)
    return matcher.any_order(left.items, right.items)


def _numbers_one_name(names: set[Node | None]) -> bool:
    """Whether they are x_1, x_2, ...: values of one unknown, in no order."""
    stems = {name.name.rstrip("0123456789") if isinstance(name, Symbol) else "" for name in names}
    return len(stems) == 1 and stems.pop().endswith("_")


def _distributed(group: Group) -> Group:
    """`n = 1, 2, 3` as three equations."""
    first = group.items[0]
    rest = group.items[1:]
    if (
        isinstance(first, Chain)
        and first.operators == ("=",)
        and is_name(first.operands[0])
        and not any(isinstance(item, Chain) for item in rest)
    ):
        name = first.operands[0]
        spread = tuple(Chain((name, item), ("=",)) for item in rest)
        return Group("", (first, *spread), "", group.alternatives)
    return group


def bounds(group: Group) -> bool:
    """Whether all items of a list bound one thing, as in `x > 1, x < 3`."""
    kinds = {_kind(item) if isinstance(item, Chain) else "" for item in group.items}
    if kinds == {"unequal", ""}:
        return isinstance(group.items[0], Chain) and realset.variable(group) is not None
    return kinds <= {"order", "unequal", "member"} and realset.variable(group) is not None


def repeats_name(group: Group) -> bool:
    """Whether a list gives one name several values, as in `x = 1, x = 2`."""
    names = [name for name in map(name_of, group.items) if name is not None]
    return len(set(names)) < len(names)


def name_of(node: Node) -> Node | None:
    """What an equation names, on its left side."""
    if isinstance(node, Chain) and is_name(node.operands[0]):
        return node.operands[0]
    return None
