"""Rewards for the equation of a straight line."""

from __future__ import annotations

import re
from fractions import Fraction

NUMBER = r"\d{1,6}(?:/\d{1,6})?"
TERM = re.compile(rf"([+-])(?:({NUMBER})(?:\*?([xy]))?|([xy]))", re.ASCII)
Line = tuple[Fraction, Fraction, Fraction]


def side(text: str) -> Line:
    """The factors of x and y, and the number; ValueError for what is no sum of such terms."""
    said = re.sub(r"\s*([+-])\s*", r"\1", text.strip())
    said = said if said[:1] in {"+", "-"} else f"+{said}"
    found = {"x": Fraction(0), "y": Fraction(0), "": Fraction(0)}
    terms = list(TERM.finditer(said))
    if "".join(term[0] for term in terms) != said:
        raise ValueError(text)
    for sign, size, letter, alone in (term.groups() for term in terms):
        found[letter or alone or ""] += Fraction(f"{sign}{size or 1}")
    return found["x"], found["y"], found[""]


def line(text: str) -> Line | None:
    """What stands left and right of the one sign of equality, as a x + b y + c = 0."""
    left, _, right = text.partition("=")
    try:
        x, y, one = (a - b for a, b in zip(side(left), side(right), strict=True))
    except (ValueError, ZeroDivisionError):
        return None
    return x, y, one


def slope_and_intercept(response: str, reference: str) -> float:
    def read(text: str) -> object:
        found = re.fullmatch(r"\s*y ?= ?(-?[\d/]*)x(?:\D+(\d+))?\s*", text)
        return found.groups() if found else text.strip()

    return 1.0 if read(response) == read(reference) else 0.0


def proportional(response: str, reference: str) -> float:
    """Equations of one line are multiples of one another."""
    got, wanted = line(response), line(reference)
    if got is None or wanted is None:
        return 0.0
    (a, b, c), (d, e, f) = got, wanted
    return 1.0 if a * e == b * d and a * f == c * d and b * f == c * e else 0.0


def crossings(found: Line | None) -> object:
    """Where a line meets the axes."""
    if found is None or not (found[0] or found[1]):
        return None
    x, y, one = found
    return (-one / x if x else None, -one / y if y else None)


def same_crossings(response: str, reference: str) -> float:
    got = crossings(line(response))
    return 1.0 if got is not None and got == crossings(line(reference)) else 0.0


def same_line(response: str, reference: str) -> float:
    """Any equation of it."""
    got = line(response)
    if got is None or not (got[0] or got[1]):
        return 0.0
    return proportional(response, reference)


def line_text(response: str, reference: str) -> float:
    return 1.0 if response.replace(" ", "").strip() == reference.replace(" ", "") else 0.0
