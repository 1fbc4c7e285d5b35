r"""Answers with structure: JSON, codes (dates, times, versions, addresses), lines, sequences. Pure.

Each shape is read from a text, and `agree_*` says whether a lenient reader may call two texts the
same: it ignores case, key order, types of scalars, fields that are added, and which of two numbers
of a date is the month. What it tells apart is apart for everyone.
"""

from __future__ import annotations

import calendar
import itertools
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from assay.audit.answers.terms import PRINTED, Order

Day = tuple[int, int, int]
Miss = tuple[str, str, str]
"""A near miss: the class, the answer, and how it was made."""

OTHERS = ("Lisbon", "Kelvin", "granite", "Monday", "violet", "Saturn")
"""Words that stand in for others."""

_META = {
    "answer", "answers", "ground_truth", "groundtruth", "target", "solution", "label", "inputs",
    "outputs", "input_output", "style", "tests", "test_cases", "fn_name", "aliases", "reference",
}  # fmt: skip
_ARRAY_HINT = re.compile(
    r"\b(?:json|array|list|all|order|sort\w*|each|every|elements?|items?|tags|labels|which|names)\b",
    re.IGNORECASE,
)
_MOST_CHARS = 4_000
_MOST_LINES = 60
_MOST_PLACES = 30
_MOST_CELLS = 12


def read_json(text: str) -> Any:
    """The object or array that a text is, with exact numbers; None for any other text."""
    if text[:1] not in "{[" or not text or len(text) > _MOST_CHARS:
        return None

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError
        return dict(pairs)

    def no_number(_: str) -> None:
        raise ValueError

    def number(digits: str) -> Decimal:
        value = Decimal(digits)
        if not -_MOST_PLACES < value.adjusted() < _MOST_PLACES:
            raise ValueError
        return value

    try:
        return json.loads(
            text, object_pairs_hook=once, parse_float=number, parse_int=number,
            parse_constant=no_number,
        )  # fmt: skip
    except (ValueError, RecursionError, ArithmeticError):
        return None


def is_answer(value: Any, prompt: str) -> bool:
    """Whether JSON is an answer: no settings of a grader, no list of other names, not empty."""
    if all(leaf in (None, "") for _, leaf in leaves(value)):
        return False
    if isinstance(value, dict):
        return "json" in prompt.casefold() or _META.isdisjoint(key.casefold() for key in value)
    return not all(isinstance(one, str) for one in value) or bool(_ARRAY_HINT.search(prompt))


