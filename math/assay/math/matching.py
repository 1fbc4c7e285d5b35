"""The comparison of two trees, construct by construct."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from assay.math import linear, lines, piecewise, planes, quantities, realset, relations
from assay.math.nodes import (
    Add,
    Based,
    Call,
    Chain,
    Group,
    Matrix,
    Mul,
    Node,
    Number,
    Quantity,
    SetOperation,
    Symbol,
    Text,
)
from assay.math.policy import Policy
from assay.math.reading import Reading
from assay.math.signs import expanded, has_signs, unfolded
from assay.math.terms import Term, Verdict, same
from assay.math.text import words

MAX_STEPS = 1500
_ELLIPSIS = Symbol("...")
_REALS = Symbol("mathbbR")
_FIGURES = (Symbol("angle"), Symbol("triangle"))
_NOTHING = Symbol("emptyset")
_MAY_BE_PLANES = (Add, Call, Chain)
_MAY_BE_LINES = (Call, Chain, Group)
_COMPOUND = (Group, SetOperation, Matrix)
_FORMAL = frozenset({"forall", "exists", "implies", "union", "intersection", "labelled"})
_NO = "structural"


class Exhausted(Exception):
    """The comparison took more steps than it may."""


def no(note: str) -> Verdict:
    """Unequal by structure."""
    return Verdict(False, _NO, note)


class Matcher:
    """Compares nodes of a reference with nodes of an answer, in a bounded number of steps."""

    def __init__(self, reference: Reading, answer: Reading, policy: Policy) -> None:
        self.reference = reference
        self.answer = answer
        self.policy = policy
        self._steps = 0

    def match(self, left: Node, right: Node) -> Verdict:
        """Whether a node of the answer equals a node of the reference.

        Raises:
            Exhausted: it takes more than `MAX_STEPS` steps.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Exhausted
        left, right = _bare(left), _bare(right)
        if isinstance(left, Symbol) or isinstance(right, Symbol):
            left, right = _counted(left, right), _counted(right, left)
        if isinstance(left, Text) or isinstance(right, Text):
            return self._words(left, right)
        if isinstance(left, _MAY_BE_PLANES) or isinstance(right, _MAY_BE_PLANES):
            left, right = planes.as_equation(left), planes.as_equation(right)
        if isinstance(left, _MAY_BE_LINES) or isinstance(right, _MAY_BE_LINES):
            verdict = self._lines(left, right)
            if verdict is not None:
                return verdict
            left, right = _unzipped(left, right), _unzipped(right, left)
        if isinstance(left, Chain) or isinstance(right, Chain):
            return relations.match(self, left, right)
        if isinstance(left, _COMPOUND) or isinstance(right, _COMPOUND):
            return self._compound(left, right)
        if has_signs(left) or has_signs(right):
            return self._signed(left, right)
        if isinstance(left, Quantity) or isinstance(right, Quantity):
            return quantities.match(self, left, right)
        return self.scalars(left, right)

    def equal(self, one: Node, other: Node) -> bool:
        """Whether two expressions that were computed from the two sides are equal."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Exhausted
        return same(Term(one), Term(other), self.policy).equal is True

    def term(self, node: Node, *, ours: bool) -> Term:
        """The node with its values, kept in the reference (`ours`) or the answer."""
        return (self.reference if ours else self.answer).term(node)

    def _lines(self, left: Node, right: Node) -> Verdict | None:
        """A line against a line in any form; None where the reference is none."""
        line = lines.as_line(left)
        if line is None:
            if isinstance(right, Call) and right.name == "line":
                return self.match(left, lines.spread(right))
            return None
        other = lines.as_line(right) or (right.operands[-1] if isinstance(right, Chain) else right)
        if lines.same_line(line, other, self.equal):
            return Verdict(True, _NO, "the same line")
        return no("another line") if isinstance(left, Call) else None

    def _words(self, left: Node, right: Node) -> Verdict:
        if isinstance(left, Text) and isinstance(right, Text):
            equal = words(left.words) == words(right.words)
            return Verdict(equal, "text", "the same words" if equal else "different words")
        return no("words against mathematics")

    # Expressions.

    def scalars(self, left: Node, right: Node) -> Verdict:
        """Two expressions without units."""
        if isinstance(left, Based) or isinstance(right, Based):
            return self._based(left, right)
        if isinstance(left, Call) or isinstance(right, Call):
            verdict = self._calls(left, right)
            if verdict is not None:
                return verdict
        if _is_figure(left) or _is_figure(right):
            return Verdict(left == right, "structural", "names of figures")
        return same(self.term(left, ours=True), self.term(right, ours=False), self.policy)

    def _based(self, left: Node, right: Node) -> Verdict:
        """Bases must agree; the answer may leave the reference's base out."""
        if isinstance(left, Based) and isinstance(right, Based):
            equal = (left.base, left.digits) == (right.base, right.digits)
            return Verdict(equal, "exact", "digits in a base")
        if isinstance(left, Based):
            value = self.term(right, ours=False).rational
            may_miss = self.policy.missing_base and not left.prefixed
            decimal = left.digits.replace(".", "").isdigit() and (may_miss or left.base == 10)
            equal = decimal and value == Fraction(left.digits)
            return Verdict(equal, "exact", "the base is missing")
        assert isinstance(right, Based)  # noqa: S101 - the caller has checked
        value = self.term(left, ours=True).rational
        return Verdict(right.base == 10 and value == right.value, "exact", "another base")

    def _calls(self, left: Node, right: Node) -> Verdict | None:
        """Ratios, times and pieces; None for other functions."""
        names = [node.name if isinstance(node, Call) else "" for node in (left, right)]
        if "piecewise" in names:
            return self._pieces(left, right)
        if names == ["modulo", "modulo"]:
            return self._classes(left, right)
        if "modulo" in names:
            return no("a class of remainders against something else")
        if "time" in names:
            return self._times(left, right)
        if _FORMAL.intersection(names):
            same_kind = names[0] == names[1]
            return self._formal(left, right) if same_kind else no("another kind of statement")
        if "ratio" not in names:
            return None
        if names == ["ratio", "ratio"]:
            return self._ratios(left, right)
        return None

    def _pieces(self, left: Node, right: Node) -> Verdict:
        """Functions in pieces, as functions."""
        both = [isinstance(node, Call) and node.name == "piecewise" for node in (left, right)]
        if isinstance(left, Call) and isinstance(right, Call) and all(both):
            equal = piecewise.same(left, right, self._agree, _constant)
        elif isinstance(left, Call) and both[0]:
            equal = piecewise.same_as_formula(left, right, self.equal, _constant)
        else:
            assert isinstance(right, Call)  # noqa: S101 - the caller has checked
            equal = piecewise.same_as_formula(right, left, self.equal, _constant)
        if equal is None:
            return no("a function in pieces against something else")
        return Verdict(equal, _NO, "the same pieces" if equal else "different pieces")

    def _agree(self, one: Node, other: Node) -> bool:
        return self.match(one, other).equal is True

    def _formal(self, left: Node, right: Node) -> Verdict:
        """Statements with a quantifier and unions over an index: part by part."""
        assert isinstance(left, Call)  # noqa: S101 - the caller has checked
        assert isinstance(right, Call)  # noqa: S101 - the caller has checked
        return self.in_order(left.arguments, right.arguments)

    def _classes(self, left: Node, right: Node) -> Verdict:
        """Classes of remainders: one modulus, and numbers that differ by a multiple of it."""
        assert isinstance(left, Call)  # noqa: S101 - the caller has checked
        assert isinstance(right, Call)  # noqa: S101 - the caller has checked
        direct = self.in_order(left.arguments, right.arguments)
        numbers = [self.term(part, ours=True).rational for part in left.arguments]
        others = [self.term(part, ours=False).rational for part in right.arguments]
        if direct.equal or None in numbers or None in others or numbers[1] != others[1]:
            return direct
        first, modulus, second = numbers[0], numbers[1], others[0]
        if first is None or second is None or not modulus:
            return direct
        return Verdict((first - second) % modulus == 0, "exact", "classes of remainders")

    def _times(self, left: Node, right: Node) -> Verdict:
        if not isinstance(left, Call) or not isinstance(right, Call):
            return no("a time against something else")
        if left.name != right.name:
            halves = {Text("am"), Text("pm")}
            if halves.intersection((*left.arguments, *right.arguments)):
                return no("a time of day against a ratio")  # 1:3 is no 5:15 am
            return self._ratios(left, right)
        *one, half = left.arguments
        *other, other_half = right.arguments
        length = max(len(one), len(other))
        silent = Text("") in (half, other_half)
        agree = half == other_half or silent
        equal = agree and _padded(_by_day(one, half), length) == _padded(
            _by_day(other, other_half), length
        )
        equal = equal or (agree and _padded(one, length) == _padded(other, length))
        return Verdict(equal, "exact", "times of day")

    def _ratios(self, left: Node, right: Node) -> Verdict:
        """Ratios with as many parts whose cross products agree."""
        assert isinstance(left, Call)  # noqa: S101 - the caller has checked
        assert isinstance(right, Call)  # noqa: S101 - the caller has checked
        ours = [part for part in left.arguments if not isinstance(part, Text)]
        theirs = [part for part in right.arguments if not isinstance(part, Text)]
        if len(ours) != len(theirs):
            return no("ratios with different numbers of parts")
        if _ELLIPSIS in ours or _ELLIPSIS in theirs or len(ours) > 6:
            return self.in_order(ours, theirs)
        for (one, other), (third, fourth) in itertools.combinations(
            zip(ours, theirs, strict=True), 2
        ):
            crossed = same(Term(Mul((one, fourth))), Term(Mul((third, other))), self.policy)
            if not crossed.equal:
                return crossed
        zero = self.term(ours[0], ours=True).rational == 0
        if zero or self.term(theirs[0], ours=False).rational == 0:
            return self.in_order(ours, theirs)
        return Verdict(True, "exact", "the same ratio")

    # Plus and minus.

    def _signed(self, left: Node, right: Node) -> Verdict:
        """Expressions with plus-minus as the lists of their values."""
        verdict = no("plus-minus")
        for joint in (False, True):
            ours, theirs = expanded(left, joint=joint), expanded(right, joint=joint)
            if ours is None or theirs is None:
                return Verdict(None, "limits", "too many signs")
            if len(ours) != len(theirs):
                return no("a different number of signs")
            verdict = self.any_order(ours, theirs)
            if verdict.equal:
                break
        return verdict

    # Lists, tuples, sets, matrices.

    def _compound(self, left: Node, right: Node) -> Verdict:
        left, right = linear.as_vector(left, right), linear.as_vector(right, left)
        if isinstance(left, Matrix) or isinstance(right, Matrix):
            return self._matrices(left, right)
        if isinstance(left, SetOperation) or isinstance(right, SetOperation):
            return self._sets(left, right)
        if _REALS in (left, right):
            return self._sets(left, right)
        if isinstance(left, Group) and isinstance(right, Group):
            return self._groups(left, right)
        if has_signs(left) or has_signs(right):
            return self._unfolded(left, right)
        if isinstance(left, Group):
            return self._alternatives(left, right)
        if isinstance(right, Group):
            return self._restated(left, right)
        return no("different types")

    def _unfolded(self, left: Node, right: Node) -> Verdict:
        """A list or set against an expression with plus-minus."""
        group, single = (left, right) if isinstance(left, Group) else (right, left)
        if not isinstance(group, Group) or group.opening not in ("", "{"):
            return no("different types")
        values = expanded(single, joint=False)
        if values is None:
            return Verdict(None, "limits", "too many signs")
        if len(values) > 1:
            items = unfolded(group.items)
            return self.any_order(*((items, values) if group is left else (values, items)))
        return self._alternatives(group, right) if group is left else self._restated(left, group)

    def _alternatives(self, group: Group, right: Node) -> Verdict:
        """A reference that writes one value in several ways, with "or", against one of them."""
        if not group.alternatives or not _one_value(self.reference, group.items, self.policy):
            return no("a list against a single answer")
        return self.match(group.items[0], right)

    def _restated(self, left: Node, group: Group) -> Verdict:
        """An answer that writes one value in several ways, with "or"."""
        if not group.alternatives:
            return no("a single answer against a list")
        if not _one_value(self.answer, group.items, self.policy):
            return no("alternatives that differ")
        for item in group.items:
            verdict = self.match(left, item)
            if verdict.equal:
                return verdict
        return no("no alternative is the reference")

    def _groups(self, left: Group, right: Group) -> Verdict:
        """Brackets decide what is compared how."""
        bare = left if not left.opening else right
        if bool(left.opening) != bool(right.opening) and relations.bounds(bare):
            verdict = self.real_sets(left, right)
            if verdict is not None:
                return verdict
        ours, theirs = left.opening + left.closing, right.opening + right.closing
        if (left.alternatives or right.alternatives) and ("()" in (ours, theirs)):
            return no("alternatives against a tuple")
        if {ours, theirs} == {"()", ""}:
            left, right = _coordinates(left), _coordinates(right)
            if relations.repeats_name(left) or relations.repeats_name(right):
                return no("several values of one name against a tuple")
        if ours == "{}" and theirs == "{}":
            return self._both_include(left, right)
        if "{}" in (ours, theirs):
            if "" not in (ours, theirs):
                return no("a set against a tuple or an interval")
            return self.any_order(unfolded(left.items), unfolded(right.items))
        if ours == theirs == "":
            return self._lists(_tupled(left, right), _tupled(right, left))
        if ours == theirs or (ours in ("()", "[]") and theirs == ""):
            return self.in_order(left.items, right.items)
        long = len(left.items) != 2
        if (ours == "" and (theirs == "()" or (theirs == "[]" and long))) or (
            {ours, theirs} == {"()", "[]"} and long
        ):
            return self.in_order(left.items, right.items)
        return no("different brackets")

    def _lists(self, left: Group, right: Group) -> Verdict:
        """Bare lists: in any order, unless they are sequences or name what they hold."""
        if left.alternatives and _one_value(self.reference, left.items, self.policy):
            return self._restated(left.items[0], right)
        found = relations.match_lists(self, left, right)
        if found is not None:
            return found
        if _ELLIPSIS in left.items or self.policy.ordered_lists:
            return self.in_order(left.items, right.items)
        return self.any_order(unfolded(left.items), unfolded(right.items))

    def _both_include(self, left: Group, right: Group) -> Verdict:
        """Sets: each element of one is in the other."""
        ours, theirs = unfolded(left.items), unfolded(right.items)
        if len(ours) == len(theirs):
            return self.any_order(ours, theirs)
        verdict = self._included(ours, theirs)
        return verdict if not verdict.equal else self._included(ours, theirs, backwards=True)

    def _included(
        self, ours: Sequence[Node], theirs: Sequence[Node], *, backwards: bool = False
    ) -> Verdict:
        for item in theirs if backwards else ours:
            pairs = [(other, item) if backwards else (item, other)
                     for other in (ours if backwards else theirs)]  # fmt: skip
            if not any(self.match(*pair).equal for pair in pairs):
                return no("an element is missing")
        return Verdict(True, "structural", "the same elements")

    def in_order(self, ours: Sequence[Node], theirs: Sequence[Node]) -> Verdict:
        """Item by item."""
        if len(ours) != len(theirs):
            return no(f"{len(theirs)} items where {len(ours)} are expected")
        undecided: Verdict | None = None
        for left, right in zip(ours, theirs, strict=True):
            verdict = self.match(left, right)
            if verdict.equal is False:
                return verdict
            if verdict.equal is None:
                undecided = verdict
        return undecided or Verdict(True, "structural", "item by item in order")

    def any_order(self, ours: Sequence[Node], theirs: Sequence[Node]) -> Verdict:
        """As multisets."""
        if len(ours) != len(theirs):
            return no(f"{len(theirs)} items where {len(ours)} are expected")
        left = list(theirs)
        undecided: Verdict | None = None
        for item in ours:
            for at, other in enumerate(left):
                verdict = self.match(item, other)
                if verdict.equal:
                    del left[at]
                    break
                if verdict.equal is None:
                    undecided = verdict
            else:
                return undecided or no("an item is missing")
        return Verdict(True, "structural", "item by item in any order")

    def _matrices(self, left: Node, right: Node) -> Verdict:
        """Entry by entry; a single row or column is also a tuple, nested lists are rows."""
        left, right = linear.as_identity(left, right), linear.as_identity(right, left)
        ours, theirs = linear.rows_of(left), linear.rows_of(right)
        if ours is None or theirs is None:
            return no("a matrix against something else")
        flat = isinstance(left, Group) or isinstance(right, Group)
        if flat and linear.is_vector(ours) and linear.is_vector(theirs):
            ours, theirs = [linear.flat(ours)], [linear.flat(theirs)]
        if [len(row) for row in ours] != [len(row) for row in theirs]:
            return no("matrices of different shapes")
        return self.in_order(linear.flat(ours), linear.flat(theirs))

    def _sets(self, left: Node, right: Node) -> Verdict:
        """Sets of real numbers by their pieces, others operand by operand."""
        verdict = self.real_sets(left, right)
        if verdict is not None:
            return verdict
        if isinstance(left, SetOperation) and isinstance(right, SetOperation):
            if left.name != right.name:
                return no("different operations on sets")
            if left.name == "difference":
                return self.in_order(left.operands, right.operands)
            return self.any_order(left.operands, right.operands)
        return no("a union against something else")

    def real_sets(self, left: Node, right: Node) -> Verdict | None:
        """Two sets of real numbers; None when one is no such set."""
        ours = realset.pieces(left, lambda node: self._real(node, ours=True), solves=True)
        if ours is None:
            return None
        theirs = realset.pieces(right, lambda node: self._real(node, ours=False))
        if theirs is None:
            return None
        if len(ours) != len(theirs):
            return no("a different number of intervals")
        for one, other in zip(ours, theirs, strict=True):
            closed = (one.low_closed, one.high_closed) == (other.low_closed, other.high_closed)
            if not closed:
                return no("an end that is closed on one side only")
            verdict = self.in_order((one.low, one.high), (other.low, other.high))
            if not verdict.equal:
                return verdict
        return Verdict(True, "structural", "the same intervals")

    def _real(self, node: Node, *, ours: bool) -> float | None:
        """The value of an end of an interval, kept with its reading."""
        return _constant(node, self.term(node, ours=ours))


