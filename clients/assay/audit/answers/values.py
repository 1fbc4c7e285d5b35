"""Near misses of numbers, with units and currencies. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from assay.audit.answers.shapes import Miss, permuted
from assay.audit.answers.truth import (
    CURRENCIES,
    Truth,
    is_certainly_wrong,
    numbers_in,
    read_number,
    written,
)

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
_LONGER = {
    "mm": "m", "m": "min", "g": "gal", "s": "sr", "N": "N*m", "W": "W*h", "A": "A*h",
    "m/s": "m", "km/h": "km", "meters": "metric tons", "hours": "h/day",
}  # fmt: skip
"""Units, and others that begin them or that they begin."""
_OTHER_KIND = {
    "km": "kg", "m": "kg", "cm": "g", "mm": "mg", "kg": "km", "g": "cm", "mg": "mm", "s": "K",
    "h": "km", "hours": "miles", "minutes": "meters", "seconds": "meters", "meters": "seconds",
    "\u00b5g": "g", "\u00b5m": "m", "\u00b5s": "s", "m\u00b2": "m", "cm\u00b2": "cm",
    "km\u00b2": "km", "m\u00b3": "m\u00b2", "cm\u00b3": "cm\u00b2", "MB": "MiB", "GB": "GiB",
    "kB": "KiB", "TB": "TiB",
    "MiB": "MB", "GiB": "GB", "KiB": "kB", "TiB": "TB", "\u00b0C": "\u00b0F", "\u00b0F": "\u00b0C",
    "km/h": "m/s", "m/s": "km/h", "mph": "km/h", "Pa": "kPa", "kPa": "Pa", "Hz": "kHz", "kHz": "Hz",
    "MHz": "GHz", "GHz": "MHz", "eV": "keV", "A": "mA", "mA": "A", "ms": "s", "min": "h",
    "miles": "hours", "days": "dollars", "dollars": "days", "J": "V", "kJ": "kV", "N": "V",
    "W": "A", "V": "A", "L": "s", "mL": "ms",
}  # fmt: skip
_CASED = {"mW": "MW", "MW": "mW", "mV": "MV", "MV": "mV", "mHz": "MHz", "MHz": "mHz", "mJ": "MJ",
          "MJ": "mJ", "Mg": "mg", "mg": "Mg", "Mb": "mb", "MB": "Mb", "Mbps": "MBps", "kb": "kB",
          "kB": "kb", "mm": "Mm", "Gb": "GB", "GB": "Gb"}  # fmt: skip
_EXACT = re.compile(
    r"\bhow many\b|\bexact|\bnumber of\b|\bproduct\b|\bfactorial\b|\d\s*[-*\u00d7\u00b7+^]\s*\d",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\babout\b|\bapprox|\bestimate|\bround|\bnearest\b|\broughly\b|\bsignificant\b",
    re.IGNORECASE,
)
_CURRENCY = re.compile(rf"-?(\$|\u20ac|\u00a3|(?:{CURRENCIES})\s)")
_WITHOUT_ROUNDING = re.compile(r"\bexact(?:ly)?\b|\bsimplest\b|\blowest terms\b", re.IGNORECASE)
_PARTED = re.compile(r"\b(?:decimal|fraction|probability|between 0 and 1)\b", re.IGNORECASE)


def near_values(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """Other numbers, units and currencies close to the right one."""
    value = truth.value
    assert value is not None  # noqa: S101 - of a number
    currency = _CURRENCY.match(truth.text)
    for kind, bare, note in (*_changed(value, truth), *_extended(value, truth)):
        answer = bare
        if currency and re.fullmatch(r"-?\d[\d.]*", bare):
            sign = "-" if bare.startswith("-") else ""
            answer = f"{sign}{currency[1]}{bare.removeprefix('-')}"
        given = read_number(answer)
        unlike = given is None and _ends_otherwise(answer, value)
        far = given is not None and abs(given.value - value) >= abs(value) * _least(truth)
        sure = far and is_certainly_wrong(answer, truth, tolerance)
        if kind in ("look-alike", "unit", "rounded") or unlike or sure:
            yield kind, answer, note
    yield from _neighbours(value, truth, tolerance)
    yield from _units(truth)


def _neighbours(value: Fraction, truth: Truth, tolerance: float) -> Iterator[Miss]:
    """Of a large whole number the next ones, unless the prompt asks for a rough value."""
    size = abs(value)
    exact = re.search(r"\bexact(?:ly)?\b(?! once)|\ball (?:its )?digits\b", truth.prompt)
    sure = exact or (_EXACT.search(truth.prompt) and not truth.unit.strip())
    rough = size * _LEAST_CHANGE <= 1 or _ABOUT.search(truth.prompt)
    if truth.places and sure and not tolerance and not _ABOUT.search(truth.prompt):
        unit = Fraction(1, 10**truth.places)
        for by in (unit, -unit):
            yield "neighbour", written(value + by, truth), "its last digit is one off"
    if truth.places != 0 or rough or tolerance or (size % 1000 == 0 and not sure):
        return
    kind = "neighbour" if sure else "neighbour-unsaid"
    for step in (1, -1):
        yield kind, written(value + step, truth), f"one {'more' if step > 0 else 'less'}"


def _units(truth: Truth) -> Iterator[Miss]:
    """The right number with another unit, or a percentage in place of its fraction."""
    unit = truth.unit.strip()
    core = truth.text.removesuffix(truth.unit)
    tables = (_LONGER, "a unit of the same beginning"), (_OTHER_KIND, "of another dimension")
    for table, note in tables:
        if unit in table:
            yield "unit", f"{core} {table[unit]}", note
    if unit in _CASED:
        yield "unit-case", f"{core} {_CASED[unit]}", "the unit in another case"
    currency = _CURRENCY.match(truth.text)
    if currency:
        signs = ("\u20ac", "$", "\u00a3") if len(currency[1]) == 1 else ("EUR ", "USD ", "GBP ")
        for other in signs:
            if other != currency[1]:
                yield "unit", truth.text.replace(currency[1], other), "another currency"
        yield from _cents(truth)
    value = truth.value
    if value and unit in ("%", "\\%"):
        share = Fraction(value) / 100
        yield "unit", f"{_plain_decimal(share)}{truth.unit}", "a hundredth of it"
        yield "unit", f"{_plain_decimal(value * 100)}{truth.unit}", "a hundred times"
    elif value and not unit and _PARTED.search(truth.prompt) and 0 < value < 1 and truth.places:
        yield "qualified", f"{core}%", "as a percentage that it is not"


def _cents(truth: Truth) -> Iterator[Miss]:
    """An amount of money with other cents, unless the prompt asks for a rough one."""
    found = re.fullmatch(r"(.*\d)\.(\d\d)", truth.text)
    if found is None or _ABOUT.search(truth.prompt):
        return
    cents = int(found[2])
    for other in dict.fromkeys((0, (cents + 37) % 100, (cents + 10) % 100, 99 - cents)):
        if abs(other - cents) >= 10:
            yield "digits", f"{found[1]}.{other:02}", "other cents"
    if found[2][0] == "0" and found[2][1] != "0":
        yield "digits", f"{found[1]}.{found[2][1]}", "the first zero of its cents is left out"
        yield "digits", f"{found[1]}.{found[2][1]}0", "the digits of its cents are exchanged"


def _plain_decimal(value: Fraction) -> str:
    """A number of few decimal places, all of them."""
    places = next((n for n in range(9) if (value * 10**n).denominator == 1), 9)
    return written(value, Truth(("",), "number", value, places=places))


def _decimal_text(value: Fraction, places: int) -> str:
    return f"{float(value):.{places}f}"


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
        if truth.places:
            least = Fraction(math.ceil(least * 10**truth.places), 10**truth.places)
        steps = [(least, "2.5 % more"), (-least, "2.5 % less"), (10 * least, "a quarter more")]
        if truth.places and abs(value - int(value)) >= Fraction(1, 20):
            note = "the decimal places are cut off"
            yield "cut", f"{int(value)}{truth.unit}", note
            yield "cut", f"{round(value)}{truth.unit}", "rounded to a whole number"
    for step, note in steps:
        yield "off-by-one", written(value + step, truth), note
    if truth.places is None:
        yield from _fractions(value, truth)
    else:
        if value and (value / 10 * 10 ** (truth.places or 0)).denominator == 1:
            yield "scaled", written(value / 10, truth), "a tenth"
        yield "scaled", written(value * 10, truth), "ten times"
        yield "scaled", written(value * 1000, truth), "a thousand times"
    yield from _redigited(value, truth)


def _fractions(value: Fraction, truth: Truth) -> Iterator[Miss]:
    """Turned, cut, without its bar, or rounded where an exact one is asked for."""
    turned = written(1 / value, truth) if value else "1"
    yield "upside-down", turned, "upside down"
    yield "upside-down", f"{value.denominator}/{value.numerator}", "upside down"
    yield "digits", f"{value.numerator}{value.denominator}{truth.unit}", "without its bar"
    if _WITHOUT_ROUNDING.search(truth.prompt) and set(str(value.denominator)) - set("1"):
        for places in (2, 3, 4):
            rounded = Fraction(round(value * 10**places), 10**places)
            if rounded != value and not truth.unit:
                yield "rounded", _decimal_text(rounded, places), "a decimal that is near"
    yield "cut", f"{value.numerator}", "the numerator alone"
    yield "cut", f"{value.denominator}", "the denominator alone"


def _redigited(value: Fraction, truth: Truth) -> Iterator[Miss]:
    """The right digits in another order, or without some."""
    digits = str(abs(int(value)))
    sign = "-" if value < 0 else ""
    mixed = re.fullmatch(r"(-?\d+)\s+(\d+/\d+)", truth.text)
    if mixed:
        yield "run-together", f"{mixed[1]}{mixed[2]}", "without the blank of a mixed number"
        yield "cut", mixed[2], "without its whole part"
        yield "cut", mixed[1], "its whole part alone"
        return
    if truth.places == 0:
        yield "digits", f"{sign}{digits[::-1]}{truth.unit}", "the digits in reverse"
        yield "digits", f"{sign}{permuted(digits)}{truth.unit}", "two digits are exchanged"
        yield "digits", f"{sign}{digits[1:] or '0'}{truth.unit}", "the first digit is left out"
        yield "digits", f"{sign}{digits[:-1] or '0'}{truth.unit}", "the last digit is left out"
        yield "digits", f"{sign}{''.join(sorted(digits))}{truth.unit}", "the digits, sorted"
        yield "digits", f"{sign}{digits[0]}{'9' * (len(digits) - 1)}{truth.unit}", "its first digit"
    else:
        text = truth.text
        yield "digits", permuted(text.removesuffix(truth.unit)) + truth.unit, "two are exchanged"
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
