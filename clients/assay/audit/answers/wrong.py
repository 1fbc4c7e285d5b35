r"""Near misses: answers that are certainly wrong and look right to a careless reader. Pure.

Each is made from a right answer by a rule that changes what it says, and is kept only where
`is_certainly_wrong` agrees or the rule alone is proof. Where the right answer's number stands in a
near miss, it is not the last of its numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from assay.audit.answers.data import other_objects
from assay.audit.answers.expressions import formula_misses
from assay.audit.answers.lines import other_lines
from assay.audit.answers.lists import near_lists
from assay.audit.answers.names import near_names
from assay.audit.answers.nested import nested_misses
from assay.audit.answers.notations import TEXT
from assay.audit.answers.shapes import OTHERS, Miss, read_json
from assay.audit.answers.spelling import spelling_misses
from assay.audit.answers.structured import other_structures, structured_misses
from assay.audit.answers.targets import target_misses
from assay.audit.answers.tokens import cased_misses, shape_of, splices
from assay.audit.answers.truth import (
    STRUCTURED,
    Truth,
    is_certainly_wrong,
    read_number,
    squeezed,
    written,
)
from assay.audit.answers.values import near_values

_EXACT_KINDS = ("look-alike", "unit-case", "run-together", "case", "altered")
_BY_RULE = ("case", "altered")
_MOST_CHARS = 120


def near_misses(truth: Truth, tolerance: float = 0.0) -> Iterator[Miss]:
    """The near misses of a right answer, each once."""
    seen, seen_exactly = {squeezed(text) for text in truth.texts}, set(truth.texts)
    made = (
        _made(truth, tolerance),
        _spelt(truth, tolerance),
        _nested(truth, tolerance),
    )
    for kind, answer, note in itertools.chain.from_iterable(made):
        exact = kind in _EXACT_KINDS or truth.sort in STRUCTURED
        text, known = (answer, seen_exactly) if exact else (squeezed(answer), seen)
        if text not in known:
            known.add(text)
            yield kind, answer, note


def _spelt(truth: Truth, tolerance: float) -> Iterator[Miss]:
    """Of short texts, where no reader of the sort takes them for the right answer."""
    if truth.sort not in ("words", "code", "notation", "prose") or len(truth.text) > _MOST_CHARS:
        return
    for kind, answer, note in spelling_misses(truth.text, truth.prompt):
        reader = truth.notation is not None and truth.notation is not TEXT
        read = reader and truth.notation is not None and truth.notation.read(answer)
        if not read or is_certainly_wrong(answer, truth, tolerance):
            yield kind, answer, note


def _nested(truth: Truth, tolerance: float) -> Iterator[Miss]:
    for kind, answer, note in nested_misses(truth, tolerance, near_misses):
        proven = kind in _BY_RULE
        if answer not in truth.texts and (proven or is_certainly_wrong(answer, truth, tolerance)):
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
            yield from near_values(truth, tolerance)
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
            yield from near_names(truth)
        case "list":
            yield from near_lists(truth)
        case "formula":
            yield from formula_misses(truth.text, truth.prompt)
            yield from target_misses(truth.text, truth.prompt)
        case "json" | "code" | "lines" | "notation":
            yield from structured_misses(truth, tolerance)