def _unzipped(node: Node, other: Node) -> Node:
    """`(x, y) = (1, 2)` as two equations, where the other side is a list of equations."""
    match node:
        case Chain((Group(_, names), Group(_, values)), ("=",)) if (
            isinstance(other, Group)
            and not other.opening
            and len(names) == len(values)
            and all(map(relations.name_of, other.items))
        ):
            pairs = zip(names, values, strict=True)
            return Group("", tuple(Chain(pair, ("=",)) for pair in pairs), "")
        case _:
            return node


def _tupled(group: Group, other: Group) -> Group:
    """`x = 1, y = 2 or x = 3, y = 4` as tuples, where the other side is a list of tuples."""
    names = [relations.name_of(item) for item in group.items]
    size = names.index(names[0], 1) if names.count(names[0]) > 1 else 0
    tuples = all(isinstance(item, Group) and item.opening == "(" for item in other.items)
    if size < 2 or len(names) % size or None in names or not tuples or not group.alternatives:
        return group
    rows = [group.items[at : at + size] for at in range(0, len(names), size)]
    if any(names[at : at + size] != names[:size] for at in range(0, len(names), size)):
        return group
    return Group("", tuple(_coordinates(Group("", row, "")) for row in rows), "")


def _coordinates(group: Group) -> Group:
    """`y = 2, x = 1` as coordinates in their order; any other group as it is."""
    names = [relations.name_of(item) for item in group.items]
    if not all(isinstance(name, Symbol) and name.name in ("x", "y", "z") for name in names):
        return group
    ordered = sorted(zip(map(str, names), group.items, strict=True), key=lambda pair: pair[0])
    return Group(
        group.opening, tuple(item for _, item in ordered), group.closing, group.alternatives
    )


