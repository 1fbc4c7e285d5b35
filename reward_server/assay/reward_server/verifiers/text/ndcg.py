"""`ndcg`: a ranking in the response against graded relevance.

How. Normalised discounted cumulative gain. The answer is read as a list of identifiers, best first
(a JSON list, one a line, between commas, or "a > b > c"). Place i, from 1, is worth gain(grade) /
log2(i + 1), where gain is the grade itself (`linear`) or 2^grade - 1 (`exponential`); the sum over
the first k places, divided by the greatest sum that any ranking of the reference's identifiers has,
is the reward. At most 1,000 items.

The reference is data: an object that maps each identifier to its grade, a number from 0 to 1,000 (0
to 50 with exponential gain); at least one is above 0. Identifiers that are not in it are worth 0
and take their place; an identifier that comes again is worth 0 and takes its place too.

What a policy could game. Little: repetition and invented identifiers only push others down. A
partial list earns what its first places earn, so with k=1 one sure identifier is enough. The score
of a random order is far above 0 when most grades are alike: compare it with that of a baseline.

Limits. Identifiers are compared after normalising case, white space and marks at the ends.

Differences from the usual implementations:
1. scikit-learn ranks scores and averages over ties; a list has no ties.
2. Jaervelin and Kekaelaeinen's first definition does not discount the places before the base of the
   logarithm; the form above, discounting from the second place on, is the one in use today.

Sources: Jaervelin and Kekaelaeinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS
20(4), 2002; Burges et al., Learning to rank using gradient descent, ICML 2005, for exponential
gain.

Measured: the worked example of the literature and those of scikit-learn
(`tests/unit/test_verifier_text_structured.py`). The arithmetic has no other error; how often a list
of a real response is misread: not yet, because no labelled responses are at hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import Range, verifier
from assay.reward_server.verifiers.text.forms import Normalization
from assay.reward_server.verifiers.text.lists import MAX_ITEMS, read_items
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    graded,
    part_of,
    shown,
    unparsed,
)

_MOST_GRADE = 1_000
_MOST_EXPONENT = 50
_FORM = Normalization()


def discounted(gains: Sequence[float], k: int = 0) -> float:
    """Discounted cumulative gain of the first k places, best first; all if k is 0."""
    counted = gains[:k] if k else gains
    return math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(counted))


def normalised(gains: Sequence[float], available: Sequence[float], k: int = 0) -> float:
    """Discounted cumulative gain over the greatest that is available, in [0, 1].

    Args:
        gains: of the ranking's places.
        available: gains of all that can be ranked, in any order; not all 0.
        k: how many places count, all if 0.
    """
    ideal = discounted(sorted(available, reverse=True), k)
    return min(1.0, discounted(gains, k) / ideal)


@verifier(
    "ndcg",
    tasks=("ranking",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    isolation="inline",
)
def ndcg(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    k: Annotated[int, Range(0, MAX_ITEMS), "How many places count; 0 for all."] = 0,
    gain: Annotated[
        Literal["linear", "exponential"],
        "What a grade is worth: linear, itself; exponential, 2^grade - 1.",
    ] = "linear",
) -> Judgement:
    """A ranking in the response against graded relevance: NDCG at k.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference is no map of grades, or all are 0.
    """
    exponential = gain == "exponential"
    worth = _worth(item.document(), exponential=exponential)
    part = part_of(item.response(), extract)
    if isinstance(part, NoPart):
        return unparsed("ndcg", part.why)
    ranking = read_items(part.text, ordered=True)
    if ranking is None:
        return unparsed("ndcg", f"the answer is not a list of at most {MAX_ITEMS} items")
    names = [_FORM.apply(name) for name in ranking]
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    gains = [
        worth.get(name, 0.0) if first[name] == place else 0.0 for place, name in enumerate(names)
    ]
    score = normalised(gains, list(worth.values()), k)
    known = sum(name in worth for name in first)
    return Judgement.composed(
        graded(score),
        (Component("ndcg", score),),
        extracted_answer=shown(" > ".join(ranking)),
        explanation=f"{known} of {len(worth)} identifiers are ranked, in {len(names)} places",
    )


def _worth(value: JsonValue, *, exponential: bool) -> dict[str, float]:
    most = _MOST_EXPONENT if exponential else _MOST_GRADE
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_ITEMS:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference must map 1 to {MAX_ITEMS} identifiers to their grades",
        )
    worth: dict[str, float] = {}
    for name, grade in value.items():
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= most:
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"the grade of {name[:80]!r} must be a number from 0 to {most}"
            )
        form = _FORM.apply(name)
        if not form or form in worth:
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"identifier {name[:80]!r} is blank or there twice"
            )
        worth[form] = 2.0**grade - 1.0 if exponential else float(grade)
    if not any(worth.values()):
        raise Unjudgeable(UNUSABLE_REFERENCE, "every grade of the reference is 0")
    return worth
