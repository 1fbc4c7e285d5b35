"""Formulas of one or a few variables, read into sympy objects without evaluating text.

sympy's own reader executes what it reads. This recursive-descent reader makes sympy objects node by
node out of a fixed list of functions, within limits that are checked first: MAX_CHARS, MAX_NODES,
MAX_DEPTH, MAX_DIGITS of a number, and MAX_BITS of a power of numbers. What sympy does with the
result may still take long: it belongs in a worker.

    sum     = term (("+" | "-") term)*
    term    = factor (("*" | "/") factor)*
    factor  = ("+" | "-") factor | power
    power   = atom (("**") factor)?
    atom    = number | name "(" sum ")" | name | "(" sum ")"
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

MAX_CHARS = 4_000
MAX_NODES = 1_000
MAX_DEPTH = 40
MAX_DIGITS = 100
MAX_BITS = 20_000
MAX_EXPONENT = 200
_NAMES = "exp log ln sqrt sin cos tan sec csc cot asin acos atan sinh cosh tanh Abs"
FUNCTIONS = frozenset(_NAMES.split())

_TOKEN = re.compile(
    r"\s*(?:(\d{1,100}(?:\.\d{1,100})?|\.\d{1,100})|([A-Za-z_]\w{0,20})|(\*\*|[-+*/()]))", re.ASCII
)


class PuzzleFormulaError(ValueError):
    """The text is no formula, or beyond the limits."""


def read_formula(text: str, symbols: Collection[str]) -> Any:
    """The formula as a sympy expression.

    Args:
        text: the formula; powers as `**`, products as `*`.
        symbols: the names that are variables; E and pi are constants unless they are among them.

    Raises:
        PuzzleFormulaError: it cannot be read.
    """
    return _Reader(_pieces(text), frozenset(symbols)).read()


def _pieces(text: str) -> list[str]:
    if len(text) > MAX_CHARS:
        raise PuzzleFormulaError(f"longer than {MAX_CHARS} characters")
    pieces: list[str] = []
    text = text.rstrip()
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or len(pieces) >= MAX_NODES:
            raise PuzzleFormulaError(f"cannot be read from {text[position : position + 20]!r} on")
        pieces.append(found[1] or found[2] or found[3])
        position = found.end()
    return pieces


class _Reader:
    """Reads pieces from the left."""

    def __init__(self, pieces: list[str], symbols: frozenset[str]) -> None:
        import sympy  # noqa: PLC0415 - takes a third of a second, and only workers need it

        self._sympy: Any = sympy
        self._pieces = pieces
        self._symbols = symbols
        self._next = 0

    def read(self) -> Any:
        value = self._sum(0)
        if self._next < len(self._pieces):
            raise PuzzleFormulaError(f"unexpected {self._ahead!r}")
        if value.has(self._sympy.zoo, self._sympy.nan, self._sympy.oo, -self._sympy.oo):
            raise PuzzleFormulaError("has no finite value")
        return value

    @property
    def _ahead(self) -> str:
        return self._pieces[self._next] if self._next < len(self._pieces) else ""

    def _take(self) -> str:
        piece = self._ahead
        self._next += 1
        return piece

    def _sum(self, depth: int) -> Any:
        terms = [self._term(depth)]
        while self._ahead in ("+", "-"):
            sign = self._take()
            term = self._term(depth)
            terms.append(term if sign == "+" else -term)
        return self._sympy.Add(*terms)

    def _term(self, depth: int) -> Any:
        factors = [self._factor(depth)]
        while self._ahead in ("*", "/"):
            sign = self._take()
            factor = self._factor(depth)
            factors.append(factor if sign == "*" else self._power_of(factor, self._sympy.S(-1)))
        return self._sympy.Mul(*factors)

    def _factor(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise PuzzleFormulaError(f"nested deeper than {MAX_DEPTH}")
        if self._ahead in ("+", "-"):
            sign = self._take()
            value = self._factor(depth + 1)
            return -value if sign == "-" else value
        base = self._atom(depth)
        if self._ahead == "**":
            self._take()
            return self._power_of(base, self._factor(depth + 1))
        return base

    def _atom(self, depth: int) -> Any:
        piece = self._take()
        if piece == "(":
            return self._closed(depth)
        if piece[:1].isdigit() or piece[:1] == ".":
            return self._number(piece)
        if piece in self._symbols:
            return self._sympy.Symbol(piece)
        if piece in ("E", "pi"):
            return self._sympy.E if piece == "E" else self._sympy.pi
        if piece in FUNCTIONS and self._ahead == "(":
            self._take()
            return getattr(self._sympy, piece)(self._closed(depth))
        raise PuzzleFormulaError(f"{piece[:20]!r} is no number, variable or known function")

    def _closed(self, depth: int) -> Any:
        value = self._sum(depth + 1)
        if self._take() != ")":
            raise PuzzleFormulaError("a parenthesis is not closed")
        return value

    def _number(self, piece: str) -> Any:
        whole, _, decimals = piece.partition(".")
        digits = int((whole or "0") + decimals)
        return self._sympy.Rational(digits, 10 ** len(decimals))

    def _power_of(self, base: Any, exponent: Any) -> Any:
        if exponent.is_number and not (exponent.is_Rational and abs(exponent) <= MAX_EXPONENT):
            plain = exponent.is_Rational is False and not exponent.is_infinite
            if not plain:
                raise PuzzleFormulaError("an exponent is out of range")
        if base.is_Rational and exponent.is_Rational:
            if not base and exponent < 0:
                raise PuzzleFormulaError("division by zero")
            bits = max(int(base.p).bit_length(), int(base.q).bit_length())
            if bits * abs(exponent) > MAX_BITS:
                raise PuzzleFormulaError(f"a power has more than {MAX_BITS} bits")
        return self._sympy.Pow(base, exponent)
