r"""Near misses of JSON and lines, and which of codes are kept (`codes` makes them). Pure.

What is kept for sure is told apart by the lenient readers of `shapes`; what only a strict one
refuses has a class that warns (`lax-data`, `lax-form`, `beside`, `order-unsaid`).
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from assay.audit.answers import shapes
from assay.audit.answers.codes import code_misses
from assay.audit.answers.notations import TEXT
from assay.audit.answers.shapes import Miss, permuted
from assay.audit.answers.tokens import cased_misses, text_misses
from assay.audit.answers.truth import Truth, is_certainly_wrong

LAX = frozenset(("lax-data", "lax-form", "beside", "order-unsaid"))
_PROVEN = frozenset(("run-together", "key-twice", "extra-field", "case", "typed", "unbroken"))
"""Classes whose rule alone is proof."""
_LEAST = Fraction(1, 200)
_LEAST_PRINTED = Fraction(1, 1000)
_MOST_LEAVES = 3
_MOST_KEYS = 8
_MOST_CHANGED = 6
OTHERS = ("Lisbon", "Kelvin", "granite", "Monday", "violet", "Saturn")
_ONLY = re.compile(r"\b(?:only|exactly|no other|nothing else|schema)\b", re.IGNORECASE)


def structured_misses(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """The near misses of JSON, a code, a notation or lines; of any other sort none."""
    made = {"json": _data, "code": _codes, "lines": _lines, "notation": _noted}.get(truth.sort)
    for kind, answer, note in made(truth, tolerance) if made else ():
        if answer in truth.texts:
            continue
        sure = kind in LAX or kind in _PROVEN or truth.notation is TEXT
        if sure or is_certainly_wrong(answer, truth, tolerance) or _is_rest(kind, answer, truth):
            yield kind, answer, note


def _is_rest(kind: str, answer: str, truth: Truth) -> bool:
    """Whether a code is no code of its kind any more: its parts are lost, or other text is in it.

    The lenient readers say of two kinds only that they do not know.
    """
    unlike = all(shapes.plainest(answer) != shapes.plainest(right) for right in truth.texts)
    if truth.notation is not None:
        return unlike and not truth.notation.read(answer)
    if truth.sort != "code" or kind not in ("component", "dotless"):
        return False
    return unlike and shapes.read_code(answer) is None


def other_structures(truth: Truth, count: int) -> Iterator[str]:
    """Wrong answers of the same structure: one value, one number or one line is another."""
    if truth.sort == "json":
        value = shapes.read_json(truth.text)
        for path, leaf in list(shapes.leaves(value))[:1]:
            for step in range(1, count + 1):
                yield shapes.write_json(_put(value, path, _another(leaf, step)), truth.text)
    elif truth.sort == "code":
        yield from (text for _, text, _ in code_misses(truth.text) if shapes.read_code(text))
    elif truth.notation is not None:
        made = truth.notation.misses(truth.text, truth.prompt)
        yield from (text for _, text, _ in made if truth.notation.differ(text, truth.text))
    elif truth.sort == "lines":
        lines = shapes.read_lines(truth.text, truth.prompt)
        for step in range(1, count + 1):
            yield "\n".join(_other_line(line, step) for line in lines)


def _codes(truth: Truth, _tolerance: float) -> Iterator[Miss]:
    yield from cased_misses(truth.text, truth.prompt)
    yield from code_misses(truth.text)
    yield from _part_by_part(truth)


def _noted(truth: Truth, _tolerance: float) -> Iterator[Miss]:
    if truth.notation is not None:
        yield from cased_misses(truth.text, truth.prompt)
        yield from truth.notation.misses(truth.text, truth.prompt)
        yield from _part_by_part(truth)


def _part_by_part(truth: Truth) -> Iterator[Miss]:
    """What the rules for any text make, where a reader of this sort tells it apart."""
    if truth.notation is TEXT:
        return
    for kind, answer, note in text_misses(truth.text, ""):
        if is_certainly_wrong(answer, truth):
            yield kind, answer, note


def skeletons(truth: Truth) -> Iterator[str]:
    """The form of a structured answer without what it says, and with patterns in its place."""
    if truth.sort == "json":
        value = shapes.read_json(truth.text)
        for filler in (None, "", Decimal(0), ".*"):
            filled = value
            for path, _ in shapes.leaves(value):
                filled = _put(filled, path, filler)
            yield shapes.write_json(filled, truth.text)
    elif truth.sort in ("code", "lines", "notation"):
        for filler in ("0", "9", ".*"):
            yield re.sub(r"\d+|[^\W\d_]+", filler, truth.text)
        yield re.sub(r"\d+", lambda one: "0" * len(one[0]), truth.text)


# JSON


def _data(truth: Truth, tolerance: float) -> Iterator[Miss]:
    value = shapes.read_json(truth.text)
    made = (
        *_other_values(value, tolerance, truth.prompt),
        *_other_types(value, truth.prompt),
        *_other_fields(value, truth),
        *_other_arrays(value, truth),
        *_matrices(value),
    )
    for kind, changed, note in made:
        yield kind, shapes.write_json(changed, truth.text), note
    yield from _twice(value, truth)


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:
    """The value with another one in one place."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


