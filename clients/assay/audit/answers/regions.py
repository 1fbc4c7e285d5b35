r"""Intervals and inequalities: the part of the line that a text names, and what is close. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator
from fractions import Fraction

from assay.audit.answers.codes import near_numbers, replaced
from assay.audit.answers.shapes import Miss

_INTEGERS = re.compile(r"\b(?:integers?|whole|natural)\b", re.IGNORECASE)
_PLAIN = r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)"
_END = r"[-+]?(?:\d+(?:\.\d+)?(?:/\d+)?|inf)"
_INTERVAL = re.compile(rf"([\[\](])({_END})[,;]({_END})([\])\[])")
_ONE_SIDED = re.compile(rf"([a-z])(<=|>=|<|>|=)({_END})|({_END})(<=|>=|<|>|=)([a-z])")
_TWO_SIDED = re.compile(rf"({_END})(<=|<)([a-z])(<=|<)({_END})|({_END})(>=|>)([a-z])(>=|>)({_END})")
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}
_SIGNS = (
    ("\\left", ""), ("\\right", ""), ("\\infty", "inf"), ("\u221e", "inf"), ("infinity", "inf"),
    ("\\leq", "<="), ("\\geq", ">="), ("\\le", "<="), ("\\ge", ">="), ("\\lt", "<"), ("\\gt", ">"),
    ("\u2264", "<="), ("\u2265", ">="), ("=<", "<="), ("=>", ">="), ("\u2212", "-"), ("$", ""),
    ("\\cup", "|"), ("\u222a", "|"),
)  # fmt: skip
_Piece = tuple[Fraction | float, bool, Fraction | float, bool]


def _plain_region(text: str) -> str:
    text = re.sub(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}", r"\1/\2", text)
    for sign, plain in _SIGNS:
        text = text.replace(sign, plain)
    text = re.sub(r"\s+or\s+|(?<=[\])])\s*U\s*(?=[\[(])", "|", text, flags=re.IGNORECASE)
    text = re.sub(r"\s+and\s+", "&", text, flags=re.IGNORECASE)
    text = re.sub(r"^\s*[a-z]\s*(?:\\in|\u2208)\s*", "", text)
    return re.sub(r"\s", "", text).replace("oo", "inf")


def _bound(text: str) -> Fraction | float:
    if text.endswith("inf"):
        return -math.inf if text.startswith("-") else math.inf
    above, _, below = text.partition("/")
    return Fraction(above) / Fraction(below or 1)


def _half(op: str, end: Fraction | float) -> _Piece:
    """Where x op end holds."""
    shut = op.endswith("=") and abs(end) != math.inf
    if op == "=":
        return end, True, end, True
    return (-math.inf, False, end, shut) if op[0] == "<" else (end, shut, math.inf, False)


def _piece(text: str) -> _Piece | None:
    found = _INTERVAL.fullmatch(text)
    if found:
        low, high = _bound(found[2]), _bound(found[3])
        shut = found[1] == "[" and low != -math.inf, found[4] == "]" and high != math.inf
        return low, shut[0], high, shut[1]
    one = _ONE_SIDED.fullmatch(text)
    if one:
        op, end = (one[2], one[3]) if one[1] else (_MIRRORED[one[5]], one[4])
        return _half(op, _bound(end))
    two = _TWO_SIDED.fullmatch(text)
    if two:
        a, op, other, b = (two[1], two[2], two[4], two[5]) if two[1] else (
            two[10], _MIRRORED[two[9]], _MIRRORED[two[7]], two[6])  # fmt: skip
        above, below = _half(_MIRRORED[op], _bound(a)), _half(other, _bound(b))
        return above[0], above[1], below[2], below[3]
    return None


def _met(pieces: list[_Piece]) -> _Piece:
    low = max(pieces, key=lambda one: (one[0], not one[1]))
    high = min(pieces, key=lambda one: (one[2], one[3]))
    return low[0], low[1], high[2], high[3]


def region_of(text: str) -> frozenset[Hashable]:
    """The pieces of the line that a text names, joined where they meet."""
    try:
        parts = [
            [_piece(one) for one in part.split("&")] for part in _plain_region(text).split("|")
        ]
    except (ValueError, ZeroDivisionError):
        return frozenset()
    if any(one is None for part in parts for one in part):
        return frozenset()
    met = [_met([one for one in part if one is not None]) for part in parts]
    pieces = sorted(
        (one for one in met if one[0] < one[2] or (one[0] == one[2] and one[1] and one[3])),
        key=lambda one: (one[0], not one[1]),
    )
    joined: list[_Piece] = []
    for one in pieces:
        last = joined[-1] if joined else None
        if last and (last[2] > one[0] or (last[2] == one[0] and (last[3] or one[1]))):
            high = max(last, one, key=lambda each: (each[2], each[3]))
            joined[-1] = (last[0], last[1], high[2], high[3])
        else:
            joined.append(one)
    return frozenset((tuple(joined),))


_IN_OR_OUT = "an end is in that is not, or is out"
_OPERATOR = re.compile(r"<=|>=|\\leq?|\\geq?|[<>\u2264\u2265]")
_STRICT = {"<=": "<", ">=": ">", "\\le": "<", "\\leq": "<", "\\ge": ">", "\\geq": ">",
           "\u2264": "<", "\u2265": ">", "<": "<=", ">": ">="}  # fmt: skip
_TURNED = {"<=": ">=", ">=": "<=", "\\le": "\\ge", "\\leq": "\\geq", "\\ge": "\\le",
           "\\geq": "\\leq", "\u2264": "\u2265", "\u2265": "\u2264",
           "<": ">", ">": "<"}  # fmt: skip


def near_regions(text: str, prompt: str) -> Iterator[Miss]:
    """Another end, another sign, an end in or out; none that needs more than one change."""
    opened = {"[": "(", "(": "[", "]": ")", ")": "]"}
    for one in re.finditer(r"[\[(\])]", text):
        yield (
            "component",
            replaced(text, one, opened[one[0]]),
            _IN_OR_OUT,
        )
    for one in _OPERATOR.finditer(text):
        yield (
            "component",
            replaced(text, one, _STRICT[one[0]]),
            _IN_OR_OUT,
        )
        yield "component", replaced(text, one, _TURNED[one[0]]), "the sign is turned"
        yield "component", replaced(text, one, "="), "an equation"
    sides = re.fullmatch(rf"(.+?)(\s*(?:{_OPERATOR.pattern})\s*)([^<>=]+)", text)
    if sides:
        yield "component", f"{sides[3]}{sides[2]}{sides[1]}", "the sides are exchanged"
    yield from near_numbers(text)
    for one in re.finditer(_PLAIN, text):
        if one.start() and text[one.start() - 1] == "-":
            minus = text[: one.start() - 1] + text[one.start() :]
            yield "component", minus, "the sign of an end is left out"
        else:
            yield "component", replaced(text, one, f"-{one[0]}"), "the sign of an end is turned"
        yield "component", replaced(text, one, f"{one[0]}000"), "an end is far away"
    for one in re.finditer(r"-?(?:inf(?:inity)?|\\infty|\u221e|oo)\b", text):
        yield "component", replaced(text, one, "0"), "an end where there is none"
    if not _INTEGERS.search(prompt):
        yield from _of_whole_numbers(text)
    yield from _parts(text)


def _of_whole_numbers(text: str) -> Iterator[Miss]:
    """The same whole numbers, and no others."""
    for one in re.finditer(r"\((\d+)(?=,)", text):
        yield (
            "component",
            replaced(text, one, f"[{int(one[1]) + 1}"),
            "the same whole numbers, no others",
        )
    for one in re.finditer(r"(\d+)\)", text):
        new = replaced(text, one, f"{int(one[1]) - 1}]")
        yield "component", new, "the same whole numbers, no others"


def _parts(text: str) -> Iterator[Miss]:
    for mark in (" or ", " U ", "\u222a", "\\cup", " and "):
        if mark in text:
            yield "component", text.partition(mark)[0].strip(), "a part of it"
            yield "component", text.rpartition(mark)[2].strip(), "a part of it"
            both = {" or ": " and ", " and ": " or "}.get(mark)
            if both:
                yield "component", text.replace(mark, both), "and for or"
