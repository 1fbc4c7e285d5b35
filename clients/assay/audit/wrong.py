r"""Near misses: answers that are certainly wrong and look right to a careless reader. Pure.

Each is made from a right answer by a rule that changes what it says, and is kept only where
`is_certainly_wrong` agrees or the rule alone is proof. Where the right answer's number stands in a
near miss, it is not the last of its numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from assay.audit.truth import (
    Truth,
    is_certainly_wrong,
    numbers_in,
    read_number,
    squeezed,
    words_of,
    written,
)

Miss = tuple[str, str, str]
"""The class, the answer, and how it was made."""

_LEAST_CHANGE = Fraction(1, 200)
_LEAST_DECIMAL = Fraction(1, 50)
_UNITS = {
    "km": "m", "m": "km", "cm": "m", "mm": "cm", "kg": "g", "g": "kg", "mg": "g", "s": "h",
    "h": "s",
    "hours": "seconds", "minutes": "days", "days": "minutes", "meters": "miles", "miles": "inches",
    "feet": "miles", "inches": "miles", "dollars": "cents", "cents": "dollars", "J": "kJ",
    "kJ": "J", "N": "kN", "kN": "N", "W": "kW", "kW": "W", "V": "mV", "mol": "mmol", "L": "mL",
    "mL": "L", "seconds": "hours", "years": "days", "grams": "tons",
}  # fmt: skip
_OTHERS = ("Lisbon", "Kelvin", "granite", "Monday", "violet", "Saturn")


def near_misses(truth: Truth, tolerance: float = 0.0) -> Iterator[Miss]:
    """The near misses of a right answer, each once."""
    seen = {squeezed(text) for text in truth.texts}
    for kind, answer, note in _made(truth, tolerance):
        text = answer if kind == "look-alike" else squeezed(answer)
        if text not in seen:
            seen.add(text)
            yield kind, answer, note


def plain_wrong(truth: Truth, count: int = 2) -> list[str]:
    """Wrong answers of the right one's sort, for texts that need some; fewer where none is sure."""
    found: list[str] = []
    if truth.sort == "number" and truth.value is not None:
        steps = (1, 2, 3, 5, 7, 11, 13)
        scale = Fraction(1, 1) if truth.places in (0, None) else Fraction(1, 10)
        for step in steps:
            found.append(written(truth.value + step * max(scale, abs(truth.value) / 20), truth))
            found.append(written(truth.value + step * scale, truth))
    elif truth.sort == "choice":
        found = [letter for letter in truth.letters if letter not in truth.texts[0]]
    elif truth.sort == "polar":
        found = ["no" if is_certainly_wrong("no", truth) else "yes"]
    elif truth.sort == "words":
        found = list(_OTHERS)
    elif truth.sort == "list":
        found = [", ".join(part) for part in _other_lists(truth.parts)]
    elif truth.sort == "formula":
        return [f"({truth.text})+1", f"({truth.text})+2"][:count]
    sure = [one for one in dict.fromkeys(found) if is_certainly_wrong(one, truth)]
    return sure[:count]


def _other_lists(parts: Sequence[str]) -> list[list[str]]:
    """Two lists of the same length and sort, without a common part."""
    numbers = [read_number(part) for part in parts]
    known = [one for one in numbers if one is not None]
    if len(known) < len(parts):
        return [list(_OTHERS[: len(parts)]), list(reversed(_OTHERS[: len(parts)]))]
    top = int(max(abs(one.value) for one in known)) + 1
    return [[str(top + step + shift) for step in range(len(parts))] for shift in (1, 101)]


def _made(truth: Truth, tolerance: float) -> Iterator[Miss]:
    match truth.sort:
        case "number":
            yield from _numbers(truth, tolerance)
        case "choice":
            for letter in truth.letters:
                if is_certainly_wrong(letter, truth):
                    yield "another-choice", letter, "another letter of the choice"
        case "polar":
            for other in ("yes", "no", "True", "False"):
                if is_certainly_wrong(other, truth):
                    yield "opposite", other, "the opposite"
        case "words":
            yield from _words(truth)
        case "list":
            yield from _lists(truth)
        case "formula":
            yield "off-by-one", f"({truth.text})+1", "one more"
            yield "off-by-one", f"({truth.text})-1", "one less"


def _numbers(truth: Truth, tolerance: float) -> Iterator[Miss]:
    value = truth.value
    assert value is not None  # noqa: S101 - of a number
    for kind, answer, note in (*_changed(value, truth), *_extended(value, truth)):
        given = read_number(answer)
        unlike = given is None and _ends_otherwise(answer, value)
        far = given is not None and abs(given.value - value) >= abs(value) * _least(truth)
        sure = far and is_certainly_wrong(answer, truth, tolerance)
        if kind in ("look-alike", "unit") or unlike or sure:
            yield kind, answer, note


def _least(truth: Truth) -> Fraction:
    """How far off a near miss is, relative: less may be meant to be right, or rounded away."""
    return _LEAST_DECIMAL if truth.places else _LEAST_CHANGE


