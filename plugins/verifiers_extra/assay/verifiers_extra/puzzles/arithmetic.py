"""Arithmetic of whole numbers with + - * / and parentheses: read and worked out exactly.

Never `eval`: a recursive-descent reader works on `Fraction` as it reads, within limits that are
checked first: MAX_CHARS of text, MAX_NUMBERS numbers of MAX_DIGITS digits each, MAX_DEPTH nested
parentheses and signs. A result therefore has at most MAX_NUMBERS * MAX_DIGITS digits above and
below the bar.

    expression = term (("+" | "-") term)*
    term       = factor (("*" | "/") factor)*
    factor     = "-" factor | "(" expression ")" | digits

Typographic signs for times, divided by and minus, and their LaTeX commands, stand for the ASCII
ones. Anything else is an error: decimal points, powers, roots, letters, implied multiplication.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARS = 2_000
MAX_NUMBERS = 64
MAX_DIGITS = 18
MAX_DEPTH = 64

_SIGNS = {
    "\u00d7": "*",  # multiplication sign
    "\u00b7": "*",  # middle dot
    "\u22c5": "*",  # dot operator
    "\u2217": "*",  # asterisk operator
    "\u00f7": "/",  # division sign
    "\u2215": "/",  # division slash
    "\u2212": "-",  # minus sign
    "\u2013": "-",  # en dash
    "\uff08": "(",
    "\uff09": ")",
    "[": "(",
    "]": ")",
    "\\times": "*",
    "\\cdot": "*",
    "\\div": "/",
    "\\left": "",
    "\\right": "",
    "\\,": " ",
    "$": " ",
}
_TOKEN = re.compile(r"\s*(?:(\d+)|([-+*/()]))", re.ASCII)


class ArithmeticTrouble(ValueError):
    """The text is no such arithmetic, or it divides by zero; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Worked:
    """The exact value of an expression.

    Attributes:
        value: exact.
        numbers: those written in it, in order.
    """

    value: Fraction
    numbers: tuple[int, ...]


def work_out(text: str) -> Worked:
    """Reads an expression and works it out.

    Raises:
        ArithmeticTrouble: it is too long or too deep, cannot be read, or divides by zero.
    """
    reader = _Reader(_tokens(text))
    value = reader.expression(0)
    if reader.token:
        raise ArithmeticTrouble(f"unexpected {reader.token!r}")
    return Worked(value, tuple(reader.numbers))


def plain(text: str) -> str:
    """The text with the signs of typography and LaTeX as ASCII ones."""
    for sign, ascii_sign in _SIGNS.items():
        text = text.replace(sign, ascii_sign)
    return text


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_CHARS:
        raise ArithmeticTrouble(f"longer than {MAX_CHARS} characters")
    text = plain(text).strip()
    tokens: list[str] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ArithmeticTrouble(f"unexpected {text[position:].strip()[:10]!r}")
        tokens.append(found[1] or found[2])
        position = found.end()
    numbers = [token for token in tokens if token.isdigit()]
    if len(numbers) > MAX_NUMBERS or any(len(number) > MAX_DIGITS for number in numbers):
        raise ArithmeticTrouble(f"more than {MAX_NUMBERS} numbers or {MAX_DIGITS} digits")
    return tokens


class _Reader:
    """Reads tokens from the left; `token` is the next one, empty at the end."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self.numbers: list[int] = []

    @property
    def token(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def expression(self, depth: int) -> Fraction:
        value = self._term(depth)
        while self.token in ("+", "-"):
            sign = self._take()
            right = self._term(depth)
            value = value + right if sign == "+" else value - right
        return value

    def _term(self, depth: int) -> Fraction:
        value = self._factor(depth)
        while self.token in ("*", "/"):
            sign = self._take()
            right = self._factor(depth)
            if sign == "/" and not right:
                raise ArithmeticTrouble("division by zero")
            value = value * right if sign == "*" else value / right
        return value

    def _factor(self, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise ArithmeticTrouble(f"nested deeper than {MAX_DEPTH}")
        piece = self._take()
        if piece == "-":
            return -self._factor(depth + 1)
        if piece == "(":
            value = self.expression(depth + 1)
            if self._take() != ")":
                raise ArithmeticTrouble("a parenthesis is not closed")
            return value
        if not piece.isdigit():
            raise ArithmeticTrouble(f"a number is missing before {piece!r}")
        self.numbers.append(int(piece))
        return Fraction(self.numbers[-1])

    def _take(self) -> str:
        token = self.token
        self._next += 1
        return token
