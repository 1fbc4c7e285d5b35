r"""Near misses: answers that are certainly wrong and look right to a careless reader. Pure.

Each is made from a right answer by a rule that changes what it says, and is kept only where
`is_certainly_wrong` agrees or the rule alone is proof. Where the right answer's number stands in a
near miss, it is not the last of its numbers.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from fractions import Fraction

from assay.audit.answers.expressions import formula_misses
from assay.audit.answers.notations import TEXT
from assay.audit.answers.shapes import Miss, permuted, read_json
from assay.audit.answers.structured import (
    OTHERS,
    other_lines,
    other_objects,
    other_structures,
    structured_misses,
)
from assay.audit.answers.tokens import cased_misses, letter_off, other_word, shape_of, splices
from assay.audit.answers.truth import (
    CURRENCIES,
    STRUCTURED,
    Truth,
    is_certainly_wrong,
    is_polar,
    links_of,
    loose_words,
    numbers_in,
    read_number,
    squeezed,
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
_OTHER_VOWELS = str.maketrans("aeiouAEIOU", "oiuaeOIUAE")
_NAMESAKES = {
    "Paris": "Texas", "London": "Ontario", "Athens": "Georgia", "Rome": "Georgia",
    "Moscow": "Idaho", "Berlin": "New Hampshire", "Cairo": "Illinois", "Lima": "Ohio",
    "Dublin": "Ohio", "Vienna": "Virginia", "Lisbon": "Maine", "Madrid": "Iowa",
    "Warsaw": "Indiana", "Toronto": "Ohio", "Manchester": "New Hampshire",
}  # fmt: skip
_FIRST_NAMES = {
    "A": ("Albert", "Agnes"), "B": ("Bernard", "Beatrice"), "C": ("Conrad", "Clara"),
    "D": ("Dennis", "Doris"), "E": ("Edgar", "Edith"), "F": ("Felix", "Flora"),
    "G": ("Gerald", "Gloria"), "H": ("Howard", "Helga"), "I": ("Igor", "Irene"),
    "J": ("Jerome", "Judith"), "K": ("Kenneth", "Karen"), "L": ("Leonard", "Laura"),
    "M": ("Maurice", "Mildred"), "N": ("Norman", "Nora"), "O": ("Oscar", "Olga"),
    "P": ("Philip", "Paula"), "R": ("Rudolf", "Rosa"), "S": ("Simon", "Sylvia"),
    "T": ("Theodore", "Thelma"), "V": ("Victor", "Vera"), "W": ("Walter", "Wanda"),
}  # fmt: skip
_WHO = re.compile(r"\b(?:who|whom|whose)\b|\bwhich (?:person|author|scientist|artist|president|"
                  r"composer|king|queen|writer|painter)\b", re.IGNORECASE)  # fmt: skip
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
_EXACT_KINDS = ("look-alike", "unit-case", "run-together", "case")
_PARTED = re.compile(r"\b(?:decimal|fraction|probability|between 0 and 1)\b", re.IGNORECASE)


def near_misses(truth: Truth, tolerance: float = 0.0) -> Iterator[Miss]:
    """The near misses of a right answer, each once."""
    seen, seen_exactly = {squeezed(text) for text in truth.texts}, set(truth.texts)
    for kind, answer, note in _made(truth, tolerance):
        exact = kind in _EXACT_KINDS or truth.sort in STRUCTURED
        text, known = (answer, seen_exactly) if exact else (squeezed(answer), seen)
        if text not in known:
            known.add(text)
            yield kind, answer, note


def frame_of(truth: Truth) -> object:
    """What two answers must share, so that parts of one may stand in the other."""
    if truth.sort == "json":
        value = read_json(truth.text)
        return tuple(value) if isinstance(value, dict) else None
    return len(truth.text.splitlines()) if truth.sort == "lines" else shape_of(truth.text)


def spliced(truth: Truth, others: Sequence[Truth], tolerance: float = 0.0) -> list[Miss]:
    """The right answer with parts of other rows' answers, each once; certainly wrong."""
    made: dict[str, Miss] = {}
    for other in others:
        if truth.sort == "json":
            found = other_objects(truth.text, other.text)
        elif truth.sort == "lines":
            found = other_lines(truth.text, other.text)
        else:
            found = splices(truth.text, other.text, truth.prompt)
        for miss in found:
            if miss[1] not in truth.texts and _is_spliced(miss[1], truth, tolerance):
                made.setdefault(miss[1], miss)
    return list(made.values())


