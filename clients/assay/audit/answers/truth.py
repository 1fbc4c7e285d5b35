r"""What is right for a row, and what is certainly not. Pure: no grader is asked.

An answer has a sort, by its text: a number (with a unit or none), the letter of a choice, yes or
no, a list, a few words, a formula, JSON, a code (a date, a time, a version, an address), lines, a
notation (`assay.audit.answers.notations`), or prose. `is_certainly_wrong` and `mentions` err on
one side: the first says yes, and the second no, only where nobody could see it otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from assay.audit.answers import expressions, shapes
from assay.audit.answers.notations import TEXT, notation_of
from assay.audit.answers.readings import Notation
from assay.audit.answers.terms import Order, is_open, order_of

Sort = Literal[
    "number", "choice", "polar", "list", "words", "formula", "json", "code", "lines", "notation",
    "prose", "data",
]  # fmt: skip
STRUCTURED = ("json", "code", "lines", "notation")
"""Sorts whose near misses are asked where the grader accepts the reference as it stands."""

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_FRACTION = re.compile(
    rf"(?P<sign>[-+]?)\s*(?:\\[dtc]?frac\s*\{{(?P<a>-?\d+)\}}\s*\{{(?P<b>\d+)\}}"
    rf"|(?P<c>\d+)\s*/\s*(?P<d>\d+)|(?P<n>{_DIGITS}))"
)
_SHARE = re.compile(
    r"%|percent|per cent|probab|\b(?:shares?|rates?|proportions?|fraction|chances?|odds|interest)\b"
    r"|cents?\b|[$\u20ac\u00a3]|euros?\b|dollars?\b|pounds?\b|\bcm\b|\bcentim",
    re.IGNORECASE,
)
"""Where a number may be a hundred times another and mean the same."""
_MIXED = re.compile(r"(-?)(\d+)\s+(\d+)/(\d+)")
_UNIT = re.compile(r"(?:\\?%|°|\s?\^?\\circ|\s*[A-Za-zµΩ][A-Za-z/µΩ²³]{0,11})?")
CURRENCIES = "USD|EUR|GBP|JPY|CHF|SEK|NOK|DKK|PLN|INR|CNY|CAD|AUD"
_MONEY = re.compile(rf"(-?)(?:\\?\$|€|£|(?:{CURRENCIES})(?=[\s\d]))\s*(?=[-+.\d])")
_CHOICE = re.compile(r"\(?([A-J])\)?\.?")
_POLAR = {
    "yes": "yes", "true": "yes", "no": "no", "false": "no",
}  # fmt: skip
_POLAR_WORDS = {
    "yes": {"yes", "true", "correct", "right", "y", "t", "indeed", "1"},
    "no": {"no", "false", "incorrect", "wrong", "not", "n", "f", "cannot", "don", "never", "none",
           "nothing", "unable", "0", "nan", "null"},
}  # fmt: skip
_LINK = re.compile(r"(\w+)(\s*(?:->|\u2192|=>)\s*)(\w+)")
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)  # fmt: skip
_NOTHING = {"no", "none", "nothing", "zero", "nil", "empty", "null", "nought"}
_PARTED = re.compile(
    r"\b(?:separated|parted|divided|joined) by\b|\bwith (?:commas|semicolons) between\b"
    r"|\b(?:comma|semicolon)[- ]separated\b|\bone (?:a|per) line\b",
    re.IGNORECASE,
)
_NUMERAL = {
    *_SMALL, *_NOTHING, "half", "third", "quarter", "hundred", "thousand", "million", "dozen", "pi",
    "e", "infinity", "infinite", "once", "twice", "pair", "both",
}  # fmt: skip
_WORD = re.compile(r"[^\W_]+")
_WRAPS = re.compile(r"\\boxed\s*\{(?P<a>.*)\}|\$+(?P<b>[^$]+)\$+|\\\((?P<c>.*)\\\)", re.DOTALL)
_SPACING = re.compile(r"\\left|\\right|\\[!,;: ]|\\displaystyle|[\s$]")
_FORMULA = re.compile(r"[-+*/^()\w .\\{}|!]{1,80}")
_NAME = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_](?:[\w.,'\u2019&]| (?!-)|-(?! ))*")
_MOST_WORDS = 8
_SHORT = 120
ARTICLES = {"a", "an", "the"}


@dataclass(frozen=True, slots=True)
class Truth:
    """The right answers of a row.

    Attributes:
        texts: all of them, the first as it is given; empty where the reference is data.
        sort: of the first.
        value: of a number, without its unit.
        unit: what stands behind the number.
        places: its decimal places; None for a fraction.
        options: of a choice, the text behind its letter in the prompt; empty where it has none.
        letters: of a choice, those that the prompt offers.
        parts: of a list.
        mark: what stands between them.
        ends: what stands around them: brackets, or nothing.
        order: whether the prompt says that order matters.
        prompt: the row's.
        notation: of an answer in one.
    """

    texts: tuple[str, ...]
    sort: Sort
    value: Fraction | None = None
    unit: str = ""
    places: int | None = 0
    option: str = ""
    letters: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    mark: str = ", "
    ends: tuple[str, str] = ("", "")
    order: Order = "unsaid"
    prompt: str = ""
    notation: Notation | None = None

    @property
    def text(self) -> str:
        """The first right answer; empty for data."""
        return self.texts[0] if self.texts else ""

    def listed(self, parts: Sequence[str]) -> str:
        """Other parts as the right ones are written."""
        return f"{self.ends[0]}{self.mark.join(parts)}{self.ends[1]}"


def read_truth(reference: object, prompt: str = "") -> Truth:
    """What a reference makes right: a text, a list of texts (each right), a number, or data."""
    if isinstance(reference, bool):
        reference = "True" if reference else "False"
    if isinstance(reference, int | float):
        reference = repr(reference)
    several = [reference] if isinstance(reference, str) else reference
    if (
        not isinstance(several, Sequence)
        or isinstance(several, bytes | bytearray)
        or not several
        or not all(isinstance(one, str) and one.strip() for one in several)
    ):
        return Truth((), "data")
    texts = tuple(_bare(one) for one in several)
    if not all(texts):
        return Truth((), "data")
    truth = _structured(texts, prompt) or _sorted_out(texts, prompt)
    short = truth.sort == "prose" and len(texts[0]) <= _SHORT and TEXT.read(texts[0])
    if short and not is_open(prompt):
        truth = Truth(texts, "notation", notation=TEXT)
    shown: dict[str, Order] = {"(": "said", "{": "free", "\\{": "free"}
    order = shown.get(truth.ends[0]) or order_of(prompt, truth.sort)
    if (
        order == "unsaid"
        and truth.sort == "json"
        and shapes.is_matrix(shapes.read_json(truth.text))
    ):
        order = "said"
    if order == "unsaid" and truth.parts and all(is_polar(part) for part in truth.parts):
        order = "said"
    return replace(truth, order=order, prompt=prompt)


def is_polar(text: str) -> bool:
    """Whether a text is yes or no, or true or false."""
    return text.casefold() in _POLAR


def links_of(parts: Sequence[str]) -> list[re.Match[str]]:
    """Of parts that are all arrows from one to another, their ends; else none."""
    found = [one for part in parts if (one := _LINK.fullmatch(part))]
    return found if len(found) == len(parts) else []


def _structured(texts: tuple[str, ...], prompt: str) -> Truth | None:
    """A notation, JSON, lines or a code; None for what has no structure."""
    offered = _CHOICE.fullmatch(texts[0]) and re.search(r"(?m)(?:^|[\s(])[A-J][).:]", prompt)
    notation = None if offered or is_polar(texts[0]) else notation_of(texts[0], prompt)
    if notation is not None and notation.name != "string":
        return Truth(texts, "notation", notation=notation)
    value = shapes.read_json(texts[0])
    if value is not None:
        return Truth(texts, "json") if shapes.is_answer(value, prompt) else None
    if shapes.read_lines(texts[0], prompt):
        return Truth(texts, "lines")
    if shapes.read_code(texts[0]):
        return Truth(texts, "code")
    return Truth(texts, "notation", notation=notation) if notation else None


def _list(text: str, prompt: str) -> tuple[str, tuple[str, ...]] | None:
    """What parts a list, and its parts: numbers, letters, or words where the prompt says so."""
    mark, parts = shapes.parts_of(text)
    ends = shapes.ends_of(text)
    if len(parts) < 2 or (ends[0] and read_number(text.strip("(){}\\"))):
        return None
    if ends[0]:
        return (mark, parts) if mark != " " and all(map(read_number, parts)) else None
    if mark == " ":
        grouped = all(re.fullmatch(r"\d{3}", part) for part in parts[1:])
        fits = all(re.fullmatch(r"-?\d+(?:\.\d+)?", part) for part in parts)
        return (mark, parts) if len(parts) > 2 and fits and not grouped else None
    polar = len(parts) > 2 and all(map(is_polar, parts))
    plain = all(read_number(part) or re.fullmatch("[A-Za-z]", part) for part in parts)
    if plain or polar or links_of(parts):
        return mark, parts
    # Of names a part may be left out: "Paris, France".
    short = all(re.fullmatch(r"[^\W_][\w' -]*", part) and len(part.split()) < 4 for part in parts)
    asked = re.search(r"\b(?:list|all|order\w*|sort\w*|sequence|rank\w*)\b", prompt, re.IGNORECASE)
    arrows = mark.strip() in ("->", "→")
    told = _PARTED.search(prompt) and not re.search(r"[A-Z]{2}, [A-Z]{2}", prompt)
    least = 2 if told else 3
    return (mark, parts) if short and len(parts) >= least and (asked or told or arrows) else None


def _bare(text: str) -> str:
    """The answer of a reference, without delimiters; of a GSM8K solution what follows ####."""
    text = text.rpartition("####")[2].strip()
    found = _WRAPS.fullmatch(text)
    return next(part for part in found.groups() if part is not None).strip() if found else text


