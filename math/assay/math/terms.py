"""Two expressions compared: by structure, exactly, modulo a prime, then at sample points."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import NamedTuple

from assay.math import exact, numeric, precise
from assay.math.nodes import (
    MINUS_ONE,
    Add,
    Call,
    Mul,
    Node,
    Number,
    Pow,
    Symbol,
    walk,
)
from assay.math.policy import Policy

_HARD = frozenset({"sum", "product", "integral", "limit", "builder", "det", "dim"})
_ROUNDING = frozenset({"floor", "ceil", "mod", "gcd", "lcm"})
_FOLDING = frozenset({"abs", "min", "max", "sgn"})
_LOGS = frozenset({"log", "ln", "lg"})
_FAR = (37.3, 1_234.5, 510_000.7)
_WHOLE = frozenset("jklmnpqrstN")
_MAX_SIGNED = 6


class Verdict(NamedTuple):
    """Equal, unequal or undecided; the tier that decided; why."""

    equal: bool | None
    tier: str
    note: str


class Term:
    """An expression with its values, each computed when first asked for."""

    __slots__ = ("_hard", "_names", "_rational", "_residues", "_values", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self._rational: Fraction | bool | None = False
        self._residues: dict[int, int | None] = {}
        self._values: dict[int, numeric.Value | None] = {}
        self._names: frozenset[str] | None = None
        self._hard: bool | None = None

    @property
    def rational(self) -> Fraction | None:
        """The exact rational value, if it has one."""
        if self._rational is False:
            try:
                self._rational = exact.rational(self.node)
            except (exact.Unsupported, ArithmeticError, ValueError):
                self._rational = None
        return self._rational  # type: ignore[return-value]  # bool only before the first look

    @property
    def names(self) -> frozenset[str]:
        """The variables in it."""
        if self._names is None:
            self._names = frozenset(
                part.name for part in walk(self.node) if isinstance(part, Symbol)
            )
        return self._names

    @property
    def hard(self) -> bool:
        """Whether it holds sums, integrals or limits, about which only equality is certain."""
        if self._hard is None:
            self._hard = any(
                isinstance(part, Call) and part.name in _HARD for part in walk(self.node)
            )
        return self._hard

    @property
    def rounds(self) -> bool:
        """Whether it holds a function that is constant over stretches."""
        return any(isinstance(part, Call) and part.name in _ROUNDING for part in walk(self.node))

    @property
    def has_exponents(self) -> bool:
        """Whether variables that are no whole numbers by their name stand in exponents."""
        return any(
            isinstance(part, Pow)
            and not isinstance(part.exponent, Number)
            and any(
                isinstance(inner, Symbol) and inner.name[0] not in _WHOLE
                for inner in walk(part.exponent)
            )
            for part in walk(self.node)
        )

    def residue(self, point: int) -> int | None:
        """The value modulo a prime; None where it has none."""
        if point not in self._residues:
            try:
                self._residues[point] = exact.residue(self.node, point)
            except (exact.Unsupported, ArithmeticError, ValueError):
                self._residues[point] = None
        return self._residues[point]

    def value(self, point: int) -> numeric.Value | None:
        """The value at a sample point; None where it is invalid."""
        if point not in self._values:
            try:
                self._values[point] = numeric.evaluate(self.node, point)
            except numeric.Invalid:
                self._values[point] = None
        return self._values[point]

    @property
    def constant(self) -> numeric.Value | None:
        """The value of an expression without variables."""
        return None if self.names else self.value(0)


def same(reference: Term, answer: Term, policy: Policy) -> Verdict:
    """Whether two expressions are equal."""
    left, right = reference.rational, answer.rational
    if left is not None and right is not None:
        return _same_rational(reference, answer, left, right, policy)
    if reference.node == answer.node:
        return Verdict(True, "structural", "the same expression")
    modular = _same_residue(reference, answer)
    if modular:
        return _confirmed(reference, answer)
    if modular is None:
        verdict = _same_values(reference, answer)
    else:
        verdict = Verdict(False, "exact", "different modulo primes of 61 bits")
    if verdict.equal is False and not reference.names and not answer.names:
        if approximates(reference, answer, policy):
            return Verdict(True, "numeric", "a decimal that rounds the exact value")
        if _within(reference, answer, policy):
            return Verdict(True, "numeric", "within the tolerance that was asked for")
    return verdict


def _confirmed(reference: Term, answer: Term) -> Verdict:
    """Identical modulo primes; where variables stand in exponents, at real points as well."""
    if reference.has_exponents or answer.has_exponents:
        verdict = _same_values(reference, answer)
        if verdict.equal is False:
            return verdict
    return Verdict(True, "exact", "identical modulo primes of 61 bits")


def _same_rational(
    reference: Term, answer: Term, left: Fraction, right: Fraction, policy: Policy
) -> Verdict:
    if left == right:
        if not policy.allow_rational_unreduced and not _reduced(answer.node):
            return Verdict(False, "exact", "the fraction is not in lowest terms")
        return Verdict(True, "exact", "the same rational number")
    if approximates(reference, answer, policy):
        return Verdict(True, "numeric", "a decimal that rounds the exact value")
    if _within(reference, answer, policy):
        return Verdict(True, "numeric", "within the tolerance that was asked for")
    return Verdict(False, "exact", "different rational numbers")


def _reduced(node: Node) -> bool:
    match node:
        case Mul((Number(above, 0), Pow(Number(below, 0), _))):
            return Fraction(above, below).denominator == below
        case Mul((_, *rest)) if len(rest) > 1:
            return _reduced(Mul(tuple(rest)))
        case _:
            return True


def _within(reference: Term, answer: Term, policy: Policy) -> bool:
    """The knobs: a relative tolerance, a number of decimals."""
    if not policy.relative_tolerance and policy.decimals is None:
        return False
    left = reference.constant if reference.rational is None else reference.rational
    right = answer.constant if answer.rational is None else answer.rational
    if left is None or right is None:
        return False
    try:
        if _apart(left, right) <= policy.relative_tolerance * abs(complex(left)):
            return True
        if policy.decimals is None or isinstance(left, complex) or isinstance(right, complex):
            return False
        return _rounded(left, policy.decimals) == _rounded(right, policy.decimals)
    except (OverflowError, ValueError):
        return False


def _apart(left: numeric.Value | Fraction, right: numeric.Value | Fraction) -> float:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return float(abs(left - right))
    return abs(complex(left) - complex(right))


def _rounded(value: Fraction | float, decimals: int) -> int:
    """The value in units of its last kept decimal, halves away from zero."""
    scaled = Fraction(value) * Fraction(10) ** max(-300, min(decimals, 300))
    size = int(abs(scaled) + Fraction(1, 2))
    return size if scaled >= 0 else -size


def _same_residue(reference: Term, answer: Term) -> bool | None:
    for point in range(exact.POINTS):
        left = reference.residue(point)
        if left is None:
            return None
        right = answer.residue(point)
        if right is None:
            return None
        if left != right:
            return False
    return True


def _same_values(reference: Term, answer: Term) -> Verdict:
    """Agreement at sample points; undecided with fewer than two valid ones."""
    if not reference.names and not answer.names:
        return _same_constant(reference, answer)
    valid = _agreement(reference, answer, _points(reference, answer))
    if valid is not None and valid < 2:
        further = _agreement(reference, answer, numeric.COMPLEX_POINTS)
        valid = None if further is None else valid + further
    if valid is None:
        return _unequal(reference, answer, "different at a sample point")
    if valid < 2:
        return Verdict(None, "numeric", "too few points at which both have a value")
    for differ, note in (
        (_loses_domain, "without a value where the reference has one"),
        (_differ_far, "different at a point that is far away"),
        (_differ_by_sign, "different where one variable is negative"),
    ):
        if differ(reference, answer):
            return _unequal(reference, answer, note)
    return Verdict(True, "numeric", f"equal at {valid} sample points")


def _loses_domain(reference: Term, answer: Term) -> bool:
    """Whether a logarithm of the answer has no value where the reference, a real one, has one.

    `2 ln x` is `ln(x^2)` for positive x only. One variable at a time is negative: that both x and y
    are, for which ln(x/y) has a value and ln x - ln y has none, is not meant.
    """
    names = reference.names | answer.names
    logs = (isinstance(part, Call) and part.name in _LOGS for part in walk(answer.node))
    if not any(logs) or len(names) > _MAX_SIGNED:
        return False
    at = numeric.MIXED_POINTS[0]
    for name in names:
        point: dict[str, numeric.Value] = {one: numeric.sample(one, 0) for one in names}
        point[name] = -point[name]
        if _real(reference.node, at, point) and not _real(answer.node, at, point):
            return True
    return False


def _real(node: Node, at: int, point: dict[str, numeric.Value]) -> bool:
    try:
        numeric.evaluate(node, at, point)
    except numeric.Invalid:
        return False
    return True


def _folds(node: Node) -> frozenset[str]:
    """Which of its parts behave in one way on one side of a value and in another on the other."""
    found = {part.name for part in walk(node) if isinstance(part, Call)}
    found &= _FOLDING | _ROUNDING | {"root"}
    exponents = [part.exponent for part in walk(node) if isinstance(part, Pow)]
    if any(isinstance(one, Number) and one.value.denominator % 2 == 0 for one in exponents):
        found.add("root")
    return frozenset(found)


def _differ_far(reference: Term, answer: Term) -> bool:
    """Whether two expressions differ far from the usual points, where something in them folds.

    Near 1 `|x - 100|` is `100 - x`, and `min(x, y)` is x wherever x is smaller: each variable is
    great in turn, with both signs. Roots are looked at less far away, where differences of them
    still have digits, and what rounds up to where rounding is exact.
    """
    folds = _folds(reference.node) | _folds(answer.node)
    names = sorted(reference.names | answer.names)
    if not folds or len(names) > _MAX_SIGNED:
        return False
    sizes = _FAR[:1] if "root" in folds else _FAR[:2] if folds & _ROUNDING else _FAR
    whole = all(name[0] in _WHOLE for name in names)
    at = numeric.MIXED_POINTS[0]
    for size, sign, name in itertools.product(sizes, (1.0, -1.0), names):
        if whole and sign < 0:
            continue
        point: dict[str, numeric.Value] = {
            one: sign * (1 + place) if whole else sign * numeric.sample(one, 0)
            for place, one in enumerate(names)
        }
        point[name] = float(int(size)) if whole else sign * size
        try:
            left = numeric.evaluate(reference.node, at, point)
            right = numeric.evaluate(answer.node, at, point)
        except numeric.Invalid:
            continue
        if not numeric.close(left, right):
            return True
    return False


def _differ_by_sign(reference: Term, answer: Term) -> bool:
    """Whether two expressions differ where one variable is negative and the others are not.

    The mixed points show it but where a root or logarithm of another variable left them out:
    `x sqrt(y)` and `sqrt(x^2 y)`.
    """
    names = sorted(reference.names | answer.names)
    if not 2 <= len(names) <= _MAX_SIGNED:
        return False
    if all(reference.value(at) is not None for at in numeric.MIXED_POINTS):
        return False
    at = numeric.MIXED_POINTS[0]
    for name in names:
        point: dict[str, numeric.Value] = {one: numeric.sample(one, 0) for one in names}
        point[name] = -point[name]
        try:
            left = numeric.evaluate(reference.node, at, point)
            right = numeric.evaluate(answer.node, at, point)
        except numeric.Invalid:
            continue
        if not numeric.close(left, right):
            return True
    return False


def _points(reference: Term, answer: Term) -> tuple[int, ...]:
    """Where two expressions are evaluated first."""
    usual = numeric.POSITIVE_POINTS + numeric.MIXED_POINTS
    if not (reference.rounds or answer.rounds):
        return usual
    whole = all(name[0] in _WHOLE for name in reference.names | answer.names)
    return numeric.WHOLE_POINTS if whole else usual + numeric.WHOLE_POINTS + numeric.LARGE_POINTS


def _agreement(reference: Term, answer: Term, points: tuple[int, ...]) -> int | None:
    """At how many points both have a value and agree; None when they differ at one."""
    valid = 0
    for point in points:
        left = reference.value(point)
        if left is None:
            continue
        right = answer.value(point)
        if right is None:
            continue
        if not numeric.close(left, right):
            return None
        valid += 1
    return valid


def _same_constant(reference: Term, answer: Term) -> Verdict:
    left, right = reference.value(0), answer.value(0)
    if left is not None and right is None and answer.rational is None:
        return Verdict(False, "limits", "the answer has no value that can be computed")
    if left is None or right is None:
        return Verdict(None, "numeric", "a value that floating point cannot hold")
    if numeric.close(left, right):
        precisely = precise.agree(reference.node, answer.node)
        if precisely is False:
            return Verdict(False, "exact", "different in sixty digits")
        return Verdict(True, "numeric", "equal in floating point")
    return _unequal(reference, answer, "different in floating point")


def _unequal(reference: Term, answer: Term, note: str) -> Verdict:
    if reference.hard or answer.hard:
        return Verdict(None, "numeric", "holds a sum, an integral or a limit")
    return Verdict(False, "numeric", note)


def decimal_of(node: Node) -> tuple[Fraction, Fraction, int] | None:
    """Of a decimal literal: value, one unit of its last digit, and number of significant digits."""
    match node:
        case Number(value, digits, decimals, False) if digits:
            return value, Fraction(10) ** -decimals, digits
        case Mul((Number() as sign, *rest)) if sign == MINUS_ONE:
            inner = decimal_of(rest[0] if len(rest) == 1 else Mul(tuple(rest)))
            return inner and (-inner[0], inner[1], inner[2])
        case Mul((Number(value, digits, decimals, False), Pow(Number(ten, 0), exponent))) if (
            digits and ten == 10
        ):
            try:
                power = exact.rational(exponent)
            except exact.Unsupported:
                return None
            if power.denominator != 1 or abs(power) > 400:
                return None
            scale = Fraction(10) ** power.numerator
            return value * scale, Fraction(10) ** -decimals * scale, digits
        case _:
            return None


def approximates(reference: Term, answer: Term, policy: Policy) -> bool:
    """Whether one side is a long decimal that rounds or truncates the other's endless expansion."""
    if not policy.approximation_digits:
        return False
    for decimal, other in ((answer, reference), (reference, answer)):
        written = decimal_of(decimal.node)
        if written is None or written[2] < policy.approximation_digits:
            continue
        if decimal_of(other.node) is not None or _terminates(other.rational):
            continue
        value = other.constant if other.rational is None else other.rational
        if value is None or isinstance(value, complex) or value in (float("inf"), -float("inf")):
            continue
        if abs(Fraction(value) - written[0]) < written[1] + abs(Fraction(value)) / 10**15:
            return True
    return False


def _terminates(value: Fraction | None) -> bool:
    if value is None:
        return False
    rest = value.denominator
    if rest.bit_length() > 400:
        return False
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def difference(left: Node, right: Node) -> Node:
    """Left minus right."""
    return Add((left, Mul((MINUS_ONE, right))))
