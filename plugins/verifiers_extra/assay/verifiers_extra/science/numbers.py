r"""Decimal numbers in text, read exactly. Linear: every pattern is of bounded width.

Signs, thousands separators (1,234.5; 1{,}234; 1 234 is two numbers), decimals, powers of ten
(1.2e-3; 1.2 x 10^{-3}, with times signs and LaTeX; 10^5 alone; superscript digits) and fractions of
whole numbers (3/4, \frac{3}{4}). At most MAX_DIGITS digits and exponents up to MAX_EXPONENT: what
is beyond is no number, so a value has at most a few hundred digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 40
MAX_EXPONENT = 400

_SUPERSCRIPTS = {
    **{ord(sign): digit for sign, digit in zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)},
    ord("⁻"): "-",
    ord("⁺"): "+",
}
_RAISED = re.compile(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}")
_SIGNS = {
    "\u2212": "-",  # minus sign
    "\u2013": "-",  # en dash
    "\u00d7": "*",  # multiplication sign
    "\u00b7": "*",  # middle dot
    "\u22c5": "*",  # dot operator
    "\\times": "*",
    "\\cdot": "*",
    "\\ast": "*",
    "{,}": ",",
    "\\!": "",
}
_DIGITS = r"(?:\d{1,3}(?:,\d{3}){1,12}|\d{1,40})(?!\d)"
_POWER = r"(?:\{[ ]{0,4}([+-]?\d{1,4})[ ]{0,4}\}|\(([+-]?\d{1,4})\)|([+-]?\d{1,4}))"
_TEN = rf"10[ ]{{0,4}}(?:\^|\*\*)[ ]{{0,4}}{_POWER}"
NUMBER = re.compile(
    rf"(?:(?P<sign>[+-])[ ]{{0,4}})?(?:"
    rf"\\[dt]?frac[ ]{{0,4}}\{{(?P<top>\d{{1,40}})\}}[ ]{{0,4}}\{{(?P<bottom>\d{{1,40}})\}}"
    rf"|(?P<over>\d{{1,12}})[ ]{{0,2}}/[ ]{{0,2}}(?P<under>\d{{1,12}})(?![\d.])"
    rf"|{_TEN}(?!\d)"
    rf"|(?P<whole>{_DIGITS}(?:\.\d{{0,40}}(?!\d))?|\.\d{{1,40}}(?!\d))"
    rf"(?:[eE](?P<e>[+-]?\d{{1,4}})(?!\d)"
    rf"|[ ]{{0,4}}(?:\*|[xX])[ ]{{0,4}}{_TEN}(?!\d))?"
    rf")"
)


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number of a text.

    Attributes:
        value: exact.
        figures: its significant figures as written; 0 for a fraction or a bare power of ten.
        start: its place in the text as `plain` gives it.
        end: where it ends.
    """

    value: Fraction
    figures: int
    start: int
    end: int


def plain(text: str) -> str:
    """The text with superscripts as ^n and typographic and LaTeX signs as ASCII ones."""
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    for sign, ascii_sign in _SIGNS.items():
        text = text.replace(sign, ascii_sign)
    return text


def find_numbers(text: str) -> list[WrittenNumber]:
    """The numbers of a plain text, in order; those that are part of a word or an index are none."""
    found = []
    for match in NUMBER.finditer(text):
        before = text[match.start() - 1] if match.start() else " "
        if before.isalnum() or before in "_^.\\":
            continue
        number = _number(match)
        if number is not None:
            found.append(number)
    return found


def significant_figures(digits: str) -> int:
    """How many figures of a decimal are significant; trailing zeros of a whole number are not."""
    digits = digits.replace(",", "")
    bare = digits.replace(".", "").lstrip("0")
    if "." not in digits:
        bare = bare.rstrip("0")
    return max(1, len(bare))


def rounded(value: Fraction, figures: int) -> Fraction:
    """The value rounded to so many significant figures, halves away from zero."""
    if not value:
        return value
    size = abs(value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    if size < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent - figures + 1)
    steps = (size / unit + Fraction(1, 2)).__floor__()
    return steps * unit * (1 if value > 0 else -1)


def _number(match: re.Match[str]) -> WrittenNumber | None:
    parts = match.groupdict()
    exponent = next((int(group) for group in _exponents(match) if group), 0)
    if abs(exponent) > MAX_EXPONENT:
        return None
    figures = 0
    if parts["top"] or parts["over"]:
        bottom = int(parts["bottom"] or parts["under"])
        if not bottom:
            return None
        value = Fraction(int(parts["top"] or parts["over"]), bottom)
    elif parts["whole"]:
        figures = significant_figures(parts["whole"])
        digits = parts["whole"].replace(",", "")
        value = Fraction(digits + "0" if digits.endswith(".") else digits)
    else:
        value = Fraction(1)
    value *= Fraction(10) ** exponent
    return WrittenNumber(
        -value if parts["sign"] == "-" else value, figures, match.start(), match.end()
    )


def _exponents(match: re.Match[str]) -> list[str | None]:
    named = set(match.re.groupindex.values()) - {match.re.groupindex["e"]}
    return [group for index, group in enumerate(match.groups(), 1) if index not in named]
