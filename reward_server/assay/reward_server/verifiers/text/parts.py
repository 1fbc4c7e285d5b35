"""Which part of a response is judged: the `extract` parameter of the text verifiers.

The marks (a box, an answer tag, "the answer is") are those of `assay.math.extraction`. Three parts
are added: `whole`, the response untouched; `final`, what follows the last `</think>`; a response
that opens a thought and never closes it has no final part; and `final-answer`, what follows "Final
Answer:" on the last line of that part that is not blank, however long.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Annotated, Final

from assay.math import extraction
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import OneOf
from assay.reward_server.verifiers import suspicions

MARKS: Final = (
    "auto",
    "strict",
    "boxed",
    "answer-tag",
    "hash",
    "answer-line",
    "last-number",
    "last-line",
)
"""The modes of `extraction` that the text verifiers offer."""

MAX_CHARS: Final = 20_000
"""A longer part is no answer; it bounds the work of the verifiers that run inline."""

Extract = Annotated[
    str,
    OneOf(("whole", "final", "final-answer", *MARKS)),
    "The part that is judged: the whole response, what follows the last </think> (final), what "
    "follows 'Final Answer:' on its last line (final-answer), or a marked answer as the math "
    "verifier finds it; verdict unparsed where there is none.",
]

SHOWN_CHARS: Final = 200
_FINAL_ANSWER = re.compile(r"Final Answer\*{0,2}:\*{0,2}", re.IGNORECASE)
_THOUGHT_OPENS = "<think>"
_THOUGHT_ENDS = "</think>"


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """The part of a response that is judged.

    Attributes:
        text: as it stands in the response.
        how: the rule that found it; "whole" and "final" are the texts themselves.
    """

    text: str
    how: str


@dataclass(frozen=True, slots=True)
class NoPart:
    """Why a response has no such part."""

    why: str


def part_of(
    response: str, how: str, *, letter: bool = False, limit: int = MAX_CHARS
) -> JudgedPart | NoPart:
    """The part of a response that is judged; never a blank one.

    Args:
        response: the policy's text.
        how: a value of the parameter `extract`.
        letter: the answer is expected to be a choice letter.
        limit: the most characters of a part.
    """
    if how in ("whole", "final", "final-answer"):
        text = response if how == "whole" else final_text(response)
        if text is None:
            return NoPart("the thought is not closed")
        if how == "final-answer":
            _, _, text = text.rstrip().rpartition("\n")
            mark = _FINAL_ANSWER.search(text)
            if mark is None:
                return NoPart("the last line does not say 'Final Answer:'")
            text = text[mark.end() :].strip().strip("*")
        if len(text) > limit:
            return NoPart(f"the text is longer than {limit:,} characters")
        return JudgedPart(text, how) if text.strip() else NoPart("the response is blank")
    found = extraction.look(response, how, letter=letter)
    if isinstance(found, extraction.Nothing):
        return NoPart(found.why)
    return JudgedPart(found.text, found.how)


def final_text(response: str) -> str | None:
    """What follows the last `</think>`; None when a thought is opened and never closed."""
    _, found, after = response.rpartition(_THOUGHT_ENDS)
    opened = _THOUGHT_OPENS in after if found else response.lstrip().startswith(_THOUGHT_OPENS)
    return None if opened else after


def unparsed(component: str, why: str) -> Judgement:
    """The judgement of a response without an answer: 0."""
    return Judgement.composed(
        "unparsed", (Component(component, 0.0),), explanation=f"no answer: {why}"
    )


def usable_answers(item: VerifierItem, limit: int = MAX_CHARS) -> tuple[str, ...]:
    """The references, each a text that can be compared.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or an over-long one.
    """
    for reference in item.answers():
        if not reference.strip():
            raise Unjudgeable(UNUSABLE_REFERENCE, "a reference is blank")
        if len(reference) > limit:
            raise Unjudgeable(
                UNUSABLE_REFERENCE,
                f"a reference has {len(reference):,} characters; at most {limit:,} are compared",
            )
    return item.answers()


def flagged(item: VerifierItem, judgement: Judgement) -> Judgement:
    """The judgement with the signs of gaming that the whole response holds."""
    return dataclasses.replace(judgement, suspicions=suspicions.scan(item.response()))


def shown(text: str) -> str:
    """A text, cut to be shown in a judgement."""
    return text.strip()[:SHOWN_CHARS]


def graded(score: float) -> str:
    """The verdict on a score between 0 and 1."""
    if score >= 1.0:
        return "correct"
    return "partial" if score > 0.0 else "incorrect"
