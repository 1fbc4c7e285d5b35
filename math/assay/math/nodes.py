"""The syntax tree of a mathematical answer: small, frozen, and bounded by whoever builds it.

Not an algebra system: nodes carry what was written and simplify nothing. A difference is an `Add`
with a factor -1, a quotient a `Mul` with a power -1, a root a `Call("root", (radicand, index))`.

Calls have these names: `root` (radicand, index), `abs`, `floor`, `ceil`, `factorial`,
`double_factorial`, `binomial`, `log` (argument and, when written, base; without it natural), the
trigonometric and hyperbolic functions and their inverses (`sin`, `arcsin`, `sinh`, `artanh`, ...),
`gcd`, `lcm`, `max`, `min`, `re`, `im`, `arg`, `det`, `mod` (number, modulus: the remainder),
`modulo` (number, modulus: the class), `line` (point, direction, letter), `piecewise` (values, each
with its condition behind it), `ratio` (its parts), `time` (hours, minutes, perhaps seconds,
`Text` of am or pm), `builder` (element, condition), `sum`, `product`, `integral` and `limit` (body,
bound variable, lower end, upper end; what was not written is `Text("")`). Every other name is a
function nobody defined, such as f.
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number literal.

    Attributes:
        value: its exact value; negative only in the factor -1 of a negation.
        digits: significant digits of a decimal literal, 0 for an integer.
        decimals: digits behind the point; negative for powers of ten such as 3e8.
        repeating: whether the literal has a repeating part, so that it is exact.
    """

    value: Fraction
    digits: int = 0
    decimals: int = 0
    repeating: bool = False


@dataclass(frozen=True, slots=True)
class Based:
    """A number in a stated base, such as 204_5: digits (0-9, A-Z), base (2 to 36) and value.

    `prefixed` says that it is a literal such as 0b101, whose digits alone are read in ten.
    """

    digits: str
    base: int
    value: Fraction
    prefixed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable: a letter, a Greek name, with subscript and primes as part of the name."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """`pi`, `e`, `i`, `infinity`, `degree` (pi/180) or `percent` (1/100)."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A sum of two or more terms."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mul:
    """A product of two or more factors."""

    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pow:
    """A power."""

    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function of arguments; the names are listed in the module's docstring."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PlusMinus:
    """Plus or minus the operand; `sign` is 1 where the upper sign is plus, -1 for minus-plus."""

    operand: Node
    sign: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Relations in a row, `a < b <= c`: n + 1 operands and n operators.

    Operators: `=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `notin`, `subset`, `approx`, `equiv`,
    `perp`, `parallel`, `to`, `mid`.
    """

    operands: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Items between brackets, or bare.

    Attributes:
        opening: `(`, `[`, `{`, or the empty string for a bare list.
        items: what stands between the separators.
        closing: `)`, `]`, `}`, or the empty string.
        alternatives: whether the separator was "or".
    """

    opening: str
    items: tuple[Node, ...]
    closing: str
    alternatives: bool = False


@dataclass(frozen=True, slots=True)
class SetOperation:
    """A `union`, `intersection` or `difference` of sets."""

    name: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of equal length."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with a unit, as written; `units.parse` knows what the unit means."""

    value: Node
    unit: str


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    words: str


Node: TypeAlias = (
    Number
    | Based
    | Symbol
    | Constant
    | Add
    | Mul
    | Pow
    | Call
    | PlusMinus
    | Chain
    | Group
    | SetOperation
    | Matrix
    | Quantity
    | Text
)

ZERO = Number(Fraction(0))
ONE = Number(Fraction(1))
MINUS_ONE = Number(Fraction(-1))  # the factor of a negation; the only negative literal
TWO = Number(Fraction(2))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node."""
    match node:
        case Add(terms):
            return terms
        case Mul(factors):
            return factors
        case Pow(base, exponent):
            return (base, exponent)
        case Call(_, arguments):
            return arguments
        case PlusMinus(operand, _) | Quantity(operand, _):
            return (operand,)
        case Chain(operands, _) | SetOperation(_, operands):
            return operands
        case Group(_, items, _, _):
            return items
        case Matrix(rows):
            return tuple(item for row in rows for item in row)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, each once."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def symbols(node: Node) -> frozenset[str]:
    """The names of the variables below a node."""
    return frozenset(part.name for part in walk(node) if isinstance(part, Symbol))


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with a change applied to every node, from the leaves up."""

    def every(parts: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(rebuilt(part, change) for part in parts)

    match node:
        case Add(terms):
            node = Add(every(terms))
        case Mul(factors):
            node = Mul(every(factors))
        case Pow(base, exponent):
            node = Pow(rebuilt(base, change), rebuilt(exponent, change))
        case Call(name, arguments):
            node = Call(name, every(arguments))
        case PlusMinus(operand, sign):
            node = PlusMinus(rebuilt(operand, change), sign)
        case Quantity(value, unit):
            node = Quantity(rebuilt(value, change), unit)
        case Chain(operands, operators):
            node = Chain(every(operands), operators)
        case SetOperation(name, operands):
            node = SetOperation(name, every(operands))
        case Group(opening, items, closing, alternatives):
            node = Group(opening, every(items), closing, alternatives)
        case Matrix(rows):
            node = Matrix(tuple(every(row) for row in rows))
        case _:
            pass
    return change(node)