def _is_spliced(answer: str, truth: Truth, tolerance: float) -> bool:
    """Whether a rule that exchanges unlike parts is proof, or a reader tells the whole apart."""
    if truth.sort == "words" or truth.notation is TEXT:
        return True
    return is_certainly_wrong(answer, truth, tolerance)


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
        found = list(OTHERS)
    elif truth.sort == "list":
        found = [truth.listed(part) for part in _other_lists(truth.parts)]
    elif truth.sort in STRUCTURED:
        found = list(other_structures(truth, count))
    elif truth.sort == "formula" and "=" in truth.text:
        return [text for _, text, _ in formula_misses(truth.text, truth.prompt)][:count]
    elif truth.sort == "formula":
        return [f"({truth.text})+1", f"({truth.text})+2"][:count]
    sure = [one for one in dict.fromkeys(found) if is_certainly_wrong(one, truth)]
    return sure[:count]


def _other_lists(parts: Sequence[str]) -> list[list[str]]:
    """Two lists of the same length and sort, without a common part."""
    numbers = [read_number(part) for part in parts]
    known = [one for one in numbers if one is not None]
    if len(known) < len(parts):
        return [list(OTHERS[: len(parts)]), list(reversed(OTHERS[: len(parts)]))]
    top = int(max(abs(one.value) for one in known)) + 1
    return [[str(top + step + shift) for step in range(len(parts))] for shift in (1, 101)]


def _made(truth: Truth, tolerance: float) -> Iterator[Miss]:
    match truth.sort:
        case "number":
            yield from _numbers(truth, tolerance)
        case "choice":
            last = chr(min(ord(max(truth.letters)) + 1, ord("Z")))
            for letter in (*truth.letters, last, "Z"):
                if is_certainly_wrong(letter, truth) or letter not in truth.letters:
                    yield "another-choice", letter, "another letter"
        case "polar":
            for other in ("yes", "no", "True", "False"):
                if is_certainly_wrong(other, truth):
                    yield "opposite", other, "the opposite"
        case "words":
            yield from cased_misses(truth.text, truth.prompt)
            yield from _words(truth)
        case "list":
            yield from _lists(truth)
        case "formula":
            yield from formula_misses(truth.text, truth.prompt)
        case "json" | "code" | "lines" | "notation":
            yield from structured_misses(truth, tolerance)


def _numbers(truth: Truth, tolerance: float) -> Iterator[Miss]:
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
    sure = _EXACT.search(truth.prompt) and not truth.unit.strip()
    rough = size * _LEAST_CHANGE <= 1 or _ABOUT.search(truth.prompt)
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


def _words(truth: Truth) -> Iterator[Miss]:
    words = loose_words(truth.text)
    word = max(words, key=len)
    given = truth.text.split()
    if len(given) > 1 and given[0].isalpha() and given[0][0].casefold() != given[0][-1]:
        answer = " ".join([given[0][-1], *given[1:]])
        yield "other-name", answer, "of its first word the last letter"
    if 2 <= len(words) <= 4 and all(one.isalpha() and len(one) > 2 for one in words):
        yield "other-name", f"{OTHERS[0]} {words[-1]}", "its last word is left, no other"
        yield "other-name", f"{words[0]} {OTHERS[2]}", "its first word is left, no other"
    if len(word) >= 5:
        yield "fragment", truth.text[:1], "its first letter"
        yield "fragment", truth.text[:2], "its first two letters"
    if len(word) >= 3 and word.isalpha():
        if word[::-1] != word:
            yield "digits", truth.text[::-1], "the letters in reverse"
        ordered = "".join(sorted(word))
        if ordered != word:
            yield "digits", ordered, "the letters, sorted"
        twice = re.sub(r"([^\W\d_])", r"\1\1", truth.text)
        yield "digits", twice, "every letter twice"
        turned = truth.text.translate(_OTHER_VOWELS)
        if SequenceMatcher(None, turned, truth.text).ratio() < 0.6:
            yield "digits", turned, "other vowels"
        if len(words) > 1:
            turned = " ".join(one[::-1] for one in truth.text.split())
            yield "digits", turned, "each word in reverse"
            inside = " ".join(f"un{one}able" for one in truth.text.split())
            yield "digits", inside, "each word as a part of a longer one"
    yield from _other_forms(truth)
    for other in OTHERS[:2]:
        if is_certainly_wrong(other, truth):
            yield "another-word", other, "another word"
    yield from _opposites(truth)
    yield from _namesakes(truth)