def _sorted_out(texts: tuple[str, ...], prompt: str) -> Truth:  # noqa: PLR0911 - one a sort
    text = texts[0]
    found = _CHOICE.fullmatch(text)
    if found:
        letters = tuple(dict.fromkeys(re.findall(r"(?m)(?:^|[\s(])([A-J])[).:]", prompt)))
        if found[1] in letters or not letters:
            option = _option(found[1], prompt)
            return Truth(texts, "choice", option=option, letters=letters or ("A", "B", "C", "D"))
    if text.casefold().strip(".") in _POLAR:
        return Truth(texts, "polar")
    number = read_number(text)
    if number is not None:
        return Truth(texts, "number", number.value, number.unit, number.places)
    listed = _list(text, prompt)
    if listed:
        return Truth(texts, "list", mark=listed[0], parts=listed[1], ends=shapes.ends_of(text))
    words = _WORD.findall(text)
    if _NAME.fullmatch(text) and not any(re.search(r"[A-Z].*[A-Z]|\d", word) for word in words):
        return Truth(texts, "words" if len(words) <= _MOST_WORDS else "prose")
    is_date = re.fullmatch(r"\d+(?:[-/:.]\d+)+", text)
    equation = text.count("=") == 1 and expressions.is_formula(text)
    if equation or (not is_date and _FORMULA.fullmatch(text) and _is_formula(text)):
        return Truth(texts, "formula")
    return Truth(texts, "prose")


