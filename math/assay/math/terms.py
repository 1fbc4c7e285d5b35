"""Two expressions compared: by structure, exactly, modulo a prime, then at sample points."""

from __future__ import annotations

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
from assay.math.sampling import WHOLE_NAMES, bends, far_apart, leaves_reals, one_negative

_HARD = frozenset({"sum", "product", "integral", "limit", "builder", "det", "dim"})
_ROUNDING = frozenset({"floor", "ceil", "mod", "gcd", "lcm"})
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
    def bends(self) -> bool:
        """Whether it may change its formula somewhere: absolute values, minima, even roots."""
        return bends(self.node)

    @property
    def has_exponents(self) -> bool:
        """Whether variables that are no whole numbers by their name stand in exponents."""
        return any(
            isinstance(part, Pow)
            and not isinstance(part.exponent, Number)
            and any(
                isinstance(inner, Symbol) and inner.name[0] not in WHOLE_NAMES
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
    return _elsewhere(reference, answer) or Verdict(
        True, "numeric", f"equal at {valid} sample points"
    )


def _elsewhere(reference: Term, answer: Term) -> Verdict | None:
    """Why two expressions that agree near zero are not the same; None if nothing says so."""
    if not _agree_by_sign(reference, answer):
        return _unequal(reference, answer, "different where one variable is negative")
    if not _keeps_domain(reference, answer):
        return _unequal(reference, answer, "not real where the reference is")
    if not (reference.bends or answer.bends):
        return None
    apart = far_apart(reference.node, answer.node, reference.names | answer.names)
    if apart is None:
        return Verdict(None, "numeric", "too large to be tried far from zero")
    return _unequal(reference, answer, "different far from zero") if apart else None


def _agree_by_sign(reference: Term, answer: Term) -> bool:
    """Whether two expressions agree where one variable is negative and the others are not.

    The mixed points show it but where a root or logarithm of another variable left them out:
    `x sqrt(y)` and `sqrt(x^2 y)`.
    """
    names = sorted(reference.names | answer.names)
    if not 2 <= len(names) <= _MAX_SIGNED:
        return True
    if all(reference.value(at) is not None for at in numeric.MIXED_POINTS):
        return True
    at = numeric.MIXED_POINTS[0]
    for point in one_negative(names):
        try:
            left = numeric.evaluate(reference.node, at, point)
            right = numeric.evaluate(answer.node, at, point)
        except numeric.Invalid:
            continue
        if not numeric.close(left, right):
            return False
    return True


def _keeps_domain(reference: Term, answer: Term) -> bool:
    """Whether the answer is real where the reference is and one variable is negative.

    `2 ln x` is no answer to `ln(x^2)`, whose reader may put in a negative x.
    """
    names = sorted(reference.names | answer.names)
    if len(names) > _MAX_SIGNED or reference.rounds or answer.rounds:
        return True
    return not leaves_reals(reference.node, answer.node, names)


def _points(reference: Term, answer: Term) -> tuple[int, ...]:
    """Where two expressions are evaluated first."""
    usual = numeric.POSITIVE_POINTS + numeric.MIXED_POINTS
    if not (reference.rounds or answer.rounds):
        return usual
    whole = all(name[0] in WHOLE_NAMES for name in reference.names | answer.names)
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
