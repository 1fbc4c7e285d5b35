r"""Whether an output is the expected one. Pure; outputs are bytes and need be no text.

exact      byte for byte
tokens     equal sequences of tokens between white space (the default)
numeric    the same, but two tokens that are decimal numbers may differ within the tolerances;
           whole numbers without rounding; "nan" is met by "nan", an infinity by the same one,
           in any case of letters
unordered  the lines in any order, as often each; a line's white space counts as in tokens, and
           lines without a token do not count
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from assay.sandbox.judging.model import Comparison, ComparisonKind
from assay.sandbox.judging.text import brief_bytes
from assay.sandbox.judging.values import numbers_near

_NUMBER: Final = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,5})?")
_WHOLE: Final = re.compile(rb"[+-]?\d{1,4000}")
_SPECIAL: Final = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_MAX_DIGITS: Final = 4_000


def compare_output(comparison: Comparison, expected: bytes, actual: bytes) -> str | None:
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
            return _tokens(expected, actual, comparison)
        case ComparisonKind.UNORDERED:
            return _unordered(expected, actual)
        case kind:
            raise ValueError(f"{kind.value} does not compare outputs here")


def _exact(expected: bytes, actual: bytes) -> str | None:
    if expected == actual:
        return None
    start = _first_difference(expected, actual)
    ours, theirs = expected[start : start + 400], actual[start : start + 400]
    return f"from byte {start}: expected {brief_bytes(ours)}, got {brief_bytes(theirs)}"


def _first_difference(left: bytes, right: bytes) -> int:
    """Where two different strings part."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tokens(expected: bytes, actual: bytes, comparison: Comparison | None) -> str | None:
    ours, theirs = expected.split(), actual.split()
    if ours == theirs:
        return None
    for index, (mine, their) in enumerate(zip(ours, theirs, strict=False), start=1):
        if mine != their and not (comparison and _near(mine, their, comparison)):
            return f"token {index}: expected {brief_bytes(mine)}, got {brief_bytes(their)}"
    if len(ours) != len(theirs):
        return f"expected {len(ours)} tokens, got {len(theirs)}"
    return None


def _near(expected: bytes, actual: bytes, comparison: Comparison) -> bool:
    ours, theirs = _number(expected), _number(actual)
    return ours is not None and theirs is not None and numbers_near(ours, theirs, comparison)


def _number(token: bytes) -> float | None:
    """The number that a token is, a whole one as int; None where it is none."""
    if _WHOLE.fullmatch(token):
        return int(token)
    if len(token) <= _MAX_DIGITS and (_NUMBER.fullmatch(token) or _SPECIAL.fullmatch(token)):
        return float(token)
    return None


def _unordered(expected: bytes, actual: bytes) -> str | None:
    ours, theirs = _lines(expected), _lines(actual)
    if ours == theirs:
        return None
    missing, extra = ours - theirs, theirs - ours
    if missing:
        return f"the line {brief_bytes(next(iter(missing)))} is missing"
    return f"the line {brief_bytes(next(iter(extra)))} is too much"


def _lines(output: bytes) -> Counter[bytes]:
    return Counter(joined for line in output.split(b"\n") if (joined := b" ".join(line.split())))