def _changed(value: Fraction, truth: Truth) -> Iterator[Miss]:
    """Other numbers, written as the right one is."""
    if value != 0:
        yield "sign", written(-value, truth), "the sign is turned"
    if truth.places == 0:
        # Where one is less than that, a relative tolerance may be meant.
        by = max(1, math.ceil(abs(value) * _LEAST_CHANGE))
        steps = [(Fraction(by), f"{by} more"), (Fraction(-by), f"{by} less")]
        if abs(value) > 50:
            steps.append((Fraction(round(value / 100) or 1), "1 % more"))
            steps.append((Fraction(round(value / 20)), "5 % more"))
        if abs(value) < 2_000:
            steps += [(Fraction(10), "ten more"), (Fraction(1000), "a thousand more")]
    else:
        # Beyond what a reader of decimals may round away.
        least = max(abs(value) / 40, Fraction(2, 10 ** (truth.places or 2)))
        steps = [(least, "2.5 % more"), (-least, "2.5 % less"), (abs(value) / 4, "a quarter more")]
        if truth.places and abs(value - int(value)) >= Fraction(1, 20):
            note = "the decimal places are cut off"
            yield "cut", f"{int(value)}{truth.unit}", note
            yield "cut", f"{round(value)}{truth.unit}", "rounded to a whole number"
    for step, note in steps:
        yield "off-by-one", written(value + step, truth), note
    if truth.places is None:
        turned = written(1 / value, truth) if value else "1"
        yield "upside-down", turned, "upside down"
        yield "upside-down", f"{value.denominator}/{value.numerator}", "upside down"
        yield "digits", f"{value.numerator}{value.denominator}{truth.unit}", "without its bar"
        yield "cut", f"{value.numerator}", "the numerator alone"
        yield "cut", f"{value.denominator}", "the denominator alone"
    else:
        yield "scaled", written(value * 10, truth), "ten times"
        yield "scaled", written(value * 1000, truth), "a thousand times"
    digits = str(abs(int(value)))
    sign = "-" if value < 0 else ""
    if truth.places == 0:
        yield "digits", f"{sign}{digits[::-1]}{truth.unit}", "the digits in reverse"
        yield "digits", f"{sign}{digits[1:] or '0'}{truth.unit}", "the first digit is left out"
        yield "digits", f"{sign}{digits[:-1] or '0'}{truth.unit}", "the last digit is left out"
        yield "digits", f"{sign}{''.join(sorted(digits))}{truth.unit}", "the digits, sorted"
        yield "digits", f"{sign}{digits[0]}{'9' * (len(digits) - 1)}{truth.unit}", "its first digit"
    else:
        text = truth.text
        yield "digits", re.sub(r"[./]", "", text), "without its point or bar"
        yield "digits", text.replace(".", "7"), "another digit where the point is"


def _extended(value: Fraction, truth: Truth) -> Iterator[Miss]:
    """The right number's text with something that makes it another number."""
    text = truth.text.replace(",", "")
    core = text.removesuffix(truth.unit)
    if not re.fullmatch(r"-?[\d.]+", core):
        return
    unit = truth.unit
    if unit.strip() in _UNITS:
        yield "unit", f"{core} {_UNITS[unit.strip()]}", "another unit"
    two = "2" if abs(value) != 2 else "3"
    seven = "7" if abs(value) != 7 else "3"
    yield "digits", f"{core}{seven}{unit}", "a digit is put behind it"
    yield "digits", f"{core.replace('-', '')}{core.replace('-', '')}{unit}", "twice in a row"
    yield "digits", f"{'-' * (value < 0)}1{core.lstrip('-')}{unit}", "a digit is put before it"
    if truth.places == 0:
        yield "read-in-part", f"{core}.{2 if abs(value) != 25 else 3}5{unit}", "a fraction added"
        yield "read-in-part", f"{core}/{seven}{unit}", "divided"
        yield "read-in-part", f"\\frac{{{core}}}{{{seven}}}{unit}", "divided"
    if value not in (0, 1):
        yield "read-in-part", f"{core}^{two}", "a power"
        yield "read-in-part", f"{core}e{seven}", "an exponent"
        yield "read-in-part", f"{core} \\times 10^{{{seven}}}", "an exponent"
    if value != 0:
        more = 2 * abs(int(value)) + 1
        yield "read-in-part", f"{core} + {more}", "a sum with another value"
        yield "read-in-part", f"{core} - {more}", "a difference with another value"
    raised = str(abs(int(value)))
    if truth.places == 0 and len(raised) > 1 and not unit and value > 0:
        supers = raised[-1].translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        if int(raised[:-1]) ** int(raised[-1]) != value:
            yield "look-alike", f"{raised[:-1]}{supers}", "its last digit is an exponent"


def _ends_otherwise(answer: str, value: Fraction) -> bool:
    """Whether a text that is no plain number ends on another number than the right one."""
    found = numbers_in(answer)
    return bool(found) and found[-1] != abs(value)


def _words(truth: Truth) -> Iterator[Miss]:
    words = words_of(truth.text)
    word = max(words, key=len)
    if 2 <= len(words) <= 4 and all(one.isalpha() and len(one) > 2 for one in words):
        yield "other-name", f"{_OTHERS[0]} {words[-1]}", "its last word is left, no other"
        yield "other-name", f"{words[0]} {_OTHERS[2]}", "its first word is left, no other"
    if len(word) >= 5:
        yield "fragment", truth.text[:1], "its first letter"
        yield "fragment", truth.text[:2], "its first two letters"
        if word[::-1] != word:
            yield "digits", truth.text[::-1], "the letters in reverse"
        ordered = "".join(sorted(word))
        if ordered != word:
            yield "digits", ordered, "the letters, sorted"
    for other in _OTHERS[:2]:
        if is_certainly_wrong(other, truth):
            yield "another-word", other, "another word"


def _lists(truth: Truth) -> Iterator[Miss]:
    parts = list(truth.parts)
    letters = all(part.isalpha() for part in parts)
    extra = next(one for one in ("EDCBAF" if letters else ("999", "998")) if one not in parts)
    if len(set(parts)) == len(parts):
        yield "list-part", ", ".join(parts[:-1]), "its last part is left out"
        yield "list-part", ", ".join(parts[1:]), "its first part is left out"
    yield "list-part", ", ".join([*parts, extra]), "with a part too many"
    yield "list-part", ", ".join([extra, *parts[1:]]), "with one part replaced"
