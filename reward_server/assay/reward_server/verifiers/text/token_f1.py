"""`token-f1`: overlap of the answer's words with a reference's: F1, exact match, or containment.

How. Answer and references are brought into the form of SQuAD v1.1 (lower case, no ASCII
punctuation, no articles, white space collapsed) and cut into words. `measure` is what is rewarded:
`f1`, the harmonic mean of the share of answer words that the reference holds and of reference words
that the answer holds, counted with repetition; `em`, they are equal; `subem`, the answer holds the
reference's words in a row. The best reference counts. Linear in the texts; a part of more than
20,000 characters is no answer.

What a policy could game. `subem` is right for an answer that lists every candidate: train on `em`
or `f1`. `f1` pays for words that are likely in any answer, and ignores their order: "not Paris"
earns 2/3 against "Paris". Half of the range needs no right answer. SQuAD's form confuses numbers:
"-5" equals "5" and "3.5" equals "35"; for numbers there is `math`, or `match` with `numbers`.

Limits. No stemming, no synonyms. Scripts without spaces need `tokens=characters`.

Differences from the SQuAD v1.1 script and from search-R1's reward:
1. A text of which the form leaves nothing ("The The", "A", "+") is compared as lower-case words as
   they stand. The script counts every empty answer right there by exact match, and wrong by F1.
2. `subem` compares words in a row; search-R1 compares characters, so that "know" holds "no".
3. `tokens=characters` is our addition, after the habit of CMRC 2018 (arXiv 1810.07366).
4. Where the answer stands is the parameter `extract`: `whole` is SQuAD, `answer-tag` search-R1.

Sources: SQuAD, Rajpurkar et al. 2016, arXiv 1606.05250, and its evaluation script v1.1; Search-R1,
Jin et al. 2025, arXiv 2503.09516.

Measured: the published cases of SQuAD's normal form and five worked scores, besides laws over any
text: equal to its definition (`tests/unit/test_verifier_text.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

from assay.reward_server.domain import (
    Component,
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text.forms import answer_words
from assay.reward_server.verifiers.text.parts import (
    Extract,
    JudgedPart,
    NoPart,
    flagged,
    graded,
    part_of,
    shown,
    unparsed,
    usable_answers,
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How two lists of words overlap; all in [0, 1].

    Attributes:
        precision: share of the answer's words that the reference holds.
        recall: share of the reference's words that the answer holds.
        f1: their harmonic mean; 0 when nothing is shared.
    """

    precision: float
    recall: float
    f1: float


def overlap(answer: list[str], reference: list[str]) -> Overlap:
    """The overlap of two lists of words, counted with repetition."""
    shared = sum((Counter(answer) & Counter(reference)).values())
    if not shared:
        return Overlap(0.0, 0.0, 0.0)
    total = len(answer) + len(reference)
    return Overlap(shared / len(answer), shared / len(reference), 2 * shared / total)


def holds_in_a_row(answer: list[str], reference: list[str]) -> bool:
    """Whether the answer holds the reference's words in a row; words hold no white space."""
    return f" {' '.join(reference)} " in f" {' '.join(answer)} "


@verifier(
    "token-f1",
    tasks=("question-answering",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    isolation="inline",
)
def token_f1(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    measure: Annotated[
        Literal["f1", "em", "subem"],
        "f1: overlap of words; em: equal after normalisation; subem: the answer holds the "
        "reference's words in a row.",
    ] = "f1",
    tokens: Annotated[
        Literal["words", "characters"],
        "words: parted by spaces; characters: each character of Chinese, Japanese, Korean, "
        "Thai, Lao, Khmer and Burmese is a word.",
    ] = "words",
) -> Judgement:
    """The answer's words overlap with a reference's: SQuAD's F1, exact match, or SubEM.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    references = usable_answers(item)
    part = part_of(item.response(), extract)
    return flagged(item, _judged(part, references, measure, characters=tokens == "characters"))


def _judged(
    part: JudgedPart | NoPart, references: tuple[str, ...], measure: str, *, characters: bool
) -> Judgement:
    if isinstance(part, NoPart):
        return unparsed(measure, part.why)
    answer = answer_words(part.text, characters=characters)
    best = max(
        (
            measured(answer, answer_words(text, characters=characters), measure)
            for text in references
        ),
        key=lambda pair: (pair[0], pair[1].f1),
    )
    score, shares = best
    return Judgement.composed(
        graded(score),
        (
            Component(measure, score),
            Component("precision", shares.precision, 0.0),
            Component("recall", shares.recall, 0.0),
        ),
        extracted_answer=shown(part.text),
        explanation=f"{measure} {score:.3f} against the best reference",
    )


def measured(answer: list[str], reference: list[str], measure: str) -> tuple[float, Overlap]:
    """The score of an answer's words by "f1", "em" or "subem", and how they overlap."""
    shares = overlap(answer, reference)
    if measure == "f1":
        return shares.f1, shares
    if measure == "em":
        return float(answer == reference), shares
    return float(holds_in_a_row(answer, reference)), shares