def _is_formula(text: str) -> bool:
    """Whether a text is one expression, to which one may be added: no words, sets or relations."""
    if re.search(r"\\(?:in|cup|cap|text\w*|begin|infty|pm|mathrm|circ)\b|^[(\[{].*[)\]}]$", text):
        return False
    letters = re.sub(r"\\[A-Za-z]+|sin|cos|tan|log|ln|exp|sqrt", " ", text)
    words = re.search(r"[A-Za-z]{3,}|[A-Za-z]+ +[A-Za-z]{2,}", letters)
    return words is None and re.search(r"[-+*/^\\]|\d[a-z]", text) is not None


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """A number, exactly; `places` is None for a fraction."""

    value: Fraction
    unit: str
    places: int | None


@lru_cache(4096)
def read_number(text: str) -> ReadNumber | None:
    """The number that a text is, with a unit or none behind it; None where it is something else."""
    text = text.strip().replace("\u2212", "-").rstrip(".")
    money = _MONEY.match(text)
    text = money[1] + text[money.end() :] if money else text
    mixed = _MIXED.fullmatch(text)
    if mixed and int(mixed[4]):
        size = int(mixed[2]) + Fraction(int(mixed[3]), int(mixed[4]))
        return ReadNumber(-size if mixed[1] else size, "", None)
    found = _FRACTION.match(text)
    if found is None:
        return None
    unit = text[found.end() :]
    if _UNIT.fullmatch(unit) is None or re.fullmatch(r"e\d*|x", unit.strip()):
        return None
    value, places = _value(found)
    return None if value is None else ReadNumber(value, unit, places)


