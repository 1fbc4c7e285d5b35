r"""Near misses of JSON and lines, and which of codes are kept (`codes` makes them). Pure.

What is kept for sure is told apart by the lenient readers of `shapes`; what only a strict one
refuses has a class that warns (`lax-data`, `lax-form`, `beside`, `order-unsaid`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from assay.audit.answers import shapes
from assay.audit.answers.codes import code_misses
from assay.audit.answers.data import another_leaf, near_data, put_in
from assay.audit.answers.lines import near_lines, other_line
from assay.audit.answers.notations import TEXT
from assay.audit.answers.shapes import Miss
from assay.audit.answers.terms import day_first
from assay.audit.answers.tokens import cased_misses, text_misses
from assay.audit.answers.truth import Truth, is_certainly_wrong

LAX = frozenset(("lax-data", "lax-form", "beside", "order-unsaid"))
_PROVEN = frozenset(
    ("run-together", "key-twice", "extra-field", "case", "typed", "unbroken", "day-month")
)
"""Classes whose rule alone is proof."""


def structured_misses(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """The near misses of JSON, a code, a notation or lines; of any other sort none."""
    made = {"json": near_data, "code": _codes, "lines": near_lines, "notation": _noted}.get(
        truth.sort
    )
    for kind, answer, note in made(truth, tolerance) if made else ():
        if answer in truth.texts or (kind == "order" and truth.order == "free"):
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
                yield shapes.write_json(put_in(value, path, another_leaf(leaf, step)), truth.text)
    elif truth.sort == "code":
        yield from (text for _, text, _ in code_misses(truth.text) if shapes.read_code(text))
    elif truth.notation is not None:
        made = truth.notation.misses(truth.text, truth.prompt)
        yield from (text for _, text, _ in made if truth.notation.differ(text, truth.text))
    elif truth.sort == "lines":
        lines = shapes.read_lines(truth.text, truth.prompt)
        for step in range(1, count + 1):
            yield "\n".join(other_line(line, step) for line in lines)


def _codes(truth: Truth, _tolerance: float) -> Iterator[Miss]:
    yield from cased_misses(truth.text, truth.prompt)
    yield from _turned_day(truth)
    yield from code_misses(truth.text)
    yield from _part_by_part(truth)


def _turned_day(truth: Truth) -> Iterator[Miss]:
    """Day and month exchanged, where the prompt says which of them is first."""
    found = re.fullmatch(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{2,4})", truth.text)
    if found is None or day_first(truth.prompt) is None or found[1] == found[3]:
        return
    if max(int(found[1]), int(found[3])) <= 12:
        turned = f"{found[3]}{found[2]}{found[1]}{found[2]}{found[4]}"
        yield "day-month", turned, "day and month are exchanged"


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
                filled = put_in(filled, path, filler)
            yield shapes.write_json(filled, truth.text)
    elif truth.sort in ("code", "lines", "notation"):
        for filler in ("0", "9", ".*"):
            yield re.sub(r"\d+|[^\W\d_]+", filler, truth.text)
        yield re.sub(r"\d+", lambda one: "0" * len(one[0]), truth.text)
