"""Exact values: rationals of bounded size, and identities modulo two primes.

A difference modulo a prime is a proof that two rational functions differ. Agreement at two points
is agreement up to a chance of degree/2^61 each (Schwartz 1980, Zippel 1979); the points are fixed,
so a verdict repeats. Exponents are taken modulo the group order, and towers of integers through
Euler's theorem, so 5^5999 and 9^9^9^9 cost no more than x + 1.
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import lru_cache

from assay.math.nodes import (
    Add,
    Based,
    Call,
    Constant,
    Mul,
    Node,
    Number,
    Pow,
    Symbol,
)

MAX_BITS = 8192
# One more than multiples of 4, so that -1 has a square root; one less has small prime factors, so
# that towers of exponents can be reduced. Two of them, so that an exponent that is a multiple of
# the order of one group is not a multiple of the other's.
PRIMES = (2**61 - 31, 2**61 - 391)
POINTS = 2
_IMAGINARY = tuple(
    next(
        root
        for root in (pow(base, (prime - 1) // 4, prime) for base in range(2, 100))
        if root * root % prime == prime - 1
    )
    for prime in PRIMES
)
_MAX_FACTORIAL = 900
_MAX_MODULAR_FACTORIAL = 3000
_SMALL_PRIMES = tuple(n for n in range(2, 4000) if all(n % d for d in range(2, math.isqrt(n) + 1)))


class Unsupported(Exception):
    """No exact value: it is irrational, infinite, too large or holds variables."""


def rational(node: Node) -> Fraction:
    """The exact rational value of a node.

    Raises:
        Unsupported: it has none, or one of more than about `MAX_BITS` bits.
    """
    match node:
        case Number(value):
            return value
        case Add(terms):
            total = rational(terms[0])
            for term in terms[1:]:
                total = _bounded(total + rational(term))
            return total
        case Mul(factors):
            result = rational(factors[0])
            for factor in factors[1:]:
                result = _bounded(result * rational(factor))
            return result
        case Pow(base, exponent):
            return _power(rational(base), rational(exponent))
        case Call(name, arguments):
            return _called(name, tuple(map(rational, arguments)))
        case Constant("percent"):
            return Fraction(1, 100)
        case Based(_, _, value):
            return value
        case _:
            raise Unsupported


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise Unsupported
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        if exponent.denominator > 64:
            raise Unsupported
        base = _root(base, exponent.denominator)
    power = exponent.numerator
    if not base:
        if power <= 0:
            raise Unsupported
        return base
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(power) * size > MAX_BITS and abs(base) != 1:
        raise Unsupported
    if abs(base) == 1:
        return base if power % 2 else Fraction(1)
    return base**power


def _root(value: Fraction, index: int) -> Fraction:
    """The exact real root; of a negative number where the index is odd."""
    if value < 0:
        if index % 2 == 0:
            raise Unsupported
        return -_root(-value, index)
    return Fraction(_integer_root(value.numerator, index), _integer_root(value.denominator, index))


def _integer_root(value: int, index: int) -> int:
    if value < 2:
        return value
    if index == 2:
        root = math.isqrt(value)
    else:
        if value.bit_length() > 1000:
            raise Unsupported
        root = round(value ** (1 / index)) if value.bit_length() < 1000 else 0
        if value.bit_length() > 50:
            for _ in range(8):  # Newton's steps from the float
                root -= (root**index - value) // (index * root ** (index - 1))
    if root**index != value:
        raise Unsupported
    return root


def _integers(values: tuple[Fraction, ...]) -> list[int]:
    if not all(value.denominator == 1 for value in values):
        raise Unsupported
    return [value.numerator for value in values]


def _called(name: str, values: tuple[Fraction, ...]) -> Fraction:
    first = values[0]
    match name, len(values):
        case "root", 2:
            (index,) = _integers(values[1:])
            if not 2 <= index <= 64:
                raise Unsupported
            return _root(first, index)
        case "abs", 1:
            return abs(first)
        case "floor", 1:
            return Fraction(math.floor(first))
        case "ceil", 1:
            return Fraction(math.ceil(first))
        case (("max" | "min"), count) if count > 1:
            return max(values) if name == "max" else min(values)
        case ("mod", 2) if values[1] > 0:
            return first % values[1]
        case (("factorial" | "double_factorial" | "binomial" | "gcd" | "lcm"), _):
            return Fraction(_combinatorial(name, _integers(values)))
        case _:
            raise Unsupported


def _combinatorial(name: str, values: list[int]) -> int:
    if name == "gcd":
        return math.gcd(*values)
    if name == "lcm":
        return math.lcm(*values)
    if not 0 <= values[0] <= _MAX_FACTORIAL:
        raise Unsupported
    if name == "factorial":
        return math.factorial(values[0])
    if name == "double_factorial":
        return math.prod(range(values[0], 0, -2))
    if len(values) != 2 or values[1] < 0:
        raise Unsupported
    return math.comb(*values)


# Modulo a prime.


@lru_cache(maxsize=4096)
def _point(name: str, point: int) -> int:
    """A fixed integer of 60 bits that stands for a variable or a transcendental constant."""
    digest = hashlib.blake2b(f"{point}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 4


def residue(node: Node, point: int) -> int:
    """The value modulo a prime at a fixed point; pi and e count as variables.

    Even points are taken modulo the first of `PRIMES`, odd ones modulo the second.

    Raises:
        Unsupported: it is no rational function with integer exponents, or not defined there.
    """
    prime = PRIMES[point % 2]
    match node:
        case Number(value):
            if value.denominator == 1:
                return value.numerator % prime
            return value.numerator * _inverse(value.denominator, prime) % prime
        case Symbol(name):
            return _point(name, point)
        case Add(terms):
            return sum([residue(term, point) for term in terms]) % prime
        case Mul(factors):
            result = 1
            for factor in factors:
                result = result * residue(factor, point) % prime
            return result
        case Pow(base, exponent):
            return _modular_power(base, exponent, point)
        case Constant(name):
            return _modular_constant(name, point)
        case Call("factorial", (Number(value),)) if value.denominator == 1:
            return _modular_factorial(value.numerator, prime)
        case Based(_, _, value):
            return value.numerator * pow(value.denominator, -1, prime) % prime
        case _:
            raise Unsupported


def _modular_constant(name: str, point: int) -> int:
    if name in ("pi", "e"):
        return _point(f"constant {name}", point)
    if name == "percent":
        return _inverse(100, PRIMES[point % 2])
    if name == "i":
        return _IMAGINARY[point % 2]
    raise Unsupported


def _inverse(value: int, prime: int) -> int:
    if value == 1:
        return 1
    if value % prime == 0:
        raise Unsupported
    return pow(value, -1, prime)


def _modular_power(base: Node, exponent: Node, point: int) -> int:
    prime = PRIMES[point % 2]
    below = residue(base, point)
    if isinstance(exponent, Number) and exponent.value.denominator == 1:
        power = exponent.value.numerator
    else:
        if isinstance(base, Constant):
            raise Unsupported  # e^x is no power of a variable
        power = _exponent(exponent, prime - 1, point)
    if below == 0:
        raise Unsupported
    return pow(below, power % (prime - 1), prime)


def _exponent(node: Node, modulus: int, point: int) -> int:
    """An integer exponent modulo an integer; variables stand for integers."""
    match node:
        case Number(value) if value.denominator == 1:
            return value.numerator % modulus
        case Symbol(name):
            return _point(name, point) % modulus
        case Add(terms):
            return sum([_exponent(term, modulus, point) for term in terms]) % modulus
        case Mul(factors):
            result = 1
            for factor in factors:
                result = result * _exponent(factor, modulus, point) % modulus
            return result
        case Pow(base, exponent):
            return _tower(base, exponent, modulus, point)
        case _:
            raise Unsupported


def _tower(base: Node, exponent: Node, modulus: int, point: int) -> int:
    """base^exponent modulo an integer, by Euler's theorem for bases that share factors with it."""
    if modulus == 1:
        return 0
    if not _is_natural(exponent):
        raise Unsupported
    below = _exponent(base, modulus, point)
    small = _small(exponent)
    if small is not None:
        return pow(below, small, modulus)
    order = _totient(modulus)
    return pow(below, _exponent(exponent, order, point) + order, modulus)


