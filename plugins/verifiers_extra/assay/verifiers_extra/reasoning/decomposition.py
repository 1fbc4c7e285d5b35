"""`decomposition`: the sub-questions of a response against the right ones.

**How.** The response's list (JSON, or a line each; in `<plan>` tags where `tag` names one) is
paired with the reference's by the assignment of the greatest sum of similarities: F1 of the content
words of two sub-questions, 0 below `similarity`. The reward is 2 s / (named + right), s being the
sum over pairs; with `soft=false` each pair counts 1. So a sub-question that is left out costs as
much as one too many. With `ordered` only pairs in the order of both count, and each counts 1. The
reference is data: a list of texts, or of lists of spellings.

**What a policy could game.** One sub-question with the words of all fits none well. Copies and
further questions cost. A sub-question is never answered here: add a verifier of the answer.

**Known limits.** Words in any order, no synonyms: "born in" is not "birthplace"; give spellings. At
most 64 sub-questions of 1,000 characters.

**Source.** APEX-Searcher, of which the abstract alone was read: plans are rewarded against gold
sub-questions; the measure is ours.

**Measured.** The pairing equals the best of all permutations on 200 generated lists. Not yet on
responses of a model, because none with labels are at hand.
"""

from __future__ import annotations

from typing import Annotated

from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.assignment import assign
from assay.reward_server.verifiers.text.lists import read_items
from assay.reward_server.verifiers.text.parts import NoPart, flagged, graded, part_of, unparsed
from assay.reward_server.verifiers.text.token_f1 import overlap
from assay.verifiers_extra.reasoning.steps import MAX_STEPS, content_words, in_order, section

_MOST_CHARS = 1_000
_GLANCE_CHARS = 1_000

Words = list[str]


@verifier(
    "decomposition",
    tasks=("decomposition", "apex-searcher"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_GLANCE_CHARS,
)
def decomposition(
    item: VerifierItem,
    *,
    tag: Annotated[str, "The tag around the list; empty for the whole final text."] = "",
    similarity: Annotated[
        float, Range(0.1, 1.0), "Two sub-questions of a lower F1 of words are no pair."
    ] = 0.5,
    soft: Annotated[bool, "Whether a pair counts its similarity, in place of 1."] = True,
    ordered: Annotated[bool, "Whether only pairs in the order of both lists count."] = False,
) -> Judgement:
    """The sub-questions that the response lists are the right ones, by F1 over pairs.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference is no list of sub-questions.
    """
    right = _right(item.document() if item.data is not None else list(item.answers()))
    named = _named(item.response(), tag)
    if isinstance(named, str):
        return flagged(item, unparsed("decomposition", named))
    words = [content_words(one) for one in named]
    table = [[_alike(spellings, have, similarity) for have in words] for spellings in right]
    if ordered:
        total: float = in_order(table, range(len(words)), lambda row, place: row[place] > 0.0)
    else:
        pairs = assign([[-value for value in row] for row in table])
        scores = [table[row][column] for row, column in pairs]
        total = sum(scores) if soft else sum(score > 0.0 for score in scores)
    reward = min(1.0, 2 * total / (len(named) + len(right)))
    parts = (
        Component("decomposition", reward),
        Component("precision", total / len(named), 0.0),
        Component("recall", total / len(right), 0.0),
    )
    why = f"{total:.3g} of {len(named)} sub-questions are right, of {len(right)} in all"
    return flagged(item, Judgement.composed(graded(reward), parts, explanation=why))


def _named(response: str, tag: str) -> list[str] | str:
    """The sub-questions of a response, or why there are none."""
    found = part_of(response, "final")
    if isinstance(found, NoPart):
        return found.why
    text = found.text
    if tag:
        part = section(text, tag)
        if part is None:
            return f"there must be one <{tag}>, closed once"
        text = part[0]
    listed = read_items(text, "json")
    items = read_items(text, "lines") if listed is None else listed
    if not items or len(items) > MAX_STEPS:
        return f"there is no list of 1 to {MAX_STEPS} sub-questions"
    if max(map(len, items)) > _MOST_CHARS:
        return f"a sub-question has more than {_MOST_CHARS:,} characters"
    return items


def _alike(spellings: list[Words], have: Words, least: float) -> float:
    best = max(overlap(have, words).f1 for words in spellings)
    return best if best >= least else 0.0


def _right(value: JsonValue) -> list[list[Words]]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_STEPS:
        raise _unusable(f"must be a list of 1 to {MAX_STEPS} sub-questions")
    found = []
    for one in value:
        texts = one if isinstance(one, list) else [one]
        spellings = [text for text in texts if isinstance(text, str) and text.strip()]
        if not texts or len(spellings) < len(texts) or max(map(len, spellings)) > _MOST_CHARS:
            raise _unusable("must hold texts, or lists of spellings, that are not blank or long")
        found.append([content_words(text) for text in spellings])
    return found


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of decomposition {what}")
