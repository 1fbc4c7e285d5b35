"""Expressions that make a target of given numbers (Countdown, 24): what is close to one. Pure.

Here the value is given and the way is asked for. So an expression of the right value is wrong where
it uses other numbers than are given, or one of them too often.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from assay.audit.answers.shapes import Miss

_ARITHMETIC = re.compile(r"[\d\s.+*/()\u00d7\u00f7\u2212-]{3,80}")
_USED = re.compile(
    r"\b(?:each|every|all|exactly|only|at most)\b[^.;]{0,40}\b(?:once|one time|numbers?)\b"
    r"|\bonce\b|\b(?:use|using|from|of) (?:the |these |all |only )*(?:given )?numbers?\b",
    re.IGNORECASE,
)
_ONE_USE = re.compile(
    r"\bonce\b|\bone time\b|\b(?:all|each) of (?:the|these) numbers\b", re.IGNORECASE
)
_MOST_GIVEN = 4


def targets_of(text: str, prompt: str) -> tuple[Fraction, list[str]] | None:
    """The target, and the numbers that an expression makes it of; None where they are not given."""
    plain = text.translate(str.maketrans("\u00d7\u00f7\u2212", "*/-")).partition("=")[0]
    used = re.findall(r"\d+", plain)
    if not _ARITHMETIC.fullmatch(plain) or len(used) < 2 or not re.search(r"[-+*/]", plain):
        return None
    value = worth(plain)
    given = Counter(map(int, re.findall(r"(?<![\w.])\d+(?!\.?\w)", prompt)))
    left = given - Counter(map(int, used))
    fits = not Counter(map(int, used)) - given and _USED.search(prompt) is not None
    if value is None or value.denominator != 1 or not fits or left[int(value)] < 1:
        return None
    return value, used


def worth(text: str) -> Fraction | None:
    """The value of an expression of whole numbers; None for any other text."""
    if len(text) > 200 or not re.fullmatch(r"[\d\s+*/()-]+", text) or re.search(r"\*\*|//", text):
        return None
    try:
        return _worth(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _worth(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_worth(inner)
        case ast.BinOp(left=left, op=sign, right=right):
            a, b = _worth(left), _worth(right)
            match sign:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div():
                    return a / b
    raise ValueError(node)


def target_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Of the right value with other numbers, or with the right numbers and nearly that value."""
    found = targets_of(text, prompt)
    if found is None:
        return
    value, used = found
    given = Counter(map(int, re.findall(r"(?<![\w.])\d+(?!\.?\w)", prompt)))
    allowed = given - Counter([int(value)])
    a, b = used[0], used[-1]
    plain = text.partition("=")[0].strip()
    made = [
        (f"{value}", "the target alone"), (f"{value} + 0", "numbers that are not given"),
        (f"{value} * 1", "numbers that are not given"),
        (f"{value - 1} + 1", "numbers that are not given"),
        (f"2 * {value} - {value}", "numbers that are not given"),
        (f"{plain} + 991 - 991", "numbers that are not given"),
    ]  # fmt: skip
    if _ONE_USE.search(prompt):
        made += [
            (f"{plain} + {a} - {a}", "a number is used too often"),
            (f"{plain} + {b} - {b}", "a number is used too often"),
            (f"({plain}) * {a} / {a}", "a number is used too often"),
            (f"({plain}) * {b} / {b}", "a number is used too often"),
        ]
    for answer, note in made:
        if Counter(map(int, re.findall(r"\d+", answer))) - allowed and worth(answer) == value:
            yield "numbers-used", answer, note
    near = _nearly(tuple(sorted(map(int, used))), int(value))
    if near:
        yield "off-by-one", near, "the right numbers, and less than one more than the target"


@lru_cache(1 << 12)
def _nearly(numbers: tuple[int, ...], target: int) -> str:
    """An expression of all the numbers whose value is cut to the target, and is not it."""
    if len(numbers) > _MOST_GIVEN:
        return ""
    best, close = "", 1.0
    for value, text in _made(tuple((float(one), str(one)) for one in numbers)):
        if 1e-6 < value - target < close - 1e-9:
            best, close = text, value - target
    return best


def _made(terms: tuple[tuple[float, str], ...]) -> Iterator[tuple[float, str]]:
    """All values that the terms make, each with its expression."""
    if len(terms) == 1:
        yield terms[0]
        return
    for i, j in itertools.permutations(range(len(terms)), 2):
        (x, a), (y, b) = terms[i], terms[j]
        rest = tuple(one for place, one in enumerate(terms) if place not in (i, j))
        joined = [(x - y, "-"), *([(x / y, "/")] if y else [])]
        if i < j:
            joined += [(x + y, "+"), (x * y, "*")]
        for value, sign in joined:
            yield from _made(((value, f"({a} {sign} {b})"), *rest))