def _is_natural(node: Node) -> bool:
    match node:
        case Number(value):
            return value.denominator == 1 and value >= 0
        case Symbol():
            return True
        case Add(parts) | Mul(parts):
            return all(map(_is_natural, parts))
        case Pow(base, exponent):
            return _is_natural(base) and _is_natural(exponent)
        case _:
            return False


def _small(node: Node) -> int | None:
    """The value of a natural exponent below 2^12; None where it is larger or has variables."""
    try:
        value = rational(node)
    except Unsupported:
        return None
    return value.numerator if value < 4096 else None


@lru_cache(maxsize=256)
def _totient(modulus: int) -> int:
    """Euler's function of a number whose prime factors, but one, are below 4,000."""
    result, rest = modulus, modulus
    for prime in _SMALL_PRIMES:
        if rest % prime == 0:
            result -= result // prime
            while rest % prime == 0:
                rest //= prime
    if rest > _SMALL_PRIMES[-1] ** 2:
        raise Unsupported
    if rest > 1:
        result -= result // rest
    return result


@lru_cache(maxsize=256)
def _modular_factorial(value: int, prime: int) -> int:
    if not 0 <= value <= _MAX_MODULAR_FACTORIAL:
        raise Unsupported
    result = 1
    for factor in range(2, value + 1):
        result = result * factor % prime
    return result