def _other_forms(truth: Truth) -> Iterator[Miss]:
    """Another word of the right one's stem, where the prompt names the words to choose from."""
    text, said = truth.text, truth.prompt.casefold()
    known = set(re.findall(r"\w+", said))
    if text.islower() and text.isalpha() and len(text) > 2 and text in known:
        for ending in ("ing", "ed", "less"):
            if f"{text}{ending}" not in known:
                yield "other-name", f"{text}{ending}", "another word of its stem"
                yield "other-name", f"{text}{text[-1]}{ending}", "another word of its stem"


def _opposites(truth: Truth) -> Iterator[Miss]:
    """One word is turned, or the next of its series, or another one by a letter."""
    for one in re.finditer(r"[^\W\d_]+", truth.text):
        close = letter_off(one[0])
        for other in (other_word(one[0]), close):
            if other:
                note = "one of its words is another, against it or next to it"
                new = f"{truth.text[: one.start()]}{other}{truth.text[one.end() :]}"
                yield "other-name", new, note


def _namesakes(truth: Truth) -> Iterator[Miss]:
    """Who or what has the name, too, or another one close to it."""
    state = _NAMESAKES.get(truth.text)
    if state and state.casefold() not in truth.prompt.casefold():
        yield "namesake", f"{truth.text}, {state}", "another place of that name"
    names = truth.text.split()
    person = len(names) in (2, 3) and all(re.fullmatch("[A-Z][^\\W\\d_]+", one) for one in names)
    if not person or not _WHO.search(truth.prompt):
        return
    for other in _FIRST_NAMES.get(names[0][0], ()):
        if other[:2] != names[0][:2] and other not in truth.prompt:
            answer = " ".join([other, *names[1:]])
            yield "other-name", answer, "the same initials, another first name"
    for word in ("daughter", "teacher"):
        if word not in truth.prompt.casefold():
            yield "namesake", f"{truth.text}'s {word}", "who stands close to that person"


def _against(part: str) -> str:
    """The opposite of yes or no, as it is written."""
    pairs = {"true": "false", "false": "true", "yes": "no", "no": "yes"}
    other = pairs[part.casefold()]
    return other.upper() if part.isupper() else other.title() if part.istitle() else other


def _turned_truths(truth: Truth) -> Iterator[Miss]:
    parts, turned = truth.parts, [_against(part) for part in truth.parts]
    yield "list-part", truth.listed([turned[0], *parts[1:]]), "one is turned"
    yield "list-part", truth.listed([*parts[:-1], turned[-1]]), "one is turned"
    yield "list-part", truth.listed(turned), "all are turned"


def _turned_links(truth: Truth) -> Iterator[Miss]:
    """An arrow goes the other way, or two arrows end at each other's end."""
    links = links_of(truth.parts)
    known = {(one[1], one[3]) for one in links}
    for place in dict.fromkeys((0, len(links) - 1)):
        one = links[place]
        if (one[3], one[1]) not in known:
            new = [*truth.parts[:place], f"{one[3]}{one[2]}{one[1]}", *truth.parts[place + 1 :]]
            yield "list-part", truth.listed(new), "an arrow is turned"
    a, b = links[0], links[-1]
    if a[1] != b[1] and a[3] != b[3] and not {(a[1], b[3]), (b[1], a[3])} & known:
        new = [f"{a[1]}{a[2]}{b[3]}", *truth.parts[1:-1], f"{b[1]}{b[2]}{a[3]}"]
        yield "list-part", truth.listed(new), "two arrows end at each other's end"


