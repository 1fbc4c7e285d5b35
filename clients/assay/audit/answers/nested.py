r"""Near misses of one part make near misses of the whole. Pure.

Each part is read as an answer of its own, under the same prompt, so that what is known of numbers,
names, dates or sentences holds within whatever holds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from assay.audit.answers import shapes
from assay.audit.answers.data import put_in
from assay.audit.answers.records import fields_of, written_fields
from assay.audit.answers.shapes import Miss
from assay.audit.answers.structured import LAX
from assay.audit.answers.truth import Truth, read_truth

Near = Callable[[Truth, float], Iterator[Miss]]
_PART_KINDS = {
    "number", "words", "code", "notation", "choice", "polar", "prose", "formula",
}  # fmt: skip
_WARNS = LAX | {"look-alike", "unit-case", "neighbour-unsaid", "qualified"}
_MOST_PARTS = 3
_MOST_MISSES = 14
_PAIR = re.compile(r"([^=:,;\n]{1,40}?)(\s*(?:=|:(?!//))\s*)([^\n]{1,80})")


def nested_misses(truth: Truth, tolerance: float, near: Near) -> Iterator[Miss]:
    """The whole with a near miss in place of one of its parts; `near` makes those of a part."""
    parts, join = _parts(truth)
    if not parts:
        return
    places = sorted({0, len(parts) // 2, len(parts) - 1})[:_MOST_PARTS]
    known = {shapes.plainest(part) for part in parts}
    for place in places:
        inner = read_truth(parts[place], truth.prompt)
        if inner.sort not in _PART_KINDS or inner.text != parts[place]:
            continue
        made = [
            miss for miss in near(inner, tolerance)
            if miss[0] not in _WARNS and _fits(miss[1], truth)
            and (shapes.plainest(miss[1]) not in known or miss[0] in ("case", "altered"))
        ]  # fmt: skip
        step = max(1, len(made) // _MOST_MISSES)
        for kind, answer, note in made[::step]:
            whole = join([*parts[:place], answer, *parts[place + 1 :]])
            yield kind, whole, f"in one part: {note}"


def _fits(part: str, truth: Truth) -> bool:
    """Whether a part stays one: what parts the whole does not stand in it."""
    if truth.sort == "list":
        return truth.mark.strip() not in part if truth.mark.strip() else " " not in part
    return "\n" not in part and (truth.sort != "notation" or not re.search("[,;=]", part))


def _parts(truth: Truth) -> tuple[Sequence[str], Callable[[Sequence[str]], str]]:
    """The parts of an answer, and what puts others together as they are; none of one in itself."""
    if truth.sort == "list":
        return truth.parts, truth.listed
    if truth.sort == "json":
        value = shapes.read_json(truth.text)
        texts = [
            (path, leaf) for path, leaf in shapes.leaves(value) if isinstance(leaf, str) and leaf
        ]

        def put(new: Sequence[str]) -> str:
            changed = value
            for (path, _), one in zip(texts, new, strict=True):
                changed = put_in(changed, path, one)
            return shapes.write_json(changed, truth.text)

        return [leaf for _, leaf in texts], put
    if truth.notation is not None and truth.notation.name == "record":
        return fields_of(truth.text), lambda new: written_fields(new, truth.text)
    if truth.sort == "lines" or (truth.notation is not None and truth.notation.name == "pairs"):
        return _values(truth.text)
    return (), "".join


def _values(text: str) -> tuple[Sequence[str], Callable[[Sequence[str]], str]]:
    """What stands behind the key in each line or pair; whole lines where not all have one."""
    pieces = re.split(r"(\s*\n\s*)" if "\n" in text else r"(\s*[,;]\s*)", text)
    found = [_PAIR.fullmatch(one) for one in pieces[::2]]
    keys = [one[1] + one[2] if one else "" for one in found] if all(found) else None
    values = [
        one[3] if one and keys else whole for one, whole in zip(found, pieces[::2], strict=True)
    ]

    def put(new: Sequence[str]) -> str:
        lines = [f"{key}{one}" for key, one in zip(keys, new, strict=True)] if keys else list(new)
        joined = [one for pair in zip(lines, [*pieces[1::2], ""], strict=True) for one in pair]
        return "".join(joined)

    return values, put
