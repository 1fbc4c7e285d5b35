"""Numbers with units, percent signs, degrees and currency."""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from assay.math import units
from assay.math.nodes import Constant, Mul, Node, Number, Quantity, walk
from assay.math.parts import PartMatcher
from assay.math.terms import Term, Verdict, same

_PERCENT = Number(Fraction(1, 100))
_DEGREE = Constant("degree")
_STERLING = ({"gbp", "pound"}, {"gbp", "pounds"})  # of money, not of mass
_PER: dict[str, Node] = {"percent": _PERCENT, "degree": _DEGREE}


def match(matcher: PartMatcher, left: Node, right: Node) -> Verdict:
    """Two values of which at least one has a unit."""
    if not isinstance(right, Quantity):
        assert isinstance(left, Quantity)  # noqa: S101 - the caller has checked
        return _missing(matcher, left, right)
    if not isinstance(left, Quantity):
        return _additional(matcher, left, right)
    if _same_unit(left.unit, right.unit):
        return _values(matcher, left, right)
    ours, theirs = units.parse(left.unit), units.parse(right.unit)
    if ours is None or theirs is None:
        return _wrong(left, right)
    if not units.harmless(left.unit) or not units.harmless(right.unit):
        return _wrong(left, right)
    if ours.powers == theirs.powers:
        if ours.factor == theirs.factor:
            return _values(matcher, left, right)
        scaled = (_times(left.value, ours.factor), _times(right.value, theirs.factor))
        return same(Term(scaled[0]), Term(scaled[1]), matcher.policy)
    if not ours.powers or not theirs.powers:  # "units", dozen: a count, not a dimension
        if not ours.powers:
            return _additional(matcher, _times(left.value, ours.factor), right)
        return _missing(matcher, left, _times(right.value, theirs.factor))
    if {ours.powers, theirs.powers} == {(("degree", 1),), (("rad", 1),)}:
        return same(Term(_plain(left)), Term(_plain(right)), matcher.policy)
    if not ours.known and not theirs.known and _refines(ours, theirs):
        return _values(matcher, left, right)
    return _wrong(left, right)


def _same_unit(ours: str, theirs: str) -> bool:
    """Whether two units are one word for word; pounds are also those of money."""
    one, other = "".join(ours.split()), "".join(theirs.split())
    return one == other or {one.lower(), other.lower()} in _STERLING


def _wrong(left: Quantity, right: Quantity) -> Verdict:
    return Verdict(False, "structural", f"unit {right.unit[:20]!r}, not {left.unit[:20]!r}")


def _refines(ours: units.Unit, theirs: units.Unit) -> bool:
    """Whether one unit in words says more than the other: apples, red apples."""
    one, other = set(ours.powers), set(theirs.powers)
    if not all(name.startswith("word ") for name, _ in one ^ other):
        return False
    return one <= other or other <= one


def _values(matcher: PartMatcher, left: Quantity, right: Quantity) -> Verdict:
    return matcher.match(left.value, right.value)


def _times(node: Node, factor: Fraction) -> Node:
    return node if factor == 1 else Mul((Number(factor), node))


def _plain(node: Node) -> Node:
    """The quantity as a pure number: percent as hundredths, degrees as radians."""
    if isinstance(node, Quantity):
        unit = units.parse(node.unit)
        scale = _PER.get(unit.powers[0][0]) if unit and len(unit.powers) == 1 else None
        return node.value if scale is None else Mul((node.value, scale))
    return node


def agree(ours: Sequence[Node], theirs: Sequence[Node]) -> bool:
    """Whether two equations have the same units, or one of them has none."""
    one, other = (
        {units.parse(part.unit) for part in parts if isinstance(part, Quantity)}
        for parts in (ours, theirs)
    )
    return not one or not other or one == other


def without_unit(node: Node) -> Node | None:
    """The node without a unit that may be missing; None when words behind it say more."""
    if not isinstance(node, Quantity):
        return node
    return node.value if units.harmless(node.unit) and not _sign(node) else None


def _sign(quantity: Quantity) -> str:
    """`percent`, `degree` or, for another unit, the empty string."""
    unit = units.parse(quantity.unit)
    if unit is None or len(unit.powers) != 1 or unit.powers[0][1] != 1:
        return ""
    return unit.powers[0][0] if unit.powers[0][0] in _PER else ""


def _missing(matcher: PartMatcher, left: Quantity, right: Node) -> Verdict:
    """The reference has a unit, the answer has none."""
    sign = _sign(left)
    unit = units.parse(left.unit)
    if sign:
        converted = matcher.match(_plain(left), right)
        in_radians = any(part == Constant("pi") for part in walk(right))
        if converted.equal and (sign == "percent" or in_radians):
            return converted
        if sign == "percent" and matcher.policy.percent == "strict":
            return Verdict(False, "exact", "the percent sign is missing")
    if not matcher.policy.missing_unit or not units.harmless(left.unit):
        return Verdict(False, "structural", "the unit is missing")
    if unit is not None and not unit.powers:
        return matcher.match(_times(left.value, unit.factor), right)
    return matcher.match(left.value, right)


def _additional(matcher: PartMatcher, left: Node, right: Quantity) -> Verdict:
    """The answer has a unit, the reference has none."""
    sign = _sign(right)
    if sign:
        converted = matcher.match(left, _plain(right))
        if converted.equal:
            return converted
        if sign == "percent" and matcher.policy.percent == "strict":
            return Verdict(False, "exact", "a percent sign that the reference has not")
        if any(part == Constant("pi") for part in walk(left)):
            return Verdict(False, "numeric", "degrees where radians are expected")
    if not matcher.policy.missing_unit:
        return Verdict(False, "structural", "a unit that the reference has not")
    if not units.harmless(right.unit):
        return Verdict(False, "structural", f"further words {right.unit[:30]!r}")
    unit = units.parse(right.unit)
    if unit is not None and not unit.powers:
        return matcher.match(left, _times(right.value, unit.factor))
    return matcher.match(left, right.value)