def _lists(truth: Truth) -> Iterator[Miss]:
    parts = list(truth.parts)
    numbers = any(read_number(part) for part in parts)
    letters = all(len(part) == 1 and part.isalpha() for part in parts)
    polar = all(is_polar(part) for part in parts)
    extras = ("999", "998") if numbers else tuple("EDCBAF") if letters else OTHERS
    extra = next(one for one in (*extras, "zinc") if one not in parts)
    if links_of(parts):
        yield from _turned_links(truth)
        extra = "zinc->wolfram"
    if polar:
        yield from _turned_truths(truth)
        extra = parts[-1]
    if len(set(parts)) == len(parts) or polar or truth.order == "said":
        yield "list-part", truth.listed(parts[:-1]), "its last part is left out"
        yield "list-part", truth.listed(parts[1:]), "its first part is left out"
    yield "list-part", truth.listed([*parts, extra]), "with a part too many"
    if not polar:
        yield "list-part", truth.listed([extra, *parts[1:]]), "with one part replaced"
        yield "list-part", truth.listed([*parts, extra, extra]), "with a wrong part twice"
    for part in parts if letters else ():
        before = chr(ord(part) - 1)
        if before.isalpha() and before not in parts:
            rest = [one for one in parts if one != part]
            yield "list-part", truth.listed([*rest, before, before]), "the letter before it, twice"
            break
    if len(parts) > 2 and not polar:
        changed = [parts[0], extra, *parts[2:]]
        yield "list-part", truth.listed(changed), "with one part in the middle replaced"
    if numbers:
        yield from _joined(truth, parts)
        yield from _like_sums(truth, parts)
    if truth.order != "free":
        yield from _reordered(truth, parts)


def _joined(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    """What parts the numbers of a list is left out, or a number's digits are exchanged."""
    yield (
        "run-together",
        "".join((truth.ends[0], *parts, truth.ends[1])),
        "without what parts it",
    )
    if len(parts) > 2:
        joined = truth.listed([parts[0] + parts[1], *parts[2:]])
        yield "run-together", joined, "two parts are joined"
    for place, part in enumerate(parts):
        turned = permuted(part) if part.isdecimal() else ""
        if turned and turned not in parts:
            new = truth.listed([*parts[:place], turned, *parts[place + 1 :]])
            yield "list-part", new, "two digits are exchanged"
            break


def _like_sums(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    """Other whole numbers with the same sum, of three with the same product too."""
    if not all(re.fullmatch(r"-?\d{1,6}", part) for part in parts):
        return
    known = [int(part) for part in parts]
    other = [known[0] + 1, *known[1:-1], known[-1] - 1]
    if sorted(other) != sorted(known):
        yield "list-part", truth.listed([*map(str, other)]), "one more here, one less there"
    if len(known) == 3:
        total, product = sum(known), math.prod(known)
        for a, b in itertools.combinations_with_replacement(range(-40, 41), 2):
            new = [a, b, total - a - b]
            if a * b * new[2] == product and sorted(new) != sorted(known):
                yield "list-part", truth.listed([*map(str, new)]), "the same sum and product"
                return


def _reordered(truth: Truth, parts: list[str]) -> Iterator[Miss]:
    said = truth.order == "said" or truth.mark.strip() in ("->", "→")
    yield ("list-part" if said else "order-unsaid"), truth.listed([*parts, parts[-1]]), "one twice"
    worth = [number.value if number else part for part, number in
             ((part, read_number(part)) for part in parts)]  # fmt: skip
    unlike = [place for place in range(len(parts) - 1) if worth[place] != worth[place + 1]]
    kind = "order" if said else "order-unsaid"
    for place in dict.fromkeys((*unlike[:1], *unlike[-1:])):
        swapped = [*parts[:place], parts[place + 1], parts[place], *parts[place + 2 :]]
        yield kind, truth.listed(swapped), "two neighbours are exchanged"
    if len(parts) > 2 and len(set(worth)) > 1:
        yield kind, truth.listed([*parts[1:], parts[0]]), "the first is put last"
    if worth != worth[::-1]:
        yield kind, truth.listed(parts[::-1]), "in reverse"