def is_matrix(value: Any) -> bool:
    """Whether a value that was read is rows of as many numbers each."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(row, list) and len(row) == len(value[0]) > 0 for row in value)
        and all(isinstance(one, Decimal) for row in value for one in row)
    )


def write_json(value: Any, like: str) -> str:
    """A value as JSON, with or without blanks, as another text has them."""
    comma = ", " if re.search(r",\s", like) or "," not in like else ","
    colon = ":" if re.search(r'":\S', like) else ": "
    return _json(value, comma, colon)


def _json(value: Any, comma: str, colon: str) -> str:
    match value:
        case dict():
            pairs = (
                f"{json.dumps(key, ensure_ascii=False)}{colon}{_json(one, comma, colon)}"
                for key, one in value.items()
            )
            return "{" + comma.join(pairs) + "}"
        case list():
            return "[" + comma.join(_json(one, comma, colon) for one in value) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def leaves(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The scalars of JSON, each with the keys and places that lead to it."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in pairs:
            for path, leaf in leaves(one):
                yield (key, *path), leaf
    else:
        yield (), value


def agree_json(given: Any, right: Any, order: Order, tolerance: float = 0.0) -> bool:
    """Whether one value may pass for the other, to a lenient reader."""
    if isinstance(right, dict):
        if not isinstance(given, dict):
            return False
        keyed = {key.casefold(): one for key, one in given.items()}
        return all(
            agree_json(keyed.get(key.casefold()), one, order, tolerance)
            for key, one in right.items()
        )
    if isinstance(right, list):
        if not isinstance(given, list):
            return len(right) == 1 and agree_json(given, right[0], order, tolerance)
        return _agree_lists(given, right, order, tolerance)
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    return not isinstance(given, dict | list) and _agree_scalars(given, right, tolerance)


def _agree_lists(given: list[Any], right: list[Any], order: Order, tolerance: float) -> bool:
    def alike(a: Any, b: Any) -> bool:
        return agree_json(a, b, order, tolerance)

    if order == "said":
        return len(given) == len(right) and all(map(alike, given, right))
    return all(any(alike(a, b) for b in right) for a in given) and all(
        any(alike(a, b) for a in given) for b in right
    )


def _agree_scalars(a: Any, b: Any, tolerance: float) -> bool:
    one, other = _worth(a), _worth(b)
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return abs(one - other) <= abs(other) * Fraction(tolerance)
    return one == other


def _worth(value: Any) -> Fraction | str:
    """A scalar as a lenient reader sees it: numbers in texts, 1 for true, nothing for null."""
    if isinstance(value, bool):
        return Fraction(int(value))
    text = "" if value is None else " ".join(str(value).split()).casefold()
    text = {"true": "1", "yes": "1", "false": "0", "no": "0", "none": "", "null": ""}.get(
        text, text
    )
    return Fraction(text) if re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d{1,3})?", text) else text


MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{one[:3]}(?:{one[3:]})?" for one in MONTHS)
_ISO = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})")
_NUMBERED = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)")
_WORDED = re.compile(
    rf"(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})"
    rf"|(?P<e>\d{{1,2}})(?:st|nd|rd|th)? (?P<n>{_MONTH})\.?,? (?P<z>\d{{4}})",
    re.IGNORECASE,
)
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d(?::\d\d)?)(Z|[-+]\d\d:?\d\d)?")
_VERSION = re.compile(r"v?\d+(?:\.\d+){2,}")
_MAIL = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:[\w-]+\.)+(?:com|org|net|io|edu|gov|txt|py|csv)"
)
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-/:._#][A-Za-z0-9]+)*")
_FUNCTIONS = re.compile(r"sin|cos|tan|log|ln|exp|sqrt|pi|frac", re.IGNORECASE)
Kind = Literal["date", "day", "worded", "stamp", "time", "address", "version", "mail", "code"]


@dataclass(frozen=True, slots=True)
class Code:
    """A token of digits and letters: its kind, and its groups with what stands between them."""

    kind: Kind
    text: str

    @property
    def groups(self) -> list[str]:
        """Runs of digits, of letters, and single other signs."""
        return re.findall(r"\d+|[^\W\d_]+|[\W_]", self.text)

    @property
    def numbers(self) -> list[int]:
        """Its runs of digits."""
        return [int(one) for one in re.findall(r"\d+", self.text)]


def read_code(text: str) -> Code | None:
    """The code that a text is; None for any other text."""
    kind = _kind(text) if len(text) <= 80 else None
    return Code(kind, text) if kind else None


def _kind(text: str) -> Kind | None:  # noqa: PLR0911 - one a kind
    if days_of(text):
        if _STAMP.fullmatch(text):
            return "stamp"
        if _ISO.fullmatch(text):
            return "date"
        return "day" if _NUMBERED.fullmatch(text) else "worded"
    time = _TIME.fullmatch(text)
    if time:
        return "time" if int(time[1]) < 24 and int(time[2]) < 60 else None
    numbers = text.split(".")
    if len(numbers) == 4 and all(one.isdecimal() and int(one) < 256 for one in numbers):
        return "address"
    if _VERSION.fullmatch(text):
        return "version"
    if _MAIL.fullmatch(text):
        return "mail"
    return "code" if _is_code(text) else None


def _is_code(text: str) -> bool:
    """Whether letters and digits together are a name of something, and no formula."""
    if not text.isascii() or len(text) < 4 or _CODE.fullmatch(text) is None:
        return False
    letters = re.sub(r"[^A-Za-z]", "", text)
    if not letters or not re.search(r"\d", text) or _FUNCTIONS.search(text):
        return False
    capitals = sum(letter.isupper() for letter in letters)
    parted = re.search(r"[-/:._#]", text) is not None
    return capitals >= 2 or (parted and len(re.sub(r"[^a-z]+", "", text)) >= 3)


def days_of(text: str) -> set[Day]:
    """The days that a text may name: of 3/4/2024 there are two. Empty for no date."""
    stamp = _STAMP.fullmatch(text)
    text = stamp[1] if stamp else text
    iso, numbered, worded = _ISO.fullmatch(text), _NUMBERED.fullmatch(text), _WORDED.fullmatch(text)
    found: list[tuple[int, ...]] = []
    if iso:
        found = [(int(iso[1]), int(iso[3]), int(iso[4]))]
    elif numbered:
        parts = [int(numbered[place]) for place in (1, 3, 4)]
        if len(numbered[4]) == 4:
            found = [(parts[2], a, b) for a, b in itertools.permutations(parts[:2])]
        else:
            found = [
                (y + century, a, b)
                for y, a, b in itertools.permutations(parts)
                for century in (1900, 2000)
            ]
    elif worded:
        name = (worded["m"] or worded["n"])[:3].casefold()
        month = next(place for place, one in enumerate(MONTHS, 1) if one.startswith(name))
        found = [(int(worded["y"] or worded["z"]), month, int(worded["d"] or worded["e"]))]
    return {(y, m, d) for y, m, d in found if 1 <= m <= 12 and 1 <= d <= days_in(y, m)}


def days_in(year: int, month: int) -> int:
    """How many days a month has."""
    return calendar.monthrange(year, month)[1]


def agree_codes(given: str, right: str) -> bool:
    """Whether two codes may name the same, to a lenient reader; True where that is not known."""
    a, b = read_code(given), read_code(right)
    if a is None or b is None or given.strip() == right.strip():
        return True
    if days_of(given) or days_of(right):
        return _agree_days(given, right)
    if a.kind != b.kind:
        return plainest(given) == plainest(right)
    if a.kind == "time":
        return _agree_times(given, right)
    if a.kind in ("address", "version"):
        return trimmed(a.numbers) == trimmed(b.numbers)
    return plainest(given) == plainest(right)


def _agree_days(given: str, right: str) -> bool:
    a, b = _STAMP.fullmatch(given), _STAMP.fullmatch(right)
    if a and b and a[4] != b[4]:
        return True  # of another zone both the day and the hour may be others
    same_day = bool(days_of(given) & days_of(right))
    return same_day and (not a or not b or _agree_times(a[3], b[3]))


def _agree_times(given: str, right: str) -> bool:
    """Whether two may be the same hour of a clock with 12 hours, or the same ratio."""
    a, b = ([int(one) for one in text.split(":")] for text in (given, right))
    if len(a) == len(b) == 2 and a[0] * b[1] == a[1] * b[0]:
        return True
    return [a[0] % 12, *trimmed(a[1:])] == [b[0] % 12, *trimmed(b[1:])]


def trimmed(numbers: Sequence[int]) -> list[int]:
    """Without zeros at the end."""
    kept = list(numbers)
    while kept and kept[-1] == 0:
        kept.pop()
    return kept


@lru_cache(1 << 14)
def plainest(text: str) -> str:
    """Letters and digits alone, in one case, without zeros before a number, O as 0, l as 1."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"[\W_]", "", re.sub(r"(?<!\d)0+(?=\d)", "", plain))
    return plain.translate(str.maketrans("oil", "011"))


