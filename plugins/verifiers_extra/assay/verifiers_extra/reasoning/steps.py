"""Words that carry meaning, steps of a list, sections between tags, and longest common orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from assay.reward_server.verifiers.text.forms import answer_words
from assay.verifiers_extra.instructions.words import word_set

MAX_CHARS = 20_000
MAX_STEPS = 64

_STOP = word_set(
    "a an the of to in on at for and or is are was be by with from as it its this that we i then "
    "so if into step next first now will can"
)
_MARK = re.compile(
    r"[ \t]*(?:[-*+\u2022]\s+|\*{0,2}#{0,4}\s?(?:step\s+)?\(?\d{1,3}[.):]\*{0,2}\s*"
    r"|\*{0,2}#{0,4}\s?step\s+\d{1,3}\b[.):]?\*{0,2}\s*)",
    re.IGNORECASE,
)

Left = TypeVar("Left")
Right = TypeVar("Right")


def content_words(text: str) -> list[str]:
    """The words of a text without those that every text has; all of them where no other is left."""
    words = answer_words(text, characters=True)
    return [word for word in words if word not in _STOP] or words


def steps_of(text: str) -> list[str]:
    """The marked steps of a text ("1.", "Step 2:", "-"), each with the lines that follow it.

    Lines before the first mark are no step. A text without marks has a step a line.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not any(_MARK.match(line) for line in lines):
        return [line.strip() for line in lines]
    found: list[list[str]] = []
    for line in lines:
        mark = _MARK.match(line)
        if mark is not None:
            found.append([line[mark.end() :].strip()])
        elif found:
            found[-1].append(line.strip())
    return [" ".join(parts).strip() for parts in found]


def section(text: str, tag: str) -> tuple[str, int, int] | None:
    """What stands between the tags, and where the section begins and ends; None unless once."""
    opens, closes = f"<{tag}>", f"</{tag}>"
    if text.count(opens) != 1 or text.count(closes) != 1:
        return None
    start, end = text.index(opens), text.index(closes)
    if end < start:
        return None
    return text[start + len(opens) : end], start, end + len(closes)


def in_order(
    left: Sequence[Left], right: Sequence[Right], fits: Callable[[Left, Right], bool]
) -> int:
    """How many pairs that fit there are at most, in the order of both, each used once."""
    row = [0] * (len(right) + 1)
    for one in left:
        above = row
        row = [0]
        for place, other in enumerate(right):
            best = max(above[place + 1], row[place])
            row.append(max(best, above[place] + 1) if fits(one, other) else best)
    return row[-1]
