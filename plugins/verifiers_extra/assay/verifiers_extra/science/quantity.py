"""`quantity`: a number with a unit equals that of the reference, within a tolerance.

The reference is a text such as "50.7 atm", or `{"value": "50.7", "unit": "atm"}`; any of several
texts will do. Units may be written plainly or in LaTeX, with prefixes, powers, slashes and powers
of ten before them ("10^{-19} J"), as in SciBench (arXiv 2307.10635). Both sides are converted to
base units by the factors of pint, which is never given an expression to read (see `units`); numbers
are read exactly and with bounded digits by `numbers`.

The answer is looked for by `extraction` (parameter extract), and in it the number: after the last
"=", "≈" or "is about" if there is one. Text that holds several different numbers is unparsed. The
answer is right when it has the same dimension and |answer - reference| <= relative_tolerance *
|reference| + absolute_tolerance (in the reference's unit). The default of 1 % is stricter than
SciBench's own 5 %, within which wrong constants and slips of rounding pass; set 0.05 to compare
with its published figures.

 - A missing unit: with missing_unit=accept the number is taken to be in the reference's unit (which
   most questions state); `reject` makes it wrong-unit.
 - A reference without unit: a unit in the answer does not matter unless it is a pure number's
   (percent, ppm), which is converted: 45 % equals 0.45.
 - Temperatures: 27 °C equals 300.15 K; in a compound unit a degree is a difference.
 - significant_figures: `ignore`; `rounded` also takes what rounds to the reference at the
   reference's figures (1.4926 for 1.5, and for 2 everything from 1.5 to 2.5); `strict` asks for at
   least the reference's number of significant figures besides.

What a policy could game: a number without unit is right in a question that asks for the unit; use
reject. Angles have no dimension, so "3 rad/s" and "3 Hz" are equal. Uncertainties ("± 0.1") are not
compared. Watts, VA and VAr have one dimension and are equal, as torque and energy are.
Known limits: no ranges, vectors or several quantities at once; `dB` and unknown names equal only
themselves; "J/mol K" is right in either reading; a revolution is 2 pi, so 60 rpm is 6.28 /s.

Measured: 134 pairs of equal quantities are right both ways, none of 54 with a slip of unit is.

Differences from SciBench's grader: the tolerance; units are compared at all; a power of ten in the
unit is part of the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from assay.math.extraction import MODES, FoundAnswer, Nothing, look
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    OneOf,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.science.numbers import (
    WrittenNumber,
    find_numbers,
    plain,
    rounded,
)
from assay.verifiers_extra.science.units import NONE, PhysicalUnit, UnitTrouble, clean, read_unit

MAX_CHARS = 2_000
_SHOWN_CHARS = 300
_UNIT_CHARS = 80
_VERDICTS = ("correct", "incorrect", "wrong-unit", "unparsed")
_LEAD = re.compile(r"=|≈|\\approx|\\simeq|\\sim\b|≃|\babout\b|\bapproximately\b|\bis\b|:")
_UNCERTAIN = re.compile(r"(?:±|\\pm|\+/-)[ ]{0,4}\d{1,20}(?:\.\d{1,20})?")
_REST = re.compile(r"[\s.,;:!)\]}$*`'\"\\]*\Z")
_POWER_OF_TEN = re.compile(r"\s*10[ ]{0,4}\^")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number with its unit, in each of the readings of the unit."""

    number: WrittenNumber
    units: tuple[PhysicalUnit, ...]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When a number is near enough.

    Attributes:
        relative: a share of the reference.
        absolute: added to it, in the reference's unit.
        figures: the parameter `significant_figures`.
        unit_needed: a missing unit is wrong.
    """

    relative: Fraction
    absolute: Fraction
    figures: str
    unit_needed: bool


@verifier(
    "quantity",
    version="2",
    tasks=("quantity", "physics"),
    verdicts=_VERDICTS,
    lazy=True,
)
def quantity(
    item: VerifierItem,
    *,
    relative_tolerance: Annotated[
        float,
        Range(0.0, 0.5),
        "The greatest difference that is right, as a share of the reference.",
    ] = 0.01,
    absolute_tolerance: Annotated[
        float,
        Range(0.0, 1e12),
        "Added to the tolerance, in the reference's unit; for references that are 0.",
    ] = 0.0,
    missing_unit: Annotated[
        Literal["accept", "reject"],
        "A number without unit where the reference has one: taken in its unit, or wrong.",
    ] = "accept",
    significant_figures: Annotated[
        Literal["ignore", "rounded", "strict"],
        "Whether rounding to the reference's figures is right too, or its figures are asked.",
    ] = "ignore",
    extract: Annotated[str, OneOf(MODES), "Where the answer stands in the response."] = "auto",
) -> Judgement:
    """A number with a unit equals the reference's, units converted, within a tolerance.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no quantity.
    """
    references = [_reference(text) for text in reference_texts(item)]
    found = look(item.response(), extract)
    if isinstance(found, Nothing):
        return _judgement("unparsed", found.why, None)
    said = _with_unit(found, item.response())
    try:
        answer = read_quantity(said)
    except ValueError as trouble:
        return _judgement("unparsed", str(trouble), said)
    rules = Tolerance(
        Fraction(relative_tolerance),
        Fraction(absolute_tolerance),
        significant_figures,
        unit_needed=missing_unit == "reject",
    )
    judged = [_compare(answer, reference, rules) for reference in references]
    verdict, why = min(judged, key=lambda pair: _VERDICTS.index(pair[0]))
    return _judgement(verdict, why, said)


def _with_unit(found: FoundAnswer, response: str) -> str:
    """The answer; of a number that no mark sets apart, with what its line says behind it."""
    if found.how != "last-number":
        return found.text
    behind = response[found.end : found.end + _UNIT_CHARS].partition("\n")[0]
    return found.text + behind.rstrip()


def reference_texts(item: VerifierItem) -> tuple[str, ...]:
    """The references as texts.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE.
    """
    if item.data is None and not any("{" in text[:1] for text in item.references):
        return item.answers()
    document = item.document()
    if isinstance(document, str | int | float) and not isinstance(document, bool):
        return (str(document),)
    fields = document if isinstance(document, dict) else {}
    value, unit = fields.get("value"), fields.get("unit", "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _unusable('the reference must be a text or {"value": number, "unit": text}')
    if not isinstance(unit, str):
        raise _unusable("unit of the reference must be a text")
    unit = plain(clean(unit))
    return (f"{value} * {unit}" if _POWER_OF_TEN.match(unit) else f"{value} {unit}",)


def read_quantity(text: str) -> Measurement:
    """The one quantity of a text.

    Raises:
        ValueError: there is none, there are several, or its unit cannot be read.
    """
    if len(text) > MAX_CHARS:
        raise ValueError(f"longer than {MAX_CHARS} characters")
    text = plain(clean(text)).strip()
    lead = list(_LEAD.finditer(text))
    tail = text[lead[-1].end() :] if lead else text
    tail = _UNCERTAIN.sub(" ", tail if find_numbers(tail) else text)
    numbers = find_numbers(tail)
    values = {number.value for number in numbers}
    if not values:
        raise ValueError("it holds no number")
    number = numbers[0]
    readings, rest = read_unit(tail[number.end :])
    if len(values) > 1 and find_numbers(rest):
        raise ValueError("it holds several numbers")
    if readings[0] == NONE and not _REST.match(rest) and not rest[:1].isspace():
        raise ValueError(f"what follows the number cannot be read: {rest.strip()[:40]!r}")
    return Measurement(number, readings)


def _reference(text: str) -> Measurement:
    try:
        return read_quantity(text)
    except (ValueError, UnitTrouble) as trouble:
        raise _unusable(f"the reference {text[:80]!r} is no quantity: {trouble}") from trouble


def _compare(answer: Measurement, reference: Measurement, rules: Tolerance) -> tuple[str, str]:
    wanted = reference.units[0]
    units = answer.units
    if not units[0].named:
        if wanted.named and rules.unit_needed:
            return "wrong-unit", "the unit is missing"
        units = (wanted,)
    elif not wanted.named and units[0].powers:
        units = (wanted,)
    fitting = [
        (mine, theirs) for mine in units for theirs in reference.units if _fits(mine, theirs)
    ]
    if not fitting:
        return "wrong-unit", "the unit has another dimension than the reference's"
    judged = [
        _near(answer.number, mine, reference.number, theirs, rules) for mine, theirs in fitting
    ]
    return min(judged, key=lambda pair: _VERDICTS.index(pair[0]))


def _fits(a: PhysicalUnit, b: PhysicalUnit) -> bool:
    return dict(a.powers) == dict(b.powers)


def _near(
    mine: WrittenNumber,
    unit: PhysicalUnit,
    want: WrittenNumber,
    want_unit: PhysicalUnit,
    rules: Tolerance,
) -> tuple[str, str]:
    value = _converted(mine.value, unit, want_unit)
    # Factors between units are floats: 1e-12 is what their rounding may take or add.
    slack = (rules.relative + Fraction(1, 10**12)) * abs(want.value) + rules.absolute
    near = abs(value - want.value) <= slack
    if not near and rules.figures != "ignore" and want.figures:
        near = rounded(value, want.figures) == want.value
    if near and rules.figures == "strict" and 0 < mine.figures < want.figures:
        return "incorrect", f"has {mine.figures} significant figures of {want.figures}"
    shown = f"{float(value):.6g} where {float(want.value):.6g} is right, in the reference's unit"
    return ("correct" if near else "incorrect"), shown


def _converted(value: Fraction, unit: PhysicalUnit, wanted: PhysicalUnit) -> Fraction:
    """The value in another unit of the same dimension."""
    if unit == wanted:
        return value
    base = value * Fraction(unit.factor) + Fraction(unit.offset)
    return (base - Fraction(wanted.offset)) / Fraction(wanted.factor)


def _judgement(verdict: str, why: str, answer: str | None) -> Judgement:
    return Judgement.composed(
        verdict,
        (Component("correctness", float(verdict == "correct")),),
        extracted_answer=answer[:_SHOWN_CHARS] if answer else None,
        explanation=why[:500],
    )


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, trouble)