def read_lines(text: str, prompt: str) -> tuple[str, ...]:
    """The lines of a program's output, a table or a list; empty for prose and source code."""
    if re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\\$^{}]", text.replace("\t", " ")):
        return ()
    lines = tuple(line.rstrip() for line in text.strip("\n").splitlines() if line.strip())
    if not 2 <= len(lines) <= _MOST_LINES or len(text) > _MOST_CHARS:
        return ()
    if re.search(r"(?m);\s*$|^\s*(?:def|import|class|return|#)\b", text):
        return ()
    if any(len(cells(line)) > _MOST_CELLS or len(line) > 120 for line in lines):
        return ()
    numbered = sum(re.search(r"\d", line) is not None for line in lines)
    listed = PRINTED.search(prompt) or re.search(r"\blines?\b|\blist\b", prompt, re.IGNORECASE)
    short = all(len(line.split()) <= 4 for line in lines)
    return lines if 2 * numbered >= len(lines) or (listed and short) else ()


def cells(line: str) -> list[str]:
    """The cells of a row: between bars, tabs, commas or blanks."""
    if "|" in line:
        return [one.strip() for one in line.strip("| ").split("|")]
    for mark in ("\t", ","):
        if mark in line:
            return [one.strip() for one in line.split(mark)]
    return line.split()


def with_cells(line: str, new: Sequence[str]) -> str:
    """A row with other cells, and what stood between them."""
    old, found, place = cells(line), [], 0
    for before, after in zip(old, new, strict=True):
        at = line.index(before, place)
        found += [line[place:at], after]
        place = at + len(before)
    return "".join(found) + line[place:]


def agree_lines(given: str, right: str, order: Order) -> bool:
    """Whether two texts of lines have the same words, to a reader who ignores blanks and case."""
    if order == "said":
        return _tokens(given) == _tokens(right)
    a, b = ({_tokens(line) for line in text.splitlines()} - {()} for text in (given, right))
    return a == b


def _tokens(text: str) -> tuple[Fraction | str, ...]:
    """The words of a text, numbers by their values."""
    return tuple(_worth(word) for word in text.split())


_SEPARATORS = (", ", "; ", " -> ", " → ", ",", ";", "->", " ")


_ENDS = re.compile(r"(\(|\\?\{)[^()\[\]{}\\]*(\)|\\?\})")


def ends_of(text: str) -> tuple[str, str]:
    """The round brackets or braces around a list; nothing for others."""
    found = _ENDS.fullmatch(text.strip())
    return (found[1], found[2]) if found else ("", "")


def parts_of(text: str) -> tuple[str, tuple[str, ...]]:
    """What parts a list, and its parts; a text without separators is its own only part."""
    before, after = ends_of(text)
    text = text[len(before) : len(text) - len(after)]
    for mark in _SEPARATORS:
        parts = tuple(part.strip() for part in text.split(mark))
        if len(parts) > 1 and all(parts):
            return mark, parts
    return ", ", (text.strip(),)


def permuted(digits: str) -> str:
    """Two unlike neighbours among digits exchanged, not to the front a zero; empty for none."""
    for place in range(len(digits) - 1, 0, -1):
        a, b = digits[place - 1], digits[place]
        leads = place == 1 or not digits[place - 2].isdigit()
        if a.isdigit() and b.isdigit() and a != b and not (leads and b == "0"):
            return f"{digits[: place - 1]}{b}{a}{digits[place + 1 :]}"
    return ""
