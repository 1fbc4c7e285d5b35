r"""Circles and lines in words as equations: `the circle with center (5, -5) and radius 2`.

Only what is described in full, and with no word beyond the table: `a circle through (1, 2)` is no
equation. Words before an equation that only say what it describes are taken off: `the line y = 2x`.

Linear in the length of the text.
"""

from __future__ import annotations

import re

from assay.math.notation import TEXT

_MAX_CHARS = 240
_WRAPPED = re.compile(rf"{TEXT}\s?\{{([^{{}}]*)\}}")
_VALUE = (
    r"-?(?:\d{1,9}(?:\.\d{1,9})?(?:/\d{1,9})?(?:\s?\\sqrt\s?\{\s?\d{1,9}\s?\})?"
    r"|\\sqrt\s?\{\s?\d{1,9}\s?\}|\\d?frac\s?\{\s?\d{1,9}\s?\}\s?\{\s?\d{1,9}\s?\})"
)
_POINT = rf"\(\s?(?P<x>{_VALUE})\s?,\s?(?P<y>{_VALUE})\s?\)"
_CENTER = re.compile(rf"\bcent(?:er|re)(?:ed)?(?: at| is|:)? {_POINT}")
_RADIUS = re.compile(rf"\bradius(?: of| is|:| =)? (?P<radius>{_VALUE})")
_SLOPE = re.compile(rf"\b(?:slope|gradient)(?: of| is| =)? (?P<slope>{_VALUE})")
_INTERCEPT = re.compile(rf"\b(?:y\s?-?\s?)intercept(?: of| is| at| =)? (?P<intercept>{_VALUE})")
_THROUGH = re.compile(rf"\b(?:passing )?through(?: the point)? {_POINT}")
_FILLERS = re.compile(
    r"(?:\b(?:the|an?|its|with|of|having|and|is|locus|set|all|points|on|whose|straight)\b|[\s,.])*"
)
_FIGURE = r"(?:line|plane|circle|ellipse|parabola|hyperbola|curve)"
_LEAD = re.compile(
    rf"(?:the (?:locus|set)(?: of (?:all )?points)? (?:is|on) )?(?:the |an? )?"
    rf"(?:straight )?{_FIGURE}(?: (?:with|of) equation| given by|:)? (?=[^,;]{{1,160}}=)"
    r"|(?:the (?:locus|set) of )?(?:all )?(?:the )?points (?:\(\s?x\s?,\s?y\s?(?:,\s?z\s?)?\) )?"
    r"(?:with|such that|satisfying|for which|where) (?=[^,;]{1,160}=)",
    re.IGNORECASE,
)


def equation(form: str) -> str:
    """The equation that a form describes in words; the form itself where it describes none."""
    if len(form) > _MAX_CHARS:
        return form
    said = " ".join(_WRAPPED.sub(r" \1 ", form).split()).rstrip(" .")
    lead = _LEAD.match(said)
    if lead is not None:
        return said[lead.end() :]
    if "circle" in said.lower():
        return _circle(said) or form
    return _line(said) or form


def _circle(said: str) -> str:
    center, radius = _CENTER.search(said), _RADIUS.search(said)
    if center is None or radius is None or not _only(said, "circle", center, radius):
        return ""
    return f"(x - ({center['x']}))^2 + (y - ({center['y']}))^2 = ({radius['radius']})^2"


def _line(said: str) -> str:
    slope, intercept, point = (mark.search(said) for mark in (_SLOPE, _INTERCEPT, _THROUGH))
    if slope is None:
        return ""
    if intercept is not None and _only(said, "line", slope, intercept):
        return f"y = ({slope['slope']})x + ({intercept['intercept']})"
    if point is not None and _only(said, "line", slope, point):
        return f"y - ({point['y']}) = ({slope['slope']})(x - ({point['x']}))"
    return ""


def _only(said: str, figure: str, *parts: re.Match[str]) -> bool:
    """Whether a text is the name of a figure, these parts and fillers."""
    rest = said
    for part in sorted(parts, key=lambda match: match.start(), reverse=True):
        rest = f"{rest[: part.start()]} {rest[part.end() :]}"
    rest, found = re.subn(rf"\b{figure}\b", " ", rest, flags=re.IGNORECASE)
    return found == 1 and _FILLERS.fullmatch(rest.lower()) is not None
