"""Values in floating point at fixed sample points, for what has no exact value here.

Points 0 to 2 are positive, 3 and 4 have both signs, 5 and 6 are complex. At points 3 and 4 a root,
logarithm or power that leaves the real line makes the point invalid, so that identities which hold
for the quantities that mathematicians write down, such as log(x^2) = 2 log x, are not refuted by a
choice of branch, while |x| = x is; whose domain is smaller is asked in `sampling`. Points 7 to 19
are whole or large, for what rounds (floor, ceiling, remainder). Overflow, underflow and
undefined values are invalid anywhere.
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import cmath
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from assay.math.exact import Unsupported, rational
from assay.math.nodes import (
    Add,
    Based,
    Call,
    Constant,
    Mul,
    Node,
    Number,
    PlusMinus,
    Pow,
    Symbol,
    Text,
)

Value = complex | float
POSITIVE_POINTS = (0, 1, 2)
MIXED_POINTS = (3, 4)
COMPLEX_POINTS = (5, 6)
WHOLE_POINTS = (7, 8, 9, 10, 11, 12, 13, 14)
LARGE_POINTS = (15, 16, 17, 18, 19)
RELATIVE = 1e-11
_TINY = 1e-290
_NEGLIGIBLE = 1e-13
MAX_TERMS = 200
_SUMMED = frozenset({"sum", "product"})
_CONSTANTS: dict[str, Value] = {
    "pi": math.pi,
    "e": math.e,
    "i": 1j,
    "infinity": math.inf,
    "degree": math.pi / 180,
    "percent": 0.01,
}
_REAL_ONLY = frozenset({"log", "arcsin", "arccos", "arcosh", "artanh", "arsech", "arcoth"})


class Invalid(Exception):
    """No value at this point."""


@lru_cache(maxsize=8192)
def sample(name: str, point: int) -> Value:
    """The value that stands for a variable at a point."""
    digest = hashlib.blake2b(f"{point}:{name}".encode(), digest_size=8).digest()
    first = int.from_bytes(digest[:4], "big") / 2**32
    second = int.from_bytes(digest[4:], "big") / 2**32
    size = 0.37 + 1.9 * first
    if point in POSITIVE_POINTS:
        return size
    if point in WHOLE_POINTS:
        return float(2 + int(997 * first))
    if point in LARGE_POINTS:
        return 211 * size
    if point in MIXED_POINTS:
        return -size if second < 0.5 or point == MIXED_POINTS[0] else size
    return complex(size, 0.2 + second)


def evaluate(node: Node, point: int, bound: Mapping[str, Value] | None = None) -> Value:
    """The value of a node at a point.

    Args:
        node: an expression.
        point: the number of a sample point.
        bound: values of bound variables.

    Raises:
        Invalid: it has no value, or none that can be trusted.
    """
    try:
        return _Evaluator(point, bound or {}).value(node)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise Invalid(str(error)) from error


class _Evaluator:
    def __init__(self, point: int, bound: Mapping[str, Value]) -> None:
        self.point = point
        self.bound = bound
        self.real = point in MIXED_POINTS
        self.terms_left = MAX_TERMS

    def value(self, node: Node) -> Value:
        match node:
            case Number(value):
                return _float(value)
            case Symbol(name):
                known = self.bound.get(name)
                return sample(name, self.point) if known is None else known
            case Constant(name):
                return _CONSTANTS[name]
            case Add(terms):
                return self._add(terms)
            case Mul(factors):
                return self._multiply(factors)
            case Pow(base, exponent):
                return self._power(base, exponent)
            case Call(name, arguments):
                return self._call(name, arguments)
            case Based(_, _, value):
                return float(value)
            case PlusMinus():
                raise Invalid("plus-minus")
            case _:
                raise Invalid("no expression")

    def _add(self, terms: tuple[Node, ...]) -> Value:
        total: Value = 0.0
        largest = 0.0
        for term in terms:
            value = self.value(term)
            total += value
            largest = max(largest, abs(value))
        if math.isnan(abs(total)):  # infinity minus infinity
            raise Invalid("undefined")
        return 0.0 if abs(total) < _NEGLIGIBLE * largest else total

    def _multiply(self, factors: tuple[Node, ...]) -> Value:
        result: Value = 1.0
        for factor in factors:
            value = self.value(factor)
            product = result * value
            if value and result and abs(product) < _TINY:
                raise Invalid("underflow")
            result = product
        if math.isnan(abs(result)):
            raise Invalid("undefined")
        return result

    def _power(self, base: Node, exponent: Node) -> Value:
        below = self.value(base)
        power = self.value(exponent)
        if isinstance(power, complex) and not power.imag:
            power = power.real
        if below == 1 and abs(power) == math.inf:
            raise Invalid("an indeterminate form")
        if isinstance(below, float) and below < 0 and isinstance(power, float):
            result = self._negative_power(below, power, exponent)
        else:
            result = _raised(below, power)
        if below and abs(result) < _TINY:
            raise Invalid("underflow")
        if abs(below) != math.inf and power and abs(result) == math.inf:
            raise Invalid("overflow")
        return result

    def _negative_power(self, below: float, power: float, exponent: Node) -> Value:
        """The real root where there is one, as with (-5)^(1/3)."""
        if power.is_integer():
            return _raised(below, power)
        try:
            fraction = rational(exponent)
        except Unsupported:
            fraction = Fraction(1, 2)
        if fraction.denominator % 2 and fraction.denominator < 100:
            size = _raised(-below, power)
            return -size if fraction.numerator % 2 else size
        if self.real:
            raise Invalid("leaves the real line")
        return _raised(complex(below), power)

    def _call(self, name: str, arguments: tuple[Node, ...]) -> Value:
        if name in ("sum", "product", "integral", "limit"):
            return self._big(name, arguments)
        if any(isinstance(argument, Text) for argument in arguments):
            raise Invalid("words")
        values = [self.value(argument) for argument in arguments]
        if name == "root":
            return self._root(values[0], values[1])
        function = _FUNCTIONS.get(name)
        if function is None:
            return _undefined(name, values, [_exactly(argument) for argument in arguments])
        real = all(isinstance(value, float) for value in values)
        result = function(*values)
        if self.real and real and name in _REAL_ONLY and isinstance(result, complex):
            raise Invalid("leaves the real line")
        return result

    def _root(self, radicand: Value, index: Value) -> Value:
        if isinstance(radicand, float) and isinstance(index, float):
            if radicand >= 0:
                return math.sqrt(radicand) if index == 2 else _raised(radicand, 1 / index)
            if index.is_integer() and index % 2:
                return -_raised(-radicand, 1 / index)
            if self.real:
                raise Invalid("leaves the real line")
        return cmath.sqrt(radicand) if index == 2 else _raised(complex(radicand), 1 / index)

    def _big(self, name: str, arguments: tuple[Node, ...]) -> Value:
        body, variable, low, high = arguments
        if name in _SUMMED and isinstance(variable, Symbol) and not isinstance(high, Text):
            first, last = self.value(low), self.value(high)
            if _is_range(first, last):
                return self._terms(name, body, variable.name, int(first.real), int(last.real))
        values = [
            self.value(part) if not isinstance(part, Text) else 0.0 for part in (body, low, high)
        ]
        return _undefined(f"{name} {variable}", values)

    def _terms(self, name: str, body: Node, variable: str, first: int, last: int) -> Value:
        result: Value = 0.0 if name == "sum" else 1.0
        outside = self.bound
        for index in range(first, last + 1):
            self.terms_left -= 1
            if self.terms_left < 0:
                raise Invalid("too many terms")
            self.bound = {**outside, variable: float(index)}
            term = self.value(body)
            result = result + term if name == "sum" else result * term
        self.bound = outside
        return result


def _raised(below: Value, power: Value) -> Value:
    result: Value = below**power
    return result


def _is_range(first: Value, last: Value) -> bool:
    if isinstance(first, complex) or isinstance(last, complex) or math.isinf(last):
        return False
    return first.is_integer() and last.is_integer() and -1 <= last - first < MAX_TERMS


def _float(value: Fraction) -> float:
    result = value.numerator / value.denominator
    if value and abs(result) < _TINY:
        raise Invalid("underflow")
    return result


def _exactly(argument: Node) -> Fraction | None:
    try:
        return rational(argument)
    except Unsupported:
        return None


def _undefined(name: str, values: list[Value], exactly: Sequence[Fraction | None] = ()) -> Value:
    """A value that depends on the function's name and on the arguments, to nine digits or all."""
    shown = ";".join(
        str(known) if known is not None else f"{complex(value).real:.8e},{complex(value).imag:.8e}"
        for value, known in itertools.zip_longest(values, exactly)
    )
    digest = hashlib.blake2b(f"{name}({shown})".encode(), digest_size=8).digest()
    return 0.4 + int.from_bytes(digest, "big") / 2**64