def _value(found: re.Match[str]) -> tuple[Fraction | None, int | None]:
    sign = -1 if found["sign"] == "-" else 1
    if found["n"]:
        digits = found["n"].replace(",", "")
        return sign * Fraction(digits), len(digits.partition(".")[2])
    above, below = found["a"] or found["c"], found["b"] or found["d"]
    if int(below) == 0:
        return None, None
    return sign * Fraction(int(above), int(below)), None


def _option(letter: str, prompt: str) -> str:
    found = re.search(rf"(?m)(?:^|[\s(]){letter}[).:]\s*(.+?)\s*(?:$|\s\(?[A-J][).:])", prompt)
    return found[1].strip() if found else ""


def written(value: Fraction, like: Truth) -> str:
    """A number as the right one is written: with its places and unit, or as a fraction."""
    if like.places is None or value.denominator not in (1, *_powers(like.places)):
        text = f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value)
        if "frac" in like.text and value.denominator > 1:
            sign = "-" if value < 0 else ""
            text = f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
        return text + like.unit
    return _decimal(value, like.places) + like.unit


def _powers(places: int) -> tuple[int, ...]:
    """The denominators of decimal numbers with so many places, in lowest terms."""
    return tuple({10**places // d for d in _divisors(10**places)}) if places <= 6 else ()


def _divisors(n: int) -> list[int]:
    return [2**i * 5**j for i in range(8) for j in range(8) if n % (2**i * 5**j) == 0]


def _decimal(value: Fraction, places: int) -> str:
    scaled = round(value * 10**places)
    digits = str(abs(scaled)).rjust(places + 1, "0")
    sign = "-" if scaled < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def loose_words(text: str) -> list[str]:
    """The words of a text, parted at every sign, without case, accents and articles.

    More texts share one than under SQuAD's rule (`assay.environments.shipped.answers.words_of`),
    which deletes signs and judges answers; here a word in common says only: not certainly wrong.
    """
    plain = text.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", text).casefold()
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return [word for word in _WORD.findall(plain) if word not in ARTICLES]


def is_certainly_wrong(answer: str, truth: Truth, tolerance: float = 0.0) -> bool:
    """Whether an answer, standing alone, differs from every right one however it is read.

    `tolerance` is how far a number may be off and still be right, relative to the right one.
    """
    return bool(truth.texts) and all(
        _differs(answer, other, truth, tolerance) for other in truth.texts
    )


def _differs(  # noqa: PLR0911 - one a sort
    answer: str, right: str, truth: Truth, tolerance: float
) -> bool:
    match truth.sort:
        case "number":
            given, known = read_number(answer), read_number(right)
            if given is None:
                return (
                    re.search(r"[\d\\]", answer) is None
                    and bool(loose_words(answer))
                    and (_NUMERAL.isdisjoint(loose_words(answer)))
                )
            share = _SHARE.search(truth.prompt) or "%" in answer + right
            return known is not None and _apart(given, known, tolerance, bool(share))
        case "choice":
            found, known_letter = _CHOICE.fullmatch(answer.strip()), _CHOICE.fullmatch(right)
            return bool(found and known_letter) and found[1] != known_letter[1]  # type: ignore[index]
        case "polar":
            sides = [_POLAR.get(text.casefold().strip(" .")) for text in (answer, right)]
            return None not in sides and sides[0] != sides[1]
        case "words":
            return _unlike(answer, right)
        case "list":
            given_parts = {squeezed(part) for part in shapes.parts_of(answer)[1]}
            return given_parts != {squeezed(part) for part in shapes.parts_of(right)[1]}
        case "json":
            value = shapes.read_json(answer.strip())
            known_value = shapes.read_json(right)
            return None not in (value, known_value) and not shapes.agree_json(
                value, known_value, truth.order, tolerance
            )
        case "code":
            return not shapes.agree_codes(answer, right)
        case "lines":
            return not shapes.agree_lines(answer, right, truth.order)
        case "notation":
            assert truth.notation is not None  # noqa: S101 - of that sort
            return truth.notation.differ(answer, right)
        case "formula":
            return expressions.differ(answer, right)
        case _:
            return False


def _apart(given: ReadNumber, known: ReadNumber, tolerance: float, share: bool) -> bool:
    """Whether two numbers differ, as they stand and where one is a percentage of the other."""
    a, b = given.value, known.value
    slack = abs(b) * Fraction(tolerance)
    scales = (1, 100, Fraction(1, 100)) if share or min(abs(a), abs(b)) <= 1 else (1,)
    return all(abs(a * scale - b) > slack for scale in scales)


def _unlike(answer: str, right: str) -> bool:
    """Whether two names have no word in common and neither is the other's initials."""
    a, b = loose_words(answer), loose_words(right)
    if not a or not b or set(a) & set(b):
        return False
    if "".join(a) == "".join(word[0] for word in b) or "".join(b) == "".join(w[0] for w in a):
        return False
    if read_number(answer) is not None and _NUMERAL.intersection(b):
        return False
    pairs = [(x, y) for x in a for y in b]
    return not any(x.startswith(y[:4]) or y.startswith(x[:4]) for x, y in pairs)


def squeezed(text: str) -> str:
    """A text without white space, dollars, case and the width of its signs."""
    return _SPACING.sub("", unicodedata.normalize("NFKC", text)).casefold()


def mentions(text: str, truth: Truth) -> bool:
    """Whether a text may be said to hold a right answer. Of data nobody knows: True."""
    if not truth.texts:
        return True
    if not text.strip():
        return False
    return any(_mentions(text, right, truth) for right in truth.texts)


def _mentions(  # noqa: PLR0911 - one a sort
    text: str, right: str, truth: Truth
) -> bool:
    plain = unicodedata.normalize("NFKC", text).replace("\u2044", "/")
    words = set(loose_words(plain))
    if truth.sort == "choice":
        letter = right.strip("(). ").casefold()
        letters = {word.casefold() for word in _WORD.findall(plain)}
        return letter in letters or (
            bool(truth.option) and bool(set(loose_words(truth.option)) & words)
        )
    if truth.sort == "polar":
        return bool(words & _POLAR_WORDS[_POLAR[right.casefold().strip(".")]])
    known = read_number(right)
    if known is not None:
        return right in plain or _mentions_number(plain, words, known.value)
    if truth.sort in ("words", "prose"):
        content = {word for word in loose_words(right) if len(word) > 3} or set(loose_words(right))
        return bool(content & words) or squeezed(right) in squeezed(plain)
    if truth.sort == "list":
        return all(squeezed(part) in squeezed(plain) for part in shapes.parts_of(right)[1])
    if truth.sort in STRUCTURED:
        return _mentions_parts(plain, words, right, truth.sort)
    return squeezed(right) in squeezed(plain)


def _mentions_parts(plain: str, words: set[str], right: str, sort: Sort) -> bool:
    """Whether all that a structured answer says stands in a text, in whatever order and form.

    Of a code one group may be missing: a month may be a word.
    """
    if squeezed(right) in squeezed(plain):
        return True
    if sort == "lines":
        return set(loose_words(right)) <= words
    if sort in ("code", "notation"):
        groups = set(re.findall(r"\d+|[^\W\d_]+", right.casefold()))
        seen = re.findall(r"\d+|[^\W\d_]+", plain.casefold())
        short = {one.lstrip("0") for one in seen}
        missing = [one for one in groups if one not in seen and one.lstrip("0") not in short]
        return len(missing) <= (len(groups) > 1)
    known = [leaf for _, leaf in shapes.leaves(shapes.read_json(right))]
    texts = [str(leaf) for leaf in known if leaf is not None and not isinstance(leaf, bool)]
    if not texts:
        return bool(words & {"true", "false", "yes", "no", "1", "0", "null", "none"})
    found = (read_number(text) for text in texts)
    return all(
        squeezed(text) in squeezed(plain)
        or (number is not None and _mentions_number(plain, words, number.value))
        for text, number in zip(texts, found, strict=True)
    )


def _mentions_number(plain: str, words: set[str], value: Fraction) -> bool:
    if value.denominator == 1 and 0 <= value < len(_SMALL) and _SMALL[int(value)] in words:
        return True
    if value == 0 and words & _NOTHING:
        return True
    size = abs(value)
    sizes = (size, size / 100, size * 100)
    for found in _FRACTION.finditer(plain.replace("\u2212", "-")):
        if any(abs(int(found[name])) == size for name in "abcd" if found[name]):
            return True
        number, _ = _value(found)
        if number is not None and abs(number) in sizes:
            return True
    return False


def numbers_in(text: str) -> list[Fraction]:
    """The numbers of a text, unsigned, as a simple reader finds them, in order."""
    plain = unicodedata.normalize("NFKC", text)
    return [Fraction(one.replace(",", "")) for one in re.findall(_DIGITS, plain)]
