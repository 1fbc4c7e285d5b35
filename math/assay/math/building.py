"""Nodes built out of literals, subscripts and signs."""

# ruff: noqa: PLR0911 - one case, one return

from __future__ import annotations

from fractions import Fraction

from assay.math import vocabulary
from assay.math.lexer import OverLimit, Unreadable
from assay.math.nodes import (
    MINUS_ONE,
    Based,
    Call,
    Constant,
    Group,
    Matrix,
    Mul,
    Node,
    Number,
    Pow,
    Symbol,
    Text,
)

_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
               "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "twenty": 20,
               "binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16, "hex": 16}  # fmt: skip
_LITERALS: dict[str, Number] = {str(value): Number(Fraction(value)) for value in range(200)}
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def literal(text: str) -> Number:
    r"""The number that digits stand for: a point, an exponent, \x01 before a repeating part."""
    known = _LITERALS.get(text)
    if known is not None:
        return known
    mantissa, _, exponent = text.lower().partition("e")
    plain, _, repeating = mantissa.partition("\x01")
    whole, _, decimals = plain.partition(".")
    power = int(exponent or 0)
    if abs(power) > 5000:
        raise OverLimit("a decimal exponent beyond 5000")
    value = Fraction(int((whole + decimals) or "0"), 10 ** len(decimals))
    if repeating:
        value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10 ** len(decimals))
    if power:
        value *= Fraction(10) ** power
    if "." not in mantissa and not exponent:
        return Number(value)
    digits = len((whole + decimals).lstrip("0")) or 1
    return Number(value, digits, len(decimals) - power, repeating=bool(repeating))


def negated(node: Node) -> Node:
    """Minus one times the node."""
    return Mul((MINUS_ONE, *node.factors) if isinstance(node, Mul) else (MINUS_ONE, node))


def quotient(above: Node, below: Node) -> Node:
    """The node over another."""
    return Mul((above, Pow(below, MINUS_ONE)))


def based(digits: str, subscript: str, *, prefixed: bool = False) -> Based:
    """A number in the base that a subscript names, perhaps with a point.

    Raises:
        Unreadable: the subscript is no base, or a digit is too large for it.
    """
    word = subscript.strip("() ").lower().removeprefix("base").strip()
    base = int(word) if word.isdigit() and len(word) < 3 else _BASE_WORDS.get(word, 0)
    if not 2 <= base <= 36 or len(digits) > 400:
        raise Unreadable("a subscript that is no base")
    whole, _, part = digits.partition(".")
    if any(not 0 <= _DIGITS.find(digit) < base for digit in whole + part):
        raise Unreadable("a digit too large for its base")
    value = Fraction(int(whole + part, base), base ** len(part))
    kept, behind = whole.lstrip("0") or "0", part.rstrip("0")
    return Based(f"{kept}.{behind}" if behind else kept, base, value, prefixed=prefixed)


def check_repeats(node: Node, words: Text) -> None:
    """Accepts `5 (five)`.

    Raises:
        Unreadable: the words are not those of the number before them.
    """
    value = vocabulary.NUMBER_WORDS.get(words.words.strip().lower())
    if not isinstance(node, Number) or node.value != value:
        raise Unreadable("words in a product")


def raised(base: Node, exponent: Node) -> Node:
    """A power; of a matrix or a row in brackets with the exponent T, its transpose."""
    if exponent == Symbol("T"):
        if isinstance(base, Matrix):
            return Matrix(tuple(zip(*base.rows, strict=True)))
        if isinstance(base, Group) and base.opening in ("(", "[") and len(base.items) > 1:
            return Matrix(tuple((item,) for item in base.items))
    return Pow(base, exponent)


def called(name: str, arguments: tuple[Node, ...], base: Node | None) -> Node:
    """A function applied, in the names of `nodes`: exp, ln and cube roots have no nodes."""
    if name == "log10":
        return Call("log", (*arguments, Number(Fraction(10))))
    if name == "ln":
        return Call("log", arguments)
    if name == "exp" and len(arguments) == 1:
        return Pow(Constant("e"), arguments[0])
    if name == "cbrt":
        return Call("root", (*arguments, Number(Fraction(3))))
    if name == "cis" and len(arguments) == 1:
        return Pow(Constant("e"), Mul((Constant("i"), arguments[0])))
    if name in ("max", "min") and len(arguments) == 1 and _is_number(arguments[0]):
        raise Unreadable("the largest of one number is a label")
    if base is not None:
        return Call(name, (*arguments, base))
    return Call(name, arguments)


def _is_number(node: Node) -> bool:
    return isinstance(node, Number) or (
        isinstance(node, Mul) and all(isinstance(factor, Number) for factor in node.factors)
    )


def is_proper_fraction(node: Node) -> bool:
    """Whether it is a fraction of two whole numbers, as written, below 1."""
    match node:
        case Mul((Number(above, 0), Pow(Number(below, 0), exponent))):
            return exponent is MINUS_ONE and above < below and below.denominator == 1
        case _:
            return False