def _snapped(function: Callable[[Value], Value], argument: Value) -> Value:
    """A trigonometric value, exactly zero where it is within rounding of zero."""
    value = function(argument)
    return 0.0 if abs(value) < 1e-15 * max(10.0, abs(argument)) else value


def _either(
    real: Callable[[float], float], general: Callable[[complex], complex]
) -> Callable[[Value], Value]:
    def apply(argument: Value) -> Value:
        if isinstance(argument, float):
            try:
                return real(argument)
            except ValueError:
                return general(complex(argument))
        return general(argument)

    return apply


_SIN = _either(math.sin, cmath.sin)
_COS = _either(math.cos, cmath.cos)


def _sin(argument: Value) -> Value:
    return _snapped(_SIN, argument)


def _cos(argument: Value) -> Value:
    return _snapped(_COS, argument)


def _log(argument: Value, base: Value = math.e) -> Value:
    if not argument:
        raise Invalid("logarithm of zero")
    above = _LOG(argument)
    return above if base == math.e else above / _LOG(base)


_LOG = _either(math.log, cmath.log)


def _factorial(argument: Value) -> Value:
    if isinstance(argument, complex) or argument > 160:
        raise Invalid("overflow")
    if argument < 0 and argument.is_integer():
        raise Invalid("a pole")
    return math.gamma(argument + 1)


