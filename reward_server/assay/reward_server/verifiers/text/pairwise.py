"""`pairwise-accuracy`: scores or an order stated in the response against known preferences.

How. The answer is read as scores (a JSON object of identifiers and numbers, or lines and parts such
as "a: 7.5") or as an order, best first ("a > b > c", a JSON list, one a line). Of the preferences
of the reference, the share is rewarded on which the answer agrees: the better one has the higher
score, or stands before the worse one. An identifier that is missing, or given twice with different
scores, agrees with nothing; nor do equal scores, unless `ties=half`. At most 1,000 identifiers,
20,000 preferences.

The reference is data: an object that maps each identifier to a number, from which every pair with
different numbers is a preference; or a list of pairs [better, worse].

What a policy could game. With `ties=half`, equal scores for all earn 0.5 without a thought. A
random order earns 0.5 too: subtract it when comparing.

Limits. Only the order of scores counts, not their size; for graded relevance there is `ndcg`.

Differences from RewardBench's accuracy and Kendall's tau:
1. RewardBench counts a tie as wrong, which is the default here; others count half.
2. Kendall's tau-a is 2 x accuracy - 1 on pairs without ties; the accuracy is what is rewarded.

Sources: RewardBench, Lambert et al. 2024, arXiv 2403.13787; Kendall, A new measure of rank
correlation, Biometrika 30, 1938.

Measured: 12 worked orders, and the law that an order and its reverse share all preferences
(`tests/unit/test_verifier_text_structured.py`). Misread lists of real responses: not yet, because
no labelled responses are at hand.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Annotated, Literal

from assay.kit.json_text import NotJson, fenced, read_json
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
from assay.reward_server.verifiers.text.lists import MAX_ITEMS, read_items, text_of
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    graded,
    part_of,
    shown,
    unparsed,
)

_MOST_PAIRS = 20_000
_FORM = Normalization()
_SCORED = re.compile(
    r"(?:^|[,;])\s{0,8}([^:=,;\n]{1,100})[:=][ \t*]{0,4}([-+]?\d{1,15}(?:\.\d{1,15})?)",
    re.MULTILINE,
)


@verifier(
    "pairwise-accuracy",
    tasks=("pairwise",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    isolation="inline",
)
def pairwise_accuracy(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    form: Annotated[
        Literal["auto", "scores", "order"],
        "scores: a number for each identifier; order: identifiers, best first; auto: scores "
        "where there are any, else an order.",
    ] = "auto",
    ties: Annotated[
        Literal["wrong", "half"],
        "What equal scores for a pair with a preference count: wrong, 0; half, 0.5.",
    ] = "wrong",
) -> Judgement:
    """Scores or an order stated in the response against known preferences.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE when the reference states no preferences.
    """
    pairs = _preferences(item.document())
    part = part_of(item.response(), extract)
    if isinstance(part, NoPart):
        return unparsed("accuracy", part.why)
    scores = _stated(part.text, form)
    if not scores:
        return unparsed("accuracy", "the answer states neither scores nor an order")
    tie = 0.5 if ties == "half" else 0.0
    agreed = math.fsum(_agreement(scores, better, worse, tie) for better, worse in pairs)
    accuracy = agreed / len(pairs)
    return Judgement.composed(
        graded(accuracy),
        (Component("accuracy", accuracy),),
        extracted_answer=shown(part.text),
        explanation=f"agrees on {agreed:g} of {len(pairs)} preferences",
    )


def _agreement(scores: dict[str, float], better: str, worse: str, tie: float) -> float:
    """1 if the scores put the better one first, `tie` if they are equal, else 0."""
    high, low = scores.get(better, math.nan), scores.get(worse, math.nan)
    if high == low:
        return tie
    return float(high > low)


def _stated(text: str, form: str) -> dict[str, float]:
    """A score for each identifier of an answer: its own, or the negative place in an order."""
    if form != "order":
        scores = _scores(text)
        if scores or form == "scores":
            return scores
    order = read_items(text, ordered=True)
    if order is None:
        return {}
    return _each_once([(name, -float(place)) for place, name in enumerate(order)])


def _scores(text: str) -> dict[str, float]:
    block = fenced(text)
    try:
        value = read_json(text if block is None else block) if "{" in text else None
    except NotJson:
        value = None
    if value is None:
        marks = itertools.islice(_SCORED.finditer(text), MAX_ITEMS)
        return _each_once([(mark[1].strip(" \t,;-*`\"'"), float(mark[2])) for mark in marks])
    if not isinstance(value, dict) or len(value) > MAX_ITEMS:
        return {}
    return _each_once(
        [
            (name, float(score))
            for name, score in value.items()
            if isinstance(score, int | float) and abs(score) < 1e300
        ]
    )


def _each_once(pairs: list[tuple[str, float]]) -> dict[str, float]:
    """By normalised identifier; one with two different scores has none (not a number)."""
    scores: dict[str, float] = {}
    for name, score in pairs:
        form = _FORM.apply(name)
        scores[form] = score if scores.get(form, score) == score else math.nan
    return scores


def _preferences(value: JsonValue) -> list[tuple[str, str]]:
    """Pairs of identifiers, normalised, the better one first."""
    pairs = _of_scores(value) if isinstance(value, dict) else _of_pairs(value)
    if not 0 < len(pairs) <= _MOST_PAIRS:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference states {len(pairs)} preferences; 1 to {_MOST_PAIRS} can be judged",
        )
    if any(better == worse or not better or not worse for better, worse in pairs):
        raise Unjudgeable(
            UNUSABLE_REFERENCE, "a preference of the reference names one identifier twice, or none"
        )
    return pairs


def _of_scores(value: dict[str, JsonValue]) -> list[tuple[str, str]]:
    if len(value) > MAX_ITEMS:
        raise Unjudgeable(UNUSABLE_REFERENCE, f"the reference has over {MAX_ITEMS} identifiers")
    scores: list[tuple[float, str]] = []
    for name, score in value.items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise Unjudgeable(UNUSABLE_REFERENCE, f"the score of {name[:80]!r} is not a number")
        scores.append((score, _FORM.apply(name)))
    scores.sort(key=lambda pair: -pair[0])
    return list(
        itertools.islice(
            (
                (better, worse)
                for (high, better), (low, worse) in itertools.combinations(scores, 2)
                if high > low
            ),
            _MOST_PAIRS + 1,
        )
    )


def _of_pairs(value: JsonValue) -> list[tuple[str, str]]:
    if not isinstance(value, list):
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            "the reference must map identifiers to numbers, or list pairs [better, worse]",
        )
    pairs = []
    for index, pair in enumerate(value[: _MOST_PAIRS + 1]):
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(name, str | int | float) for name in pair)
        ):
            raise Unjudgeable(
                UNUSABLE_REFERENCE, f"entry {index} of the reference is not a pair [better, worse]"
            )
        pairs.append((_FORM.apply(text_of(pair[0])), _FORM.apply(text_of(pair[1]))))
    return pairs
