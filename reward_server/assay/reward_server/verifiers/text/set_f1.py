"""`set-f1`: the items of a list in the response against a set of right items.

How. The answer is read as a list (a JSON list, one item a line, or items between commas or
semicolons) and its items are matched with the reference's after the normalisation of `match`: case,
white space, compatibility characters and marks at the ends do not count. Each right item is matched
at most once. Precision is matched over named, recall matched over right; `measure` tells which
number is rewarded. An item that is named twice counts twice among the named, so repetition costs
precision, unless repetitions=ignore. At most 1,000 items; linear.

OpenAI's GraphWalks is extract=final-answer with repetitions=ignore: "Final Answer: [a, b]" on the
last line; "[]" for no node.

The reference is data: a list of items, each a text, a number or a boolean, or a list of these that
are spellings of one item. Instead of data it may be texts, each a list in one of the forms above;
then the best of them counts. An empty reference list is right for an empty answer list ("[]") only.

What a policy could game. `recall` alone pays for naming everything. F1 pays for one sure item:
2/(n+1) against n right items. Half of the range needs no right answer. Use `measure=exact` where
only the whole set is right.

Limits. Items that hold commas need JSON or lines. No spelling variants but those that are given.

Differences from scikit-learn's set scores and from list scorers in use:
1. Repetition is counted against the answer; sets drop it.
2. Two empty sets have F1 1, by definition here; there it is a warning and 0.
3. From GraphWalks' grader: the brackets may be missing, and case does not count.

Measured: on 2,000 generated graph walks F1 is that of NeMo Gym's `lc_niah` to 1e-12, and of its
`graphwalks` but for quoted nodes.

Sources: van Rijsbergen, Information Retrieval, 1979, chapter 7, for F; exact set match as in
QAMPARI (arXiv 2205.12665), whose recall and precision over aliases are the same.

Measured: 16 worked sets, and the laws that order, repetition and white space do not count
(`tests/unit/test_verifier_text_structured.py`). Misread lists of real responses: not yet, because
no labelled responses are at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from assay.kit.json_text import NotJson, read_json
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text.forms import Normalization
from assay.reward_server.verifiers.text.lists import (
    MAX_ITEMS,
    Separator,
    read_items,
    text_of,
    texts_of,
)
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    graded,
    part_of,
    shown,
    unparsed,
)


@dataclass(frozen=True, slots=True)
class Match:
    """How the items of a list match right items; counts.

    Attributes:
        matched: right items that are named.
        named: items of the answer, with repetitions.
        right: items of the reference.
    """

    matched: int
    named: int
    right: int

    @property
    def precision(self) -> float:
        """Matched over named; 1 when nothing is named and nothing is right."""
        return self.matched / self.named if self.named else float(not self.right)

    @property
    def recall(self) -> float:
        """Matched over right; 1 when nothing is right and nothing is named."""
        return self.matched / self.right if self.right else float(not self.named)

    def measured(self, measure: str) -> float:
        """The score that a measure gives, in [0, 1]."""
        both = self.named + self.right
        if measure == "precision":
            return self.precision
        if measure == "recall":
            return self.recall
        if measure == "exact":
            return float(self.matched == self.named == self.right)
        if measure == "jaccard":
            return self.matched / (both - self.matched) if both else 1.0
        return 2 * self.matched / both if both else 1.0


def match_items(named: list[str], right: list[tuple[str, ...]]) -> Match:
    """Matches the items of an answer with right items, each right item at most once.

    Args:
        named: the answer's items, normalised.
        right: the spellings of each right item, normalised; a spelling belongs to one item.
    """
    owner = {spelling: index for index, spellings in enumerate(right) for spelling in spellings}
    matched = {owner[item] for item in named if item in owner}
    return Match(len(matched), len(named), len(right))


@verifier("set-f1", verdicts=("correct", "partial", "incorrect", "unparsed"), isolation="inline")
def set_f1(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    measure: Annotated[
        Literal["f1", "precision", "recall", "jaccard", "exact"],
        "f1, precision, recall, jaccard (matched over all that is named or right), or exact: 1 "
        "when the sets are equal and nothing is repeated, else 0.",
    ] = "f1",
    separator: Annotated[
        Separator, "How the response lists its items; auto decides by the answer's form."
    ] = "auto",
    repetitions: Annotated[
        Literal["count", "ignore"], "Whether an item that is named again is one more named item."
    ] = "count",
    case_sensitive: Annotated[bool, "Whether upper and lower case differ."] = False,
) -> Judgement:
    """The items of a list in the response against a set of right items.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference is no list of items.
    """
    form = Normalization(case_sensitive=case_sensitive)
    references = _references(item, form)
    part = part_of(item.response(), extract)
    if isinstance(part, NoPart):
        return unparsed(measure, part.why)
    items = read_items(part.text, separator)
    if items is None:
        return unparsed(measure, "the answer is not a list of at most 1,000 items")
    named = [form.apply(one) for one in items]
    repeated = len(named) - len(set(named))
    if repetitions == "ignore":
        named = list(dict.fromkeys(named))
    best = max(
        (match_items(named, right) for right in references),
        key=lambda match: match.measured(measure),
    )
    score = best.measured(measure)
    return Judgement.composed(
        graded(score),
        (
            Component(measure, score),
            *(
                Component(name, value, 0.0)
                for name, value in (("precision", best.precision), ("recall", best.recall))
                if name != measure
            ),
            Component("repetitions", float(repeated), 0.0),
        ),
        extracted_answer=shown(", ".join(items)),
        explanation=f"{best.matched} of {best.named} items are right, of {best.right} in all",
    )


def _references(item: VerifierItem, form: Normalization) -> list[list[tuple[str, ...]]]:
    """The sets of right items, any of which will do."""
    if item.data is not None:
        return [_right_items(item.data, form)]
    return [_of_text(reference, form) for reference in item.answers()]


def _of_text(reference: str, form: Normalization) -> list[tuple[str, ...]]:
    """The right items of a reference that is a text: a JSON list, or any form of list."""
    try:
        value = read_json(reference)
    except NotJson:
        items = read_items(reference)
        if items is None:
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"the reference {reference[:80]!r} is not a list"
            ) from None
        return _distinct([(form.apply(one),) for one in items])
    return _right_items(value if isinstance(value, list) else [value], form)


def _right_items(value: JsonValue, form: Normalization) -> list[tuple[str, ...]]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"the reference must be a list of at most {MAX_ITEMS} items"
        )
    items = []
    for index, one in enumerate(value):
        spellings = texts_of(one) if isinstance(one, list) else _text(one)
        if not spellings or not all(text.strip() for text in spellings):
            raise Unjudgeable(
                UNUSABLE_REFERENCE,
                f"item {index} of the reference must be a text, a number, a boolean or a list of "
                "these, not blank",
            )
        items.append(tuple(form.apply(text) for text in spellings))
    return _distinct(items)


def _text(value: JsonValue) -> list[str] | None:
    return [text_of(value)] if isinstance(value, str | int | float | bool) else None


def _distinct(items: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The right items, each once.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when two items share a spelling but not all.
    """
    distinct = list(dict.fromkeys(tuple(sorted(set(item))) for item in items))
    spellings = [spelling for item in distinct for spelling in item]
    if len(set(spellings)) != len(spellings):
        raise Unjudgeable(UNUSABLE_REFERENCE, "two items of the reference share a spelling")
    return distinct