def _double_factorial(argument: Value) -> Value:
    if isinstance(argument, complex) or not argument.is_integer() or not 0 <= argument <= 250:
        raise Invalid("no double factorial")
    return float(math.prod(range(int(argument), 0, -2)))


def _binomial(above: Value, below: Value) -> Value:
    if isinstance(below, float) and below.is_integer() and 0 <= below <= 30:
        result: Value = 1.0
        for step in range(int(below)):
            result = result * (above - step) / (step + 1)
        return result
    if isinstance(above, complex) or isinstance(below, complex):
        raise Invalid("complex binomial")
    logarithms = [math.lgamma(part + 1) for part in (above, below, above - below)]
    if above - below < 0 or below < 0 or above < 0:
        raise Invalid("binomial outside its range")
    return math.exp(logarithms[0] - logarithms[1] - logarithms[2])


def _rounded(rounding: Callable[[float], int]) -> Callable[[Value], Value]:
    def apply(argument: Value) -> Value:
        if isinstance(argument, complex):
            raise Invalid("rounding of a complex number")
        return float(rounding(argument + (1e-12 if rounding is math.floor else -1e-12)))

    return apply


def _mod(argument: Value, modulus: Value) -> Value:
    if isinstance(argument, complex) or isinstance(modulus, complex):
        raise Invalid("complex modulus")
    return argument % modulus


def _ratio(first: Value, *rest: Value) -> Value:
    return first / rest[0] if len(rest) == 1 else _undefined("ratio", [first, *rest])


def _reciprocal(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda argument: 1 / function(argument)


_TAN = _either(math.tan, cmath.tan)
_ASIN = _either(math.asin, cmath.asin)
_ACOS = _either(math.acos, cmath.acos)
_ATAN = _either(math.atan, cmath.atan)
_SINH = _either(math.sinh, cmath.sinh)
_COSH = _either(math.cosh, cmath.cosh)
_TANH = _either(math.tanh, cmath.tanh)
_ASINH = _either(math.asinh, cmath.asinh)
_ACOSH = _either(math.acosh, cmath.acosh)
_ATANH = _either(math.atanh, cmath.atanh)

_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sin": _sin,
    "cos": _cos,
    "tan": lambda argument: _snapped(_TAN, argument),
    "sec": _reciprocal(_cos),
    "csc": _reciprocal(_sin),
    "cot": lambda argument: _cos(argument) / _sin(argument),
    "arcsin": _ASIN,
    "arccos": _ACOS,
    "arctan": _ATAN,
    "arccot": lambda argument: _ATAN(1 / argument) if argument else math.pi / 2,
    "arcsec": lambda argument: _ACOS(1 / argument),
    "arccsc": lambda argument: _ASIN(1 / argument),
    "sinh": _SINH,
    "cosh": _COSH,
    "tanh": _TANH,
    "sech": _reciprocal(_COSH),
    "csch": _reciprocal(_SINH),
    "coth": _reciprocal(_TANH),
    "arsinh": _ASINH,
    "arcosh": _ACOSH,
    "artanh": _ATANH,
    "arcoth": lambda argument: _ATANH(1 / argument),
    "arsech": lambda argument: _ACOSH(1 / argument),
    "arcsch": lambda argument: _ASINH(1 / argument),
    "log": _log,
    "abs": lambda argument: float(abs(argument)),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "factorial": _factorial,
    "double_factorial": _double_factorial,
    "binomial": _binomial,
    "mod": _mod,
    "max": max,
    "min": min,
    "re": lambda argument: complex(argument).real,
    "im": lambda argument: complex(argument).imag,
    "arg": cmath.phase,
    "conjugate": lambda argument: complex(argument).conjugate(),
    "ratio": _ratio,
}


def close(left: Value, right: Value, relative: float = RELATIVE) -> bool:
    """Whether two values are the same within a relative tolerance."""
    if left == right:
        return True
    scale = max(abs(left), abs(right))
    if math.isinf(scale) or math.isnan(scale):
        return False
    return abs(left - right) <= relative * scale
