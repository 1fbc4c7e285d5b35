"""Arithmetic of matrices and vectors, and lines as a point and a direction.

`computed` replaces sums, products, powers and determinants of matrices and of tuples by their
entries, so that what is compared is one matrix or tuple. What it cannot do within its limits stays
as it was written. A tuple plus a letter times a tuple becomes `Call("line", (point, direction,
letter))`, for `lines`. Two tuples in a row stay what they are: a dot product, a list or cycles of a
permutation.

Work is bounded by the shape (`MAX_SIDE`) and by the number of nodes in a result (`MAX_NODES`).
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from fractions import Fraction

from assay.math import exact
from assay.math.building import literal, negated, quotient
from assay.math.nodes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Call,
    Chain,
    Constant,
    Group,
    Matrix,
    Mul,
    Node,
    Pow,
    Symbol,
    children,
    rebuilt,
    symbols,
    walk,
)

MAX_SIDE = 8
MAX_SYMBOLIC_SIDE = 4
MAX_POWER = 12
MAX_NODES = 2_000
_MAX_BITS = 256
_LETTERS = frozenset({"i", "j", "k"})
PARAMETERS = frozenset({"t", "s", "u", "r", "lambda", "mu", "tau"})
"""Letters that run along a line; any other may be a number that the problem gives."""

Rows = tuple[tuple[Node, ...], ...]


def computed(node: Node) -> Node:
    """The tree with the arithmetic of matrices and tuples done, where that is within the limits."""
    for part in walk(node):
        if isinstance(part, _ARITHMETIC) and any(
            isinstance(child, Matrix | Group) for child in children(part)
        ):
            return rebuilt(node, _step)
    return node


_ARITHMETIC = (Add, Mul, Pow, Call)


def _is_tuple(node: Node) -> bool:
    return isinstance(node, Group) and node.opening in ("(", "[") and node.closing in (")", "]")


def _step(node: Node) -> Node:
    """One node whose children are computed."""
    found: Node | None = None
    match node:
        case Add(terms) if any(map(_is_array, terms)):
            found = _sum(terms)
        case Mul(factors) if any(map(_is_array, factors)):
            found = _product(factors)
        case Pow(Matrix(rows), exponent):
            found = _power(rows, exponent)
        case Call("det" | "abs", (Matrix(rows),)):
            found = determinant(rows) or Call("det", (Matrix(rows),))
        case _:
            return node
    return node if found is None or _is_large(found) else found


def _is_large(node: Node) -> bool:
    return any(count >= MAX_NODES for count, _ in enumerate(walk(node)))


def _is_array(node: Node) -> bool:
    return isinstance(node, Matrix) or _is_tuple(node) or is_line(node)


def is_line(node: Node) -> bool:
    """Whether `computed` made a line of it."""
    return isinstance(node, Call) and node.name == "line"


# Sums and products.


def _sum(terms: Sequence[Node]) -> Node | None:
    """Entry by entry; with a multiple of a tuple by a letter it is a line."""
    lines = [term for term in terms if is_line(term)]
    rest = [term for term in terms if not is_line(term)]
    if len(lines) == 1 and isinstance(lines[0], Call) and rest:
        point, direction, letter = lines[0].arguments
        start = _sum([point, *rest])
        return None if start is None else Call("line", (start, direction, letter))
    if lines or not all(map(_is_array, terms)):
        return None
    shapes = [_entries(term) for term in terms]
    first = shapes[0]
    if any([len(row) for row in rows] != [len(row) for row in first] for rows in shapes):
        return None
    rows = tuple(
        tuple(total(entries) for entries in zip(*row, strict=True))
        for row in zip(*shapes, strict=True)
    )
    return _like(terms[0], rows)


def _entries(node: Node) -> Rows:
    """The rows of a matrix; of a tuple one column."""
    if isinstance(node, Matrix):
        return node.rows
    return tuple((item,) for item in node.items) if isinstance(node, Group) else ()


def _like(node: Node, rows: Rows) -> Node:
    """Rows as a matrix, or as a tuple where the node is one."""
    if isinstance(node, Group):
        return Group(node.opening, tuple(row[0] for row in rows), node.closing)
    return Matrix(rows)


def _product(factors: Sequence[Node]) -> Node | None:
    scalars = [factor for factor in factors if not _is_array(factor)]
    arrays = [factor for factor in factors if _is_array(factor)]
    if any(map(is_line, arrays)) or any(isinstance(scalar, Chain | Group) for scalar in scalars):
        return None
    if len(arrays) > 1 and not all(isinstance(array, Matrix) for array in arrays):
        return None
    if len(arrays) == 1 and isinstance(arrays[0], Group):
        return _multiple(scalars, arrays[0])
    rows = _entries(arrays[0])
    letter = any(isinstance(scalar, Symbol) and scalar.name in PARAMETERS for scalar in scalars)
    if letter and len(arrays) == 1 and _is_column(arrays[0]) and not symbols(arrays[0]):
        return _multiple(scalars, Group("(", tuple(row[0] for row in rows), ")"))
    for array in arrays[1:]:
        further = _rows_times(rows, _entries(array))
        if further is None:
            return None
        rows = further
    return Matrix(_scaled(scalars, rows)) if scalars else Matrix(rows)


def _is_column(node: Node) -> bool:
    return isinstance(node, Matrix) and len(node.rows) > 1 and len(node.rows[0]) == 1


def _multiple(scalars: Sequence[Node], array: Group) -> Node:
    """A tuple with a factor: a point with its name, a line through nothing, or scaled."""
    names = [scalar for scalar in scalars if isinstance(scalar, Symbol)]
    if len(scalars) == 1 and names and names[0].name[0].isupper():
        return Chain((names[0], array), ("=",))  # the point A(1,2)
    if (
        len(names) == 1
        and names[0].name in PARAMETERS
        and not symbols(array)
        and all(scalar is names[0] or not symbols(scalar) for scalar in scalars)
    ):
        others = [scalar for scalar in scalars if scalar is not names[0]]
        zero = Group(array.opening, tuple(ZERO for _ in array.items), array.closing)
        direction = _like(array, _scaled(others, _entries(array))) if others else array
        return Call("line", (zero, direction, names[0]))
    return _like(array, _scaled(scalars, _entries(array)))


def _scaled(scalars: Sequence[Node], rows: Rows) -> Rows:
    return tuple(tuple(product((*scalars, entry)) for entry in row) for row in rows)


def _rows_times(left: Rows, right: Rows) -> Rows | None:
    side = max(len(left), len(right), len(right[0]))
    if len(left[0]) != len(right) or side > MAX_SIDE:
        return None
    columns = list(zip(*right, strict=True))
    found = tuple(
        tuple(
            total([product(pair) for pair in zip(row, column, strict=True)]) for column in columns
        )
        for row in left
    )
    return None if _is_large(Matrix(found)) else found


def _power(rows: Rows, exponent: Node) -> Node | None:
    """A whole power of a square matrix; of a numeric one also its inverse."""
    try:
        power = exact.rational(exponent)
    except exact.Unsupported:
        return None
    if power.denominator != 1 or not 0 < abs(power) <= MAX_POWER or len(rows) != len(rows[0]):
        return None
    if power < 0:
        inverted = _inverse(rows)
        if inverted is None:
            return None
        rows = inverted
    found = rows
    for _ in range(abs(power.numerator) - 1):
        further = _rows_times(found, rows)
        if further is None:
            return None
        found = further
    return Matrix(found)


# Exact numbers where there are such, trees elsewhere.


def number(value: Fraction) -> Node:
    """The tree of a rational number."""
    size = abs(value)
    node: Node = literal(str(size.numerator))
    if size.denominator != 1:
        node = quotient(node, literal(str(size.denominator)))
    return negated(node) if value < 0 else node


def rational(node: Node) -> Fraction | None:
    """The exact value of a node; None where it has none."""
    try:
        return exact.rational(node)
    except (exact.Unsupported, ArithmeticError, ValueError):
        return None


def total(terms: Sequence[Node]) -> Node:
    """The sum of terms, computed where they are rational."""
    values = [rational(term) for term in terms]
    known = [value for value in values if value is not None]
    if len(known) == len(terms):
        return number(sum(known, Fraction(0)))
    kept = [term for term, value in zip(terms, values, strict=True) if value != 0]
    return kept[0] if len(kept) == 1 else Add(tuple(kept))


def product(factors: Sequence[Node]) -> Node:
    """The product of factors, computed where they are rational."""
    result = Fraction(1)
    kept = []
    for factor in factors:
        value = rational(factor)
        if value is None:
            kept.append(factor)
        elif max(value.numerator.bit_length(), result.numerator.bit_length()) < exact.MAX_BITS:
            result *= value
        else:
            kept.append(factor)
    if not result or not kept:
        return number(result)
    if result != 1:
        kept.insert(0, number(result))
    return kept[0] if len(kept) == 1 else Mul(tuple(kept))


def difference(left: Node, right: Node) -> Node:
    """Left minus right."""
    return total((left, product((MINUS_ONE, right))))


def determinant(rows: Rows) -> Node | None:
    """Of a square matrix: numbers up to `MAX_SIDE`, trees up to 4 by 4; None beyond."""
    side = len(rows)
    if side != len(rows[0]) or side > MAX_SIDE:
        return None
    values = _numbers(rows)
    if values is not None:
        return number(_eliminated(values)[1])
    if side > MAX_SYMBOLIC_SIDE:
        return None
    terms = []
    for order in itertools.permutations(range(side)):
        sign = [MINUS_ONE] if _is_odd(order) else []
        terms.append(product([*sign, *(rows[at][to] for at, to in enumerate(order))]))
    return total(terms)


def _is_odd(order: Sequence[int]) -> bool:
    return sum(a > b for a, b in itertools.combinations(order, 2)) % 2 == 1


def _numbers(rows: Rows) -> list[list[Fraction]] | None:
    values = [[rational(entry) for entry in row] for row in rows]
    known = [
        [value for value in row if value is not None and _bits(value) <= _MAX_BITS]
        for row in values
    ]
    return known if [len(row) for row in known] == [len(row) for row in values] else None


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _eliminated(rows: list[list[Fraction]]) -> tuple[list[list[Fraction]], Fraction]:
    """Gauss and Jordan: the rows with the left square reduced to one, and its determinant."""
    side = len(rows)
    value = Fraction(1)
    for at in range(side):
        pivot = next((row for row in range(at, side) if rows[row][at]), None)
        if pivot is None:
            return rows, Fraction(0)
        if pivot != at:
            rows[at], rows[pivot] = rows[pivot], rows[at]
            value = -value
        lead = rows[at][at]
        value *= lead
        rows[at] = [entry / lead for entry in rows[at]]
        for other in range(side):
            factor = rows[other][at]
            if other != at and factor:
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return rows, value


def _inverse(rows: Rows) -> Rows | None:
    values = _numbers(rows)
    if values is None or len(rows) > MAX_SIDE:
        return None
    side = len(values)
    wide = [
        [*row, *(Fraction(int(at == column)) for column in range(side))]
        for at, row in enumerate(values)
    ]
    reduced, value = _eliminated(wide)
    if not value:
        return None
    return tuple(tuple(number(entry) for entry in row[side:]) for row in reduced)


# Unit vectors.


def components(node: Node) -> tuple[Node, ...] | None:
    """Of a sum of multiples of i, j and k; None for anything else.

    One of j and k must be in it: a multiple of i alone is as well a complex number.
    """
    node = rebuilt(node, _unit)
    names = symbols(node) & _LETTERS
    if not names & {"j", "k"}:
        return None
    parts = []
    rest = node
    for name in "ijk":
        part = affine(rest, name)
        if part is None or symbols(part[0]) & _LETTERS:
            return None
        parts.append(part[0])
        rest = part[1]
    return tuple(parts) if rational(rest) == 0 else None


def _unit(node: Node) -> Node:
    return Symbol("i") if node == Constant("i") else node


# Expressions in one letter.


def affine(node: Node, name: str) -> tuple[Node, Node] | None:
    """Slope and constant of an expression that is linear in a variable; None if it is not."""
    if name not in symbols(node):
        return ZERO, node
    match node:
        case Symbol():
            return ONE, ZERO
        case Add(terms):
            parts = [affine(term, name) for term in terms]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            return total([slope for slope, _ in known]), total([rest for _, rest in known])
        case Mul(factors):
            inside = [factor for factor in factors if name in symbols(factor)]
            outside = [factor for factor in factors if name not in symbols(factor)]
            part = affine(inside[0], name) if len(inside) == 1 else None
            if part is None:
                return None
            return product((*outside, part[0])), product((*outside, part[1]))
        case _:
            return None


# Forms of matrices and vectors.


def as_vector(node: Node, other: Node) -> Node:
    """A sum of multiples of i, j and k as a tuple of as many entries as the other side has."""
    if not isinstance(node, Add | Mul | Symbol):
        return node
    rows = rows_of(other)
    if rows is None or not is_vector(rows):
        return node
    size = len(flat(rows))
    parts = components(node)
    if parts is None or size not in (2, 3) or (size == 2 and rational(parts[2]) != 0):
        return node
    return Group("(", parts[:size], ")")


_IDENTITY = re.compile(r"I(?:_([2-9]))?")


def as_identity(node: Node, other: Node) -> Node:
    """I and I_3 as the matrix, of the other side's shape."""
    match = _IDENTITY.fullmatch(node.name) if isinstance(node, Symbol) else None
    if match is None or not isinstance(other, Matrix):
        return node
    side = int(match[1] or len(other.rows))
    if side > MAX_SIDE:
        return node
    rows = tuple(tuple(ONE if at == to else ZERO for to in range(side)) for at in range(side))
    return Matrix(rows)


def rows_of(node: Node) -> list[list[Node]] | None:
    """The rows of a matrix or of nested tuples; of a tuple one row; None for anything else."""
    match node:
        case Matrix(rows):
            return [list(row) for row in rows]
        case Group("(" | "[", items):
            if all(isinstance(item, Group) and item.opening in ("(", "[") for item in items):
                return [list(item.items) for item in items if isinstance(item, Group)]
            return [list(items)]
        case _:
            return None


def is_vector(rows: list[list[Node]]) -> bool:
    """Whether rows are one row or one column."""
    return len(rows) == 1 or all(len(row) == 1 for row in rows)


def flat(rows: list[list[Node]]) -> list[Node]:
    """The entries, row by row."""
    return [item for row in rows for item in row]
