"""Near misses of JSON. Pure."""

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
from assay.audit.answers.shapes import OTHERS, Miss, permuted
from assay.audit.answers.terms import is_once, is_typed
from assay.audit.answers.truth import Truth

_LEAST = Fraction(1, 200)
_MOST_LEAVES = 3
_MOST_KEYS = 8
_ONLY = re.compile(r"\b(?:only|exactly|no other|nothing else|schema)\b", re.IGNORECASE)


def near_data(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """JSON with a value, field or element changed."""
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


def put_in(value: Any, path: Sequence[Any], new: Any) -> Any:
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


def another_leaf(leaf: Any, step: int = 1) -> Any:
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
            yield kind, put_in(value, path, leaf + step), f"{step} more"
            yield kind, put_in(value, path, leaf - step), f"{step} less"
            if leaf:
                yield kind, put_in(value, path, -leaf), "the sign is turned"
            turned = permuted(str(leaf))
            if turned and abs(Decimal(turned) - leaf) >= step:
                yield kind, put_in(value, path, Decimal(turned)), "two digits are exchanged"
            yield kind, put_in(value, path, leaf * 10 or Decimal(7)), "ten times"
        elif isinstance(leaf, str) and leaf:
            yield kind, put_in(value, path, another_leaf(leaf)), "another text"
            yield kind, put_in(value, path, ""), "an empty text"
            if leaf.isalpha() and len(leaf) > 3:
                letter = "x" if leaf[-2].casefold() != "x" else "k"
                note = "a letter is another"
                yield "lax-data", put_in(value, path, f"{leaf[:-2]}{letter}{leaf[-1]}"), note
        elif isinstance(leaf, bool):
            yield kind, put_in(value, path, not leaf), "the opposite"
        if leaf not in (None, "", False):
            yield kind, put_in(value, path, None), "null"
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
                        put_in(value, path, other),
                        "null, 0, false or nothing for it",
                    )


def _other_types(value: Any, prompt: str) -> Iterator[tuple[str, Any, str]]:
    """Other types of a value that a language may call equal: in Python True == 1."""
    kind = "typed" if is_typed(prompt) else "lax-data"
    numbers = [(path, leaf) for path, leaf in shapes.leaves(value) if isinstance(leaf, Decimal)]
    truths = [(path, leaf) for path, leaf in shapes.leaves(value) if isinstance(leaf, bool)]
    for path, leaf in numbers[:1]:
        yield kind, put_in(value, path, str(leaf)), "as a text"
    for path, leaf in [one for one in numbers if one[1] in (0, 1)][:1]:
        yield kind, put_in(value, path, bool(leaf)), f"a truth value for {leaf}"
    for path, truth in truths[:1]:
        yield kind, put_in(value, path, Decimal(int(truth))), "a number for a truth value"
        yield kind, put_in(value, path, str(truth).lower()), "a text for a truth value"
        yield kind, put_in(value, path, str(truth)), "a text for a truth value"


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
            yield "field", put_in(value, path, rest), f"without {key!r}"
            new = {(f"{key}_other" if name == key else name): one[name] for name in keys}
            yield "field", put_in(value, path, new), f"{key!r} has another name"
        extra = put_in(value, path, {**one, "other": Decimal(7)})
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
            yield "field", put_in(value, path, {**one, a: one[b], b: one[a]}), note
            return


def _other_arrays(value: Any, truth: Truth) -> Iterator[tuple[str, Any, str]]:
    found = [(path, one) for path, one in _objects(value) if isinstance(one, list) and one]
    ordered = truth.order == "said"
    for path, one in found[:_MOST_LEAVES]:
        yield "list-part", put_in(value, path, one[:-1]), "its last element is left out"
        yield "list-part", put_in(value, path, one[1:]), "its first element is left out"
        extra = another_leaf(one[-1]) if not isinstance(one[-1], dict | list) else Decimal(999)
        if isinstance(extra, Decimal):
            extra += 1000
        yield "list-part", put_in(value, path, [*one, extra]), "an element more"
        if truth.order != "free":
            kind = "list-part" if ordered or is_once(truth.prompt) else "order-unsaid"
            yield kind, put_in(value, path, [*one, one[-1]]), "its last element twice"
            if one != one[::-1]:
                kind = "order" if ordered else "order-unsaid"
                yield kind, put_in(value, path, one[::-1]), "in reverse"
                yield kind, put_in(value, path, [*one[:-2], one[-1], one[-2]]), "two exchanged"
                yield kind, put_in(value, path, [*one[1:], one[0]]), "the first is put last"


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
    wrong = shapes.write_json(put_in(value, path, another_leaf(leaf)), truth.text)
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


def _bad(value: Any) -> Any:
    """Another value of the same form."""
    if isinstance(value, dict | list):
        path = next((path for path, _ in shapes.leaves(value)), None)
        return [] if path is None else put_in(value, path, another_leaf(_at(value, path)))
    return another_leaf(value)


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value
