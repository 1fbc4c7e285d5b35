"""One line of comma-separated values: its fields, and what is close to it. Pure."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence

from assay.audit.answers.readings import NOTHING, Notation, Readings, asked
from assay.audit.answers.shapes import Miss

_HERE = "component"


def fields_of(text: str) -> list[str]:
    """The fields of a line, unquoted; none of what is no line of at least two."""
    mark = "\t" if "\t" in text and "," not in text else ","
    try:
        rows = list(csv.reader([text], delimiter=mark, strict=True))
    except csv.Error:
        return []
    return rows[0] if len(rows) == 1 and len(rows[0]) > 1 else []


def written_fields(fields: Sequence[str], like: str) -> str:
    """Fields as one line, quoted where they must be."""
    mark = "\t" if "\t" in like and "," not in like else ","
    quoted = ('"' + one.replace('"', '""') + '"' if re.search(r'[",\t]', one) else one
              for one in fields)  # fmt: skip
    return mark.join(quoted)


def _record(text: str) -> Readings:
    fields = fields_of(text.strip("\r\n"))
    if not fields or "\n" in text.strip("\r\n"):
        return NOTHING
    plain = tuple(" ".join(one.split()).casefold() for one in fields)
    return frozenset((plain,))


def _near_records(text: str, _: str) -> Iterator[Miss]:
    fields = fields_of(text)
    if text.count('"') and text.replace('"', "") != text:
        yield _HERE, text.replace('"', ""), "without its quotes"
        yield _HERE, text.replace('""', ""), "without the quotes in a field"
        inner = re.sub(r'"[^"]*"', lambda one: one[0].replace(",", ""), text)
        yield _HERE, inner, "without the commas in a field"
    for place, one in enumerate(fields):
        rest = [*fields[:place], *fields[place + 1 :]]
        yield _HERE, written_fields(rest, text), "a field is left out"
        if one:
            emptied = [*fields[:place], "", *fields[place + 1 :]]
            yield _HERE, written_fields(emptied, text), "a field is empty"
        else:
            filled = [*fields[:place], "0", *fields[place + 1 :]]
            yield _HERE, written_fields(filled, text), "an empty field is filled"
    for a, b in itertools.pairwise(range(len(fields))):
        if fields[a] != fields[b]:
            turned = [*fields[:a], fields[b], fields[a], *fields[b + 1 :]]
            yield "order", written_fields(turned, text), "two fields are exchanged"
    turned = [fields[-1], *fields[1:-1], fields[0]]
    if turned != fields:
        yield "order", written_fields(turned, text), "the first and the last are exchanged"
    yield _HERE, written_fields(sorted(fields), text), "its fields are sorted"
    for place in sorted({0, len(fields) // 2, len(fields)}):
        more = [*fields[:place], "zinc", *fields[place:]]
        yield _HERE, written_fields(more, text), "a field more"
        more = [*fields[:place], "", *fields[place:]]
        yield _HERE, written_fields(more, text), "an empty field more"
    yield _HERE, written_fields([*fields, fields[-1]], text), "its last field twice"


RECORD = Notation(
    "record", _record, _near_records,
    asked(
        r"(?:line|row|record|fields?)\b[^.]{0,40}\b[CT]SV|[CT]SV (?:line|row|record|format)"
        r"|(?:comma|tab)[- ]separated (?:line|row|record)"
    ),
)  # fmt: skip
