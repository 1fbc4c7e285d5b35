"""IFBench (arXiv 2507.02833), third part: instructions that are whole tasks of their own.

The definitions, oddities included, are those of the benchmark's checkers (allenai, IFBench);
`verifier` lists what differs. Every check is linear in the response.
"""

from __future__ import annotations

import csv
import io
import re
import string
import unicodedata
from collections.abc import Callable
from itertools import pairwise

from assay.verifiers_extra.instructions.arguments import Arguments, Check
from assay.verifiers_extra.instructions.sentences import sentences
from assay.verifiers_extra.instructions.words import bare, trimmed

_MULTIPLES = [str(number) for number in range(14, 51, 7)]
_CAPITALS = [
    "Reykjavik",
    "Helsinki",
    "Oslo",
    "Tallinn",
    "Stockholm",
    "Riga",
    "Moscow",
    "Copenhagen",
    "Vilnius",
    "Minsk",
    "Dublin",
    "Berlin",
    "Amsterdam",
    "Warsaw",
    "London",
    "Brussels",
    "Prague",
    "Luxembourg",
    "Paris",
    "Vienna",
    "Bratislava",
    "Budapest",
    "Vaduz",
    "Chisinau",
    "Bern",
    "Ljubljana",
    "Zagreb",
]
_COUNTRIES_OF_AFRICA = 52
_QUESTION = re.compile(r"Question \d+[.|):;]?\s*")
_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DAYS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_CITY_HEADER = ["ID", "Country", "City", "Year", "Count"]
_PRODUCT_HEADER = re.compile(
    r",[ \t]*".join(f'(?:{n}|"{n}")' for n in ("ProductID", "Category", "Brand", "Price", "Stock"))
)
_STUDENT_HEADER = re.compile(
    "\t *".join(f'(?:{n}|"{n}")' for n in ("StudentID", "Subject", "Grade", "Semester", "Score"))
)


def _check(check: Check) -> Callable[[Arguments], Check]:
    """An entry of the table for an instruction without arguments; it takes any that are given."""

    def build(arguments: Arguments) -> Check:
        arguments.ignore_all()
        return check

    return build


def _multiples(response: str) -> bool:
    return re.findall(r"\d+", response) == _MULTIPLES


def _mcq_count_length(response: str) -> bool:
    if not response.startswith("Question"):
        return False
    questions = [part.strip() for part in _QUESTION.split(response) if part.strip()]
    lengths = []
    for question in questions[:5]:
        lines = [line.strip() for line in question.split("\n")]
        options = [number for number, line in enumerate(lines) if _OPTION.match(line)]
        if len(options) != 5:
            return False
        lengths.append(len(" ".join(lines[: options[0]]).strip()))
    return len(lengths) == 4 and all(a < b for a, b in pairwise(lengths))


def _reverse_newline(response: str) -> bool:
    lines = [line for line in map(trimmed, response.split("\n")) if line]
    start = next((i for i, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    names = [_plain(line) for line in lines[start:]]
    return len(names) >= _COUNTRIES_OF_AFRICA and names == sorted(names, reverse=True)


def _plain(text: str) -> str:
    """A text without accents and without what is not ASCII."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _word_reverse(response: str) -> bool:
    text = " ".join(reversed(bare(response.lower().strip()).split()))
    return "bald eagle" in text and sentences(text) == [text]


def _character_reverse(response: str) -> bool:
    return "elgae dlab" in response.lower()


def _sentence_alphabet(response: str) -> bool:
    initials = [sentence[0].lower()[0] for sentence in sentences(response)]
    return initials == list(string.ascii_lowercase)


def _european_capitals_sort(response: str) -> bool:
    cities = [city.strip() for city in _plain(response).split(",") if city.strip()]
    return cities == _CAPITALS


def _rows(text: str, delimiter: str = ",") -> list[list[str]]:
    """The rows of a CSV text; none when it is not one."""
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _csv_city(response: str) -> bool:
    rows = _rows(response)
    return len(rows) == 8 and rows[0] == _CITY_HEADER and all(len(row) == 5 for row in rows[1:])


def _csv_special_character(response: str) -> bool:
    if not _PRODUCT_HEADER.fullmatch(_first_line(response)):
        return False
    rows = _rows(response.replace('"', '"""'))
    if len(rows) != 15:
        return False
    for row in rows[1:]:
        if len(row) != 5:
            return False
        if any(map(_is_special, row)):
            return True
    return False


def _is_special(field: str) -> bool:
    r"""Whether a field is quoted and holds a character that is none of \d, \w and \s."""
    line = field.split("\n", maxsplit=1)[0]
    inside = line[1 : line.rfind('"')] if line.startswith('"') else ""
    return any(not (c.isalnum() or c == "_" or c.isspace()) for c in inside)


def _csv_quotes(response: str) -> bool:
    if not _STUDENT_HEADER.fullmatch(_first_line(response)):
        return False
    rows = _rows(response.replace('"', '"""'), "\t")
    fields = [field.strip() for row in rows for field in row]
    return (
        len(rows) == 4
        and all(len(row) == 5 for row in rows)
        and all(field.startswith('"') and field.endswith('"') for field in fields)
    )


def _date_format_list(response: str) -> bool:
    return all(_is_date(date.strip()) for date in response.strip().split(","))


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    return 1769 <= year <= 1821 and month <= 12 and (not month or day <= _DAYS.get(month, 31))


IFBENCH_CUSTOM: dict[str, Callable[[Arguments], Check]] = {
    "custom:character_reverse": _check(_character_reverse),
    "custom:csv_city": _check(_csv_city),
    "custom:csv_quotes": _check(_csv_quotes),
    "custom:csv_special_character": _check(_csv_special_character),
    "custom:date_format_list": _check(_date_format_list),
    "custom:european_capitals_sort": _check(_european_capitals_sort),
    "custom:mcq_count_length": _check(_mcq_count_length),
    "custom:multiples": _check(_multiples),
    "custom:reverse_newline": _check(_reverse_newline),
    "custom:sentence_alphabet": _check(_sentence_alphabet),
    "custom:word_reverse": _check(_word_reverse),
}