def _some_leaves(value: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """The first, the last, the deepest and the largest scalar."""
    every = list(shapes.leaves(value))
    numbers = [one for one in every if isinstance(one[1], Decimal)]
    picked = [every[0], every[-1], max(every, key=lambda one: len(one[0]))]
    picked += [max(numbers, key=lambda one: abs(one[1]))] if numbers else []
    return [one for place, one in enumerate(picked) if one not in picked[:place]]


def _another(leaf: Any, step: int = 1) -> Any:
    """Another scalar of the same type, unlike the first to every reader."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, Decimal):
        return leaf + step * _step(leaf)
    if isinstance(leaf, str) and re.search(r"\d", leaf):
        return re.sub(r"\d", lambda one: str((int(one[0]) + step) % 10), leaf, count=1)
    return OTHERS[step - 1 if leaf != OTHERS[step - 1] else step]


def _step(number: Decimal, tolerance: float = 0.0) -> Decimal:
    """The least change that no reader rounds away: 0.5 % of whole numbers, 2.5 % of others."""
    places = max(0, -int(number.as_tuple().exponent))
    if places == 0:
        share = max(float(_LEAST), 2 * tolerance)
        return Decimal(max(1, math.ceil(abs(float(number)) * share)))
    share = max(0.025, 2 * tolerance)
    unit = Decimal(1).scaleb(-places)
    return max(2 * unit, (abs(number) * Decimal(share)).quantize(unit) + unit)


def _other_values(value: Any, tolerance: float, prompt: str) -> Iterator[tuple[str, Any, str]]:
    kind = "field-value"
    for path, leaf in _some_leaves(value):
        if isinstance(leaf, Decimal):
            step = _step(leaf, tolerance)
            yield kind, _put(value, path, leaf + step), f"{step} more"
            yield kind, _put(value, path, leaf - step), f"{step} less"
            if leaf:
                yield kind, _put(value, path, -leaf), "the sign is turned"
            turned = permuted(str(leaf))
            if turned and abs(Decimal(turned) - leaf) >= step:
                yield kind, _put(value, path, Decimal(turned)), "two digits are exchanged"
            yield kind, _put(value, path, leaf * 10 or Decimal(7)), "ten times"
        elif isinstance(leaf, str) and leaf:
            yield kind, _put(value, path, _another(leaf)), "another text"
            yield kind, _put(value, path, ""), "an empty text"
            if leaf.isalpha() and len(leaf) > 3:
                letter = "x" if leaf[-2].casefold() != "x" else "k"
                note = "a letter is another"
                yield "lax-data", _put(value, path, f"{leaf[:-2]}{letter}{leaf[-1]}"), note
        elif isinstance(leaf, bool):
            yield kind, _put(value, path, not leaf), "the opposite"
        if leaf not in (None, "", False):
            yield kind, _put(value, path, None), "null"
    yield from _unset(value, prompt)


def _unset(value: Any, prompt: str) -> Iterator[tuple[str, Any, str]]:
    """Null, 0, false and nothing for each other, where the prompt tells them apart."""
    if not re.search(r"\bnull\b", prompt):
        return
    empty: tuple[Any, ...] = (None, Decimal(0), False, "", [])
    for path, leaf in shapes.leaves(value):
        if leaf in (None, "", 0, False):
            for other in empty:
                if type(other) is not type(leaf) and not {type(other), type(leaf)} <= {
                    bool,
                    Decimal,
                }:
                    yield (
                        "field-value",
                        _put(value, path, other),
                        "null, 0, false or nothing for it",
                    )


def _other_types(value: Any, prompt: str) -> Iterator[tuple[str, Any, str]]:
    """Other types of a value that a language may call equal: in Python True == 1."""
    typed = re.search(r"\((?:a|as a) number|\ba number, not|types? matter", prompt) is not None
    for path, leaf in shapes.leaves(value):
        if isinstance(leaf, Decimal):
            note = "as a text"
            yield ("typed" if typed else "lax-data"), _put(value, path, str(leaf)), note
            break
    for path, leaf in shapes.leaves(value):
        if isinstance(leaf, Decimal) and leaf in (0, 1):
            yield "lax-data", _put(value, path, bool(leaf)), f"a truth value for {leaf}"
            break
    for path, leaf in shapes.leaves(value):
        if isinstance(leaf, bool):
            yield "lax-data", _put(value, path, Decimal(int(leaf))), "a number for a truth value"
            break


def _objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The objects and arrays in a value, itself the first, with the way to each."""
    if isinstance(value, dict | list):
        yield path, value
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _objects(one, (*path, key))


def _other_fields(value: Any, truth: Truth) -> Iterator[tuple[str, Any, str]]:
    found = [(path, one) for path, one in _objects(value) if isinstance(one, dict) and one]
    for path, one in found[:_MOST_LEAVES]:
        keys = list(one)
        for key in dict.fromkeys((keys[0], keys[-1])):
            rest = {name: inner for name, inner in one.items() if name != key}
            yield "field", _put(value, path, rest), f"without {key!r}"
            new = {(f"{key}_other" if name == key else name): one[name] for name in keys}
            yield "field", _put(value, path, new), f"{key!r} has another name"
        extra = _put(value, path, {**one, "other": Decimal(7)})
        yield ("extra-field" if _ONLY.search(truth.prompt) else "lax-data"), extra, "a field more"
        yield from _exchanged(value, path, one)
    yield "field", {}, "an object without a field"
    yield "field", [], "an array without an element"


def _exchanged(value: Any, path: tuple[Any, ...], one: Any) -> Iterator[tuple[str, Any, str]]:
    """Two unlike values of one type change places."""
    keys = list(one)
    for a, b in itertools.pairwise(keys):
        if type(one[a]) is type(one[b]) and one[a] != one[b]:
            note = f"{a!r} and {b!r} are exchanged"
            yield "field", _put(value, path, {**one, a: one[b], b: one[a]}), note
            return


def _other_arrays(value: Any, truth: Truth) -> Iterator[tuple[str, Any, str]]:
    found = [(path, one) for path, one in _objects(value) if isinstance(one, list) and one]
    ordered = truth.order == "said"
    for path, one in found[:_MOST_LEAVES]:
        yield "list-part", _put(value, path, one[:-1]), "its last element is left out"
        yield "list-part", _put(value, path, one[1:]), "its first element is left out"
        extra = _another(one[-1]) if not isinstance(one[-1], dict | list) else Decimal(999)
        if isinstance(extra, Decimal):
            extra += 1000
        yield "list-part", _put(value, path, [*one, extra]), "an element more"
        if truth.order != "free":
            kind = "list-part" if ordered else "order-unsaid"
            yield kind, _put(value, path, [*one, one[-1]]), "its last element twice"
            if one != one[::-1]:
                kind = "order" if ordered else "order-unsaid"
                yield kind, _put(value, path, one[::-1]), "in reverse"
                yield kind, _put(value, path, [*one[:-2], one[-1], one[-2]]), "two exchanged"
                yield kind, _put(value, path, [*one[1:], one[0]]), "the first is put last"


def _matrices(value: Any) -> Iterator[tuple[str, Any, str]]:
    """Rows of equal length: run together, cut elsewhere, turned, without a column."""
    if not shapes.is_matrix(value):
        return
    flat = [one for row in value for one in row]
    yield "list-part", flat, "its rows are one"
    yield "list-part", [flat], "one row holds all"
    yield "list-part", [[one] for one in flat], "each element is a row"
    yield (
        "list-part",
        [flat[: len(value[0]) + 1], flat[len(value[0]) + 1 :]],
        "a row ends elsewhere",
    )
    if len(flat) > 3:
        yield "list-part", [flat[:1], flat[1:]], "a row ends elsewhere"
    yield "list-part", [[] for _ in value], "rows without elements"
    yield "list-part", [[]], "one row without elements"
    if len(value[0]) > 1:
        yield "list-part", [row[:-1] for row in value], "without its last column"
        yield "list-part", [row[1:] for row in value], "without its first column"
        other = [[*row[:-1], row[-1] + 1000] for row in value]
        yield "field-value", other, "its last column is another"
        yield "order", [row[::-1] for row in value], "its columns in reverse"
    yield "order", [list(column) for column in zip(*value, strict=True)], "rows for columns"
    yield "order", value[::-1], "its rows in reverse"


def _twice(value: Any, truth: Truth) -> Iterator[Miss]:
    """A key twice, and a wrong value beside the right one."""
    right = shapes.write_json(value, truth.text)
    path, leaf = next(shapes.leaves(value))
    wrong = shapes.write_json(_put(value, path, _another(leaf)), truth.text)
    if isinstance(value, dict):
        key = next(iter(value))
        written = json.dumps(key, ensure_ascii=False)
        other = shapes.write_json(_bad(value[key]), truth.text)
        note = "a key twice"
        yield "key-twice", f"{right[:-1]}, {written}: {other}}}", f"{note}, the last time wrong"
        yield "lax-data", f"{{{written}: {other}, {right[1:]}", f"{note}, the first time wrong"
    yield "beside", f"{right}\n{wrong}", "a wrong one behind it"
    yield "beside", f"{wrong}\n<think>{right}</think>", "the right one in thoughts behind it"


def other_objects(right: str, other: str) -> Iterator[Miss]:
    """A field of another object in the right one, and one right field in the other object."""
    a, b = shapes.read_json(right), shapes.read_json(other)
    if not isinstance(a, dict) or not isinstance(b, dict) or a.keys() != b.keys():
        return
    for key in list(a)[:_MOST_KEYS]:
        if a[key] != b[key]:
            new = shapes.write_json({**a, key: b[key]}, right)
            yield "splice", new, f"{key!r} is another row's"
            new = shapes.write_json({**b, key: a[key]}, right)
            yield "splice", new, f"{key!r} is right, the rest another row's"


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


def _bad(value: Any) -> Any:
    """Another value of the same form."""
    if isinstance(value, dict | list):
        path = next((path for path, _ in shapes.leaves(value)), None)
        return [] if path is None else _put(value, path, _another(_at(value, path)))
    return _another(value)


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


# Lines


def _lines(truth: Truth, tolerance: float) -> Iterator[Miss]:
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
        yield "line", [*lines[:half], *(_other_line(one) for one in lines[half:])], "half is wrong"


def _other_line(line: str, step: int = 1) -> str:
    """The line with other numbers, or another word."""
    new = re.sub(r"\d+", lambda one: str(int(one[0]) + step * max(1, int(one[0]) // 20)), line)
    return new if new != line else next(one for one in OTHERS[step - 1 :] if one not in line)


def _more_lines(lines: Sequence[str], truth: Truth) -> Iterator[_Changed]:
    extra = _other_line(lines[-1])
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