def _constant(node: Node, term: Term | None = None) -> float | None:
    """The real value of an expression without variables."""
    if isinstance(node, Text | Group | Chain | Matrix | SetOperation):
        return None
    value = (term or Term(node)).constant
    return value if isinstance(value, float) else None


_COUNTED = {("1", "2"): Symbol("mathbbZ+"), ("0", "1"): Symbol("mathbbZ+0")}


def _counted(node: Node, other: Node) -> Node:
    r"""`\{1, 2, 3, \ldots\}` as the set that it begins to list, where the other side names one."""
    if not isinstance(node, Group) or node.opening != "{" or other not in _COUNTED.values():
        return node
    return _counting(node.items) or node


def _counting(items: Sequence[Node]) -> Node | None:
    *numbers, last = items
    values = [item.value for item in numbers if isinstance(item, Number)]
    if last != _ELLIPSIS or len(values) != len(numbers) or len(values) < 2:
        return None
    if any(two - one != 1 for one, two in itertools.pairwise(values)):
        return None
    return _COUNTED.get((str(values[0]), str(values[1])))


def _bare(node: Node) -> Node:
    """A group of one item that is no set of variables as that item."""
    while isinstance(node, Group) and len(node.items) == 1 and node.items[0] != _NOTHING:
        node = node.items[0]
    match node:
        case Call("builder", (Symbol() as name, condition)) if realset.variable(condition) == name:
            return condition  # the set of all x with x > 1, and x > 1
        case Call(
            "builder", (Chain((Symbol() as name, Symbol("mathbbR")), ("in",)), condition)
        ) if realset.variable(condition) == name:
            return condition
        case Call("builder", (Chain((name, Symbol("mathbbZ")), ("in",)), condition)) if (
            realset.variable(condition) == name
        ):
            return realset.integers(condition, _constant) or node
        case Call("ratio", (Symbol(name), Group("(") as point)) if name[0].isupper():
            return Chain((Symbol(name), point), ("=",))  # P: (1, 2)
        case Chain((Call(_, (Symbol(name),)) as function, Call("line", parts) as line), ("=",)) if (
            parts[2] == Symbol(name)
        ):
            return Chain((function, lines.spread(line)), ("=",))  # r(t), with its own t
        case Chain((Symbol(name), *rest), operators) if name.endswith("_1,2"):
            return Chain((Symbol(name.removesuffix("_1,2")), *rest), operators)
        case _:
            return node


def _is_figure(node: Node) -> bool:
    """Whether it is an angle or a triangle named by its points, whose order matters."""
    return isinstance(node, Mul) and node.factors[0] in _FIGURES


def _one_value(reading: Reading, items: Sequence[Node], policy: Policy) -> bool:
    """Whether the alternatives that a reference lists are all the same."""
    own = Matcher(reading, reading, policy)
    return all(own.match(items[0], item).equal for item in items[1:])


def _by_day(parts: Sequence[Node], half: Node) -> list[Node]:
    """The parts of a time of day with its hour counted to 24."""
    hour = parts[0]
    if half != Text("pm") or not isinstance(hour, Number) or hour.value >= 12:
        return list(parts)
    return [Number(hour.value + 12), *parts[1:]]


def _padded(parts: Sequence[Node], length: int) -> list[object]:
    values: list[object] = [getattr(part, "value", part) for part in parts]
    return values + [0] * (length - len(values))
