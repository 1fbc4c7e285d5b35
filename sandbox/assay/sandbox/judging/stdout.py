r"""Whether an output is the expected one. Pure; outputs are bytes and need be no text.

exact      byte for byte
tokens     equal sequences of tokens between white space (the default)
numeric    the same, but two tokens that are decimal numbers may differ within the tolerances;
           "nan" equals "nan", an infinity the same one, in any case of letters
unordered  the lines in any order, as often each; a line's white space counts as in tokens, and
           lines without a token do not count

Numbers are compared as written, without rounding, so none is an infinity or 0 for want of bits. A
tolerance is the shortest decimal that names it: 0.1 is a tenth.

Covered: work and memory are linear in the two outputs; what a program writes beyond the expected
count of tokens or lines is not taken apart. A number has at most 4,000 characters and an exponent
of 5 digits; a longer token only equals itself.
Not covered: the cost of a large expected output.
"""

from __future__ import annotations

import decimal
import re
from collections import Counter
from decimal import Decimal
from itertools import islice
from typing import Final

from assay.sandbox.judging.model import AnswerComparison, ComparisonKind
from assay.sandbox.judging.text import brief_bytes

# Possessive throughout: a token that is almost a number costs one pass.
_NUMBER: Final = re.compile(rb"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d{1,5}+)?+")
_SPECIAL: Final = re.compile(rb"([+-]?)(?:(nan)|inf(?:inity)?)", re.IGNORECASE)
_SPACES: Final = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")
_MAX_CHARS: Final = 4_000
# Rounds a difference that is longer than any tolerance so that it stays on its side of each of
# them: the last digit of what was rounded is neither 0 nor 5.
_EXACTLY: Final = decimal.Context(
    prec=3 * _MAX_CHARS,
    rounding=decimal.ROUND_05UP,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[],
)


def compare_output(comparison: AnswerComparison, expected: bytes, actual: bytes) -> str | None:
    """None where `actual` is right, else what differs, in one line.

    Raises:
        ValueError: the rule is not one that this function decides.
    """
    match comparison.kind:
        case ComparisonKind.EXACT:
            return _exact(expected, actual)
        case ComparisonKind.DEFAULT | ComparisonKind.TOKENS:
            return _tokens(expected, actual, None)
        case ComparisonKind.NUMERIC:
            return _tokens(expected, actual, _Tolerance(comparison))
        case ComparisonKind.UNORDERED:
            return _unordered(expected, actual)
        case kind:
            raise ValueError(f"{kind.value} does not compare outputs here")


class _Tolerance:
    """How far numbers may be apart: the larger of the absolute and the relative tolerance."""

    def __init__(self, comparison: AnswerComparison) -> None:
        self._absolute = _decimal(comparison.absolute_tolerance)
        self._relative = _decimal(comparison.relative_tolerance)
        self._endless = self._absolute.is_infinite() or self._relative.is_infinite()

    def near(self, expected: bytes, actual: bytes) -> bool:
        """Whether two different tokens are numbers that are near each other."""
        ours, theirs = _number(expected), _number(actual)
        if ours is None or theirs is None:
            return _same_special(expected, actual)
        if ours == theirs or self._endless:
            return True
        allowed = _EXACTLY.multiply(self._relative, _EXACTLY.abs(ours))
        gap = _EXACTLY.abs(_EXACTLY.subtract(ours, theirs))
        return gap <= max(self._absolute, allowed)


def _decimal(tolerance: float) -> Decimal:
    return Decimal(repr(tolerance)) if tolerance > 0 else Decimal(0)


def _exact(expected: bytes, actual: bytes) -> str | None:
    if expected == actual:
        return None
    start = _first_difference(expected, actual)
    ours, theirs = expected[start : start + 400], actual[start : start + 400]
    return f"from byte {start}: expected {brief_bytes(ours)}, got {brief_bytes(theirs)}"


def _first_difference(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tokens(expected: bytes, actual: bytes, tolerance: _Tolerance | None) -> str | None:
    ours = expected.split()
    theirs = actual.split(None, len(ours))
    if ours == theirs:
        return None
    given = islice(theirs, len(ours))  # what is behind them is one piece
    for index, (mine, their) in enumerate(zip(ours, given, strict=False), start=1):
        if mine != their and not (tolerance and tolerance.near(mine, their)):
            return f"token {index}: expected {brief_bytes(mine)}, got {brief_bytes(their)}"
    return _counted("tokens", len(ours), len(theirs))


def _counted(things: str, expected: int, given: int) -> str | None:
    """What is wrong with a count; one that is too great is not known further."""
    if given == expected:
        return None
    return f"expected {expected} {things}, got {given if given < expected else 'more'}"


def _number(token: bytes) -> Decimal | None:
    if len(token) <= _MAX_CHARS and _NUMBER.fullmatch(token):
        return Decimal(token.decode("ascii"))
    return None


def _same_special(expected: bytes, actual: bytes) -> bool:
    ours, theirs = _SPECIAL.fullmatch(expected), _SPECIAL.fullmatch(actual)
    if ours is None or theirs is None:
        return False
    if ours[2] or theirs[2]:
        return bool(ours[2] and theirs[2])
    return (ours[1] == b"-") == (theirs[1] == b"-")


def _unordered(expected: bytes, actual: bytes) -> str | None:
    ours = _lines(expected)
    theirs = _lines(actual, len(ours))
    if len(theirs) > len(ours):
        return _counted("lines", len(ours), len(theirs))
    wanted, given = Counter(ours), Counter(theirs)
    if wanted == given:
        return None
    return f"the line {brief_bytes(next(iter(wanted - given)))} is missing"


def _lines(output: bytes, most: int = -1) -> list[bytes]:
    """The lines that have a token, one space between tokens; those after `most` are one."""
    text = output.translate(_SPACES)
    for run, one in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
        while run in text:
            text = text.replace(run, one)
    text = text.strip(b" \n")
    return text.split(b"\n", most) if text else []
