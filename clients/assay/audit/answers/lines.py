"""Near misses of lines: outputs, tables, lists. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from assay.audit.answers import shapes
from assay.audit.answers.shapes import OTHERS, Miss, permuted
from assay.audit.answers.truth import Truth

_LEAST = Fraction(1, 200)
_LEAST_PRINTED = Fraction(1, 1000)
_MOST_CHANGED = 6


def other_lines(right: str, other: str) -> Iterator[Miss]:
    """A line of another answer in the right one, and one right line in the other."""
    a, b = right.splitlines(), other.splitlines()
    if len(a) != len(b):
        return
    for place in dict.fromkeys((0, len(a) // 2, len(a) - 1)):
        new = "\n".join([*b[:place], a[place], *b[place + 1 :]])
        yield "splice", new, "a line is right, the rest another row's"
        new = "\n".join([*a[:place], b[place], *a[place + 1 :]])
        yield "splice", new, "a line is another row's"
    half = len(a) // 2
    yield "splice", "\n".join([*a[:half], *b[half:]]), "its first half alone"


def near_lines(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """Lines with one changed, left out, too many, or elsewhere."""
    lines = list(shapes.read_lines(truth.text, truth.prompt))
    for kind, changed, note in (
        *_fewer_lines(lines), *_more_lines(lines, truth), *_other_numbers(lines, truth, tolerance),
        *_moved_cells(lines, truth),
    ):  # fmt: skip
        yield kind, "\n".join(changed), note
    if re.search(r"\bline by line\b|\b(?:one|each) (?:a|per|on its own) line\b", truth.prompt):
        yield "unbroken", " ".join(lines), "blanks for its line breaks"
    for kind, joined, note in _run_together(lines):
        if joined.split() != truth.text.split():
            yield kind, joined, note


_Changed = tuple[str, Sequence[str], str]


def _fewer_lines(lines: Sequence[str]) -> Iterator[_Changed]:
    if len(set(lines)) == len(lines):
        yield "line", lines[:-1], "its last line is left out"
        yield "line", lines[1:], "its first line is left out"
        yield "line", lines[: (len(lines) + 1) // 2], "its first half"
    if len(lines) > 3:
        half = len(lines) // 2
        yield "line", [*lines[:half], *(other_line(one) for one in lines[half:])], "half is wrong"


def other_line(line: str, step: int = 1) -> str:
    """The line with other numbers, or another word."""
    new = re.sub(r"\d+", lambda one: str(int(one[0]) + step * max(1, int(one[0]) // 20)), line)
    return new if new != line else next(one for one in OTHERS[step - 1 :] if one not in line)


def _more_lines(lines: Sequence[str], truth: Truth) -> Iterator[_Changed]:
    extra = other_line(lines[-1])
    if extra in lines:
        extra = f"{extra}7"
    yield "line", [*lines[:1], extra, *lines[1:]], "a line more in the middle"
    yield "beside", [extra, *lines], "a line before it"
    yield "beside", [*lines, extra], "a line behind it"
    if truth.order != "free":
        ordered = truth.order == "said"
        if len(lines) > 2:
            kind = "line" if ordered else "order-unsaid"
            yield kind, [*lines[:2], *lines[1:]], "its second line twice"
        if len(set(lines)) > 1:
            kind = "order" if ordered else "order-unsaid"
            yield kind, list(reversed(lines)), "its lines in reverse"
            place = next(i for i in range(len(lines) - 1) if lines[i] != lines[i + 1])
            new = list(lines)
            new[place], new[place + 1] = new[place + 1], new[place]
            yield kind, new, "two lines are exchanged"


_NUMBER = re.compile(r"(?<![\w.,:/-])-?\d+(?:\.\d+)?(?![\w.,:/-]*\w)")


def _other_numbers(lines: list[str], truth: Truth, tolerance: float) -> Iterator[_Changed]:
    """One number is another: a little, or without its decimal places."""
    found = [
        (place, one) for place, line in enumerate(lines) for one in _NUMBER.finditer(line)
    ]  # fmt: skip
    if not found:
        return
    largest = max(found, key=lambda one: abs(Decimal(one[1][0])))
    share = max(_LEAST_PRINTED if truth.order == "said" else _LEAST, Fraction(2 * tolerance))
    firsts = [next((one for one in found if one[0] == n), found[0]) for n in range(len(lines))]
    lasts = [next((one for one in found[::-1] if one[0] == n), found[0]) for n in range(len(lines))]
    chosen = (found[0], found[-1], largest, *firsts[:_MOST_CHANGED], *lasts[:_MOST_CHANGED])
    for place, one in dict.fromkeys(chosen):
        number = Decimal(one[0])
        places = max(0, -int(number.as_tuple().exponent))
        by = Decimal(math.ceil(abs(Fraction(number)) * share * 10**places) or 1)
        for step in (by + (1 if places else 0), -by - (1 if places else 0)):
            new = str(number + step.scaleb(-places))
            yield "line", _with(lines, place, one, new), "a number is a little off"
        turned = permuted(one[0].lstrip("-"))
        if turned and not tolerance:
            yield "line", _with(lines, place, one, turned), "two of its digits are exchanged"
    for place, one in found:
        if one[0].startswith("-") and Decimal(one[0]):
            yield "line", _with(lines, place, one, one[0][1:]), "a minus is left out"
            break
    for _, one in found:
        number = Decimal(one[0])
        rest = abs(number - int(number))
        if rest >= Decimal("0.05") and rest > abs(number) * Decimal(max(0.005, tolerance)):
            cut = [_NUMBER.sub(lambda each: each[0].partition(".")[0], line) for line in lines]
            yield "line", cut, "decimal places are cut off"
            return


def _with(lines: Sequence[str], place: int, found: re.Match[str], new: str) -> list[str]:
    line = lines[place]
    changed = f"{line[: found.start()]}{new}{line[found.end() :]}"
    return [*lines[:place], changed, *lines[place + 1 :]]


def _moved_cells(lines: Sequence[str], truth: Truth) -> Iterator[_Changed]:
    """Cells of a row, or of a column, change places."""
    columns = all("|" in line or "\t" in line for line in lines)
    columns = (
        columns and re.search(r"\bcolumns?\b|\bselect\b", truth.prompt, re.IGNORECASE) is not None
    )
    if truth.order == "free" and not columns:
        return
    ordered = truth.order == "said" or columns
    rows = [shapes.cells(line) for line in lines]
    for place, row in enumerate(rows):
        if len(row) > 1 and row[0] != row[-1]:
            new = shapes.with_cells(lines[place], [row[-1], *row[1:-1], row[0]])
            changed = [*lines[:place], new, *lines[place + 1 :]]
            yield ("order" if ordered else "order-unsaid"), changed, "cells of a row are exchanged"
            break
    for place in range(len(rows) - 1):
        a, b = rows[place], rows[place + 1]
        if len(a) == len(b) > 1 and a[-1] != b[-1] and a[:-1] != b[:-1]:
            changed = list(lines)
            changed[place] = shapes.with_cells(lines[place], [*a[:-1], b[-1]])
            changed[place + 1] = shapes.with_cells(lines[place + 1], [*b[:-1], a[-1]])
            yield "line", changed, "cells of two rows are exchanged"
            return


def _run_together(lines: Sequence[str]) -> Iterator[Miss]:
    """Blanks and line breaks are left out, so that neighbours are one.

    Cells of one sign each are read one by one, with blanks or without.
    """
    text = "\n".join(lines)
    if all(len(cell) == 1 for cell in text.split()):
        return
    glued = re.sub(r"(?<=\w)[ \t]+(?=\w)", "", text)
    if glued != text and re.search(r"\d[ \t]+\d", text):
        yield "run-together", glued, "without its blanks"
    if any(re.search(r"\w$", a) and re.match(r"\w", b) for a, b in itertools.pairwise(lines)):
        yield "run-together", "".join(lines), "without its line breaks"
    first = re.search(r"(\d)([ \t])(\d)", text)
    if first:
        moved = f"{text[: first.start()]}{first[1]}{first[3]}{text[first.end() :]}"
        yield "run-together", moved, "a blank is left out"
