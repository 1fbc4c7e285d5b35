"""Real constants to seventy digits, where floating point says that two of them agree.

`10^10 sqrt(2)` and `10^10 sqrt(2) + 1` agree to ten digits. Whatever is made of numbers, pi, e,
roots, powers, exponentials, logarithms, sines, cosines and tangents is computed again in decimal
arithmetic; inverse functions are not, and for them the agreement in floating point stands.
"""

# ruff: noqa: C901, PLR0911, PLR0912 - one case, one return
from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from assay.math.nodes import (
    Add,
    Call,
    Constant,
    Mul,
    Node,
    Number,
    Pow,
)

_DIGITS = 70
_AGREEMENT = Decimal(10) ** -60
_LARGEST_ANGLE = 10**6
_CONTEXT = decimal.Context(prec=_DIGITS, Emin=-(10**6), Emax=10**6)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620900")
_SMALLEST_TERM = Decimal(10) ** -(_DIGITS + 5)
_MAX_EXPONENT = 10**5


class Unknown(Exception):
    """No such value here."""


def agree(left: Node, right: Node) -> bool | None:
    """Whether two real constants agree to sixty digits; None where that cannot be said.

    The difference is measured against the largest number that was met on the way.
    """
    try:
        with decimal.localcontext(_CONTEXT):
            calculator = _Calculator()
            difference = abs(calculator.value(left) - calculator.value(right))
            return difference <= _AGREEMENT * calculator.largest
    except (Unknown, decimal.DecimalException, ArithmeticError, ValueError):
        return None


class _Calculator:
    def __init__(self) -> None:
        self.largest = Decimal(0)

    def value(self, node: Node) -> Decimal:
        result = self._value(node)
        self.largest = max(self.largest, abs(result))
        return result

    def _value(self, node: Node) -> Decimal:
        match node:
            case Number(value):
                return _decimal(value)
            case Constant("pi"):
                return +_PI
            case Constant("e"):
                return Decimal(1).exp()
            case Constant("percent"):
                return Decimal("0.01")
            case Constant("degree"):
                return _PI / 180
            case Add(terms):
                return self._sum(terms)
            case Mul(factors):
                result = Decimal(1)
                for factor in factors:
                    result *= self._value(factor)
                return result
            case Pow(base, exponent):
                return self._power(self._value(base), self._value(exponent))
            case Call("root", (radicand, Number(index))) if index.denominator == 1:
                return self._root(self._value(radicand), index.numerator)
            case Call("log", (argument,)):
                return self._log(argument)
            case Call("log", (argument, base)):
                return self._log(argument) / self._log(base)
            case Call("sin" | "cos" | "tan", (argument,)):
                return self._trigonometric(node.name, self.value(argument))
            case Call("abs", (argument,)):
                return abs(self._value(argument))
            case _:
                raise Unknown

    def _sum(self, terms: tuple[Node, ...]) -> Decimal:
        total = Decimal(0)
        for term in terms:
            value = self._value(term)
            self.largest = max(self.largest, abs(value))
            total += value
        return total

    def _log(self, argument: Node) -> Decimal:
        value = self._value(argument)
        if value <= 0:
            raise Unknown
        return value.ln()

    def _trigonometric(self, name: str, angle: Decimal) -> Decimal:
        """A sine, cosine or tangent by its series."""
        if abs(angle) > _LARGEST_ANGLE:
            raise Unknown
        if name == "tan":
            below = self._trigonometric("cos", angle)
            if abs(below) < _AGREEMENT:
                raise Unknown
            return self._trigonometric("sin", angle) / below
        reduced = angle - 2 * _PI * (angle / (2 * _PI)).to_integral_value()
        term, at = (reduced, 1) if name == "sin" else (Decimal(1), 0)
        total = Decimal(0)
        while abs(term) > _SMALLEST_TERM:
            total += term
            term *= -reduced * reduced / ((at + 1) * (at + 2))
            at += 2
        return total

    def _power(self, base: Decimal, exponent: Decimal) -> Decimal:
        if abs(exponent) > _MAX_EXPONENT:
            raise Unknown
        if base < 0 and exponent != exponent.to_integral_value():
            raise Unknown
        return base**exponent

    def _root(self, radicand: Decimal, index: int) -> Decimal:
        if not 2 <= index <= 1000:
            raise Unknown
        if radicand < 0:
            if index % 2 == 0:
                raise Unknown
            return -self._root(-radicand, index)
        if not radicand:
            return radicand
        return radicand.sqrt() if index == 2 else radicand ** (1 / Decimal(index))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
