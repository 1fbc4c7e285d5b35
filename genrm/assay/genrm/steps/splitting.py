r"""Cuts a response into steps: spans of code points that cover it without overlap.

line        each line that is not blank; blank lines belong to the step before
paragraph   each part between blank lines, which belong to the step before
tag         a step ends behind each tag; what is blank between tags belongs to the step before
code-line   every line; blank lines and comments are neutral, and so is all outside of fenced
            blocks where the response has any
auto        paragraphs where there are two, else lines

White space before the first step belongs to it. Lines end with "\n", "\r\n" or "\r".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.genrm.engines.base import Splitting
from assay.genrm.steps.code import mask_idle

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BREAK = r"(?:\r\n|\r(?!\n)|\n)"
_PARAGRAPH_ENDS = re.compile(rf"{_BREAK}(?:[ \t]*+{_BREAK})+")


@dataclass(frozen=True, slots=True)
class StepSpan:
    """The code points `start <= i < end` of a response; neutral: nothing to score."""

    start: int
    end: int
    neutral: bool = False


def split(
    response: str, splitting: Splitting, tag: str = "", language: str = "python"
) -> tuple[StepSpan, ...]:
    """The steps of a response, in order; an empty response has none.

    `tag` ends a step, with "tag"; `language` is that of unnamed programs, with "code-line".

    Raises:
        ValueError: "tag" without a tag.
    """
    if splitting == "code-line":
        ends = (line.end() for line in _LINE.finditer(response))
        return _mark_idle(response, _between(ends), language)
    if splitting == "tag":
        if not tag:
            raise ValueError("splitting by tag needs a tag")
        return _gather(response, _between(_tag_ends(response, tag)), tag)
    paragraphs = _gather(response, _between(_paragraph_ends(response)))
    if splitting == "paragraph" or (splitting == "auto" and len(paragraphs) > 1):
        return paragraphs
    return _gather(response, _between(line.end() for line in _LINE.finditer(response)))


def spans_of(
    steps: Sequence[str], splitting: Splitting, language: str = "python"
) -> tuple[StepSpan, ...]:
    """The spans of a response that is cut already; no step may be empty.

    Blank steps are neutral, and with "code-line" steps without code.
    """
    response = "".join(steps)
    ends: list[int] = []
    for step in steps:
        ends.append((ends[-1] if ends else 0) + len(step))
    spans = _between(ends)
    if splitting == "code-line":
        return _mark_idle(response, spans, language)
    return tuple(
        StepSpan(start, end, neutral=not response[start:end].strip()) for start, end in spans
    )


def _between(ends: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    start = 0
    for end in ends:
        if end > start:
            ranges.append((start, end))
            start = end
    return ranges


def _paragraph_ends(response: str) -> Iterable[int]:
    yield from (gap.end() for gap in _PARAGRAPH_ENDS.finditer(response))
    yield len(response)


def _tag_ends(response: str, tag: str) -> Iterable[int]:
    at = response.find(tag)
    while at >= 0:
        yield at + len(tag)
        at = response.find(tag, at + len(tag))
    yield len(response)


def _gather(
    response: str, ranges: Iterable[tuple[int, int]], tag: str = ""
) -> tuple[StepSpan, ...]:
    """A blank range joins the span before, or else the next."""
    spans: list[StepSpan] = []
    waiting: int | None = None
    for start, end in ranges:
        blank = not response[start:end].removesuffix(tag).strip()
        if blank and spans:
            spans[-1] = StepSpan(spans[-1].start, end)
        elif blank:
            waiting = start if waiting is None else waiting
        else:
            spans.append(StepSpan(start if waiting is None else waiting, end))
            waiting = None
    if waiting is not None:
        spans.append(StepSpan(waiting, len(response), neutral=True))
    return tuple(spans)


def _mark_idle(
    response: str, ranges: Iterable[tuple[int, int]], language: str
) -> tuple[StepSpan, ...]:
    """Ranges without code are neutral, and blank ones, even a blank line within a string."""
    masked = mask_idle(response, language)
    return tuple(
        StepSpan(
            start, end, neutral=not (masked[start:end].strip() and response[start:end].strip())
        )
        for start, end in ranges
    )
