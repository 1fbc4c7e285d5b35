"""Groups: the samples of one prompt, each against the anchor or each against each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.clients.judging.types import GroupRanking, PairJudgement, RankingMode, Usage
from assay.genrm.domain import CandidateGroup, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.modes import invalid, require_text, resolve_mode
from assay.genrm.judges.numbers import greatest, least
from assay.genrm.judges.pairwise import (
    PAIR_MODES,
    comparison,
    require_gap,
    turned,
    win_by_logits,
    within,
)
from assay.genrm.judges.readings import moved, require_unmoved
from assay.genrm.judges.scalar import rate, refuse_reference
from assay.genrm.judges.together import together
from assay.genrm.templates import Templates
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

Results = list[list[PairJudgement]]
"""For each response, its comparisons, from its own side."""


def judge_group(
    item: CandidateGroup,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
    ranking: RankingMode = "auto",
    *,
    max_order_gap: float | None = None,
) -> Run[GroupRanking]:
    """Ranks a group: the mean win probability of each response, over its comparisons.

    All comparisons are asked for at once and share the prompt: n with an anchor, n (n - 1) / 2
    without. Round-robin scores sum to n / 2 where all comparisons count. The ranking "auto" is by
    the anchor where there is one, else round-robin.

    A comparison with an order gap above `max_order_gap`, or that moves with the letters by more
    than the settings allow, does not count; a response that keeps fewer than half of its
    comparisons makes the group unrankable.

    Raises:
        Unjudgeable: MISSING_RESPONSE, MISSING_REFERENCE, INVALID_PARAMETER, UNKNOWN_TEMPLATE,
            JUDGE_UNPARSED, SCORE_NOT_FINITE, ORDER_GAP, LETTER_GAP; of the group as a whole.
    """
    anchored = _check(item, ranking)
    if resolve_mode(settings, model, PAIR_MODES) == "scalar-head":
        return (yield from _rated_group(item, anchored, settings, model))
    compare = comparison(item.prompt, item.ground_truth, settings, model, templates)
    texts = (*item.responses, item.anchor) if anchored else item.responses
    count = len(item.responses)
    places = [(one, count) for one in range(count)] if anchored else _pairs(count)
    pairs = yield from together([compare(texts[one], texts[two]) for one, two in places])
    results: Results = [[] for _ in texts]
    cut = [False] * len(texts)
    for (one, two), pair in zip(places, pairs, strict=True):
        results[one].append(pair)
        results[two].append(turned(pair))
        cut[one] |= pair.truncated and len(texts[one]) >= len(texts[two])
        cut[two] |= pair.truncated and len(texts[two]) >= len(texts[one])
    usage = sum((pair.usage for pair in pairs), Usage())
    counted = [_counted(own, max_order_gap, settings) for own in results[:count]]
    return GroupRanking(
        tuple(_mean([pair.win_probability for pair in own]) for own in counted),
        tuple(_mean([pair.order_gap for pair in own]) for own in counted),
        pairs[0].judge,
        usage,
        verdict_mass=least(pair.verdict_mass for pair in pairs),
        truncated=tuple(cut[:count]),
        letter_gaps=_letter_gaps(counted),
    )


def _letter_gaps(counted: Results) -> tuple[float, ...]:
    """The mean of each response; none where a comparison has none."""
    gaps = [[pair.letter_gap for pair in own if pair.letter_gap is not None] for own in counted]
    if any(len(some) < len(own) for some, own in zip(gaps, counted, strict=True)):
        return ()
    return tuple(map(_mean, gaps))


def _check(item: CandidateGroup, ranking: RankingMode) -> bool:
    anchored = ranking == "anchor" or (ranking == "auto" and bool(item.anchor.strip()))
    if anchored and not item.anchor.strip():
        raise Unjudgeable(
            Reason.MISSING_REFERENCE, "ranking by anchor needs one; give one, or rank round-robin"
        )
    if not item.responses:
        raise Unjudgeable(Reason.MISSING_RESPONSE, "the group holds no responses")
    for index, text in enumerate(item.responses):
        require_text(text, f"response {index}")
    if not anchored and len(item.responses) < 2:
        raise invalid("one response alone has no rank; give an anchor, or at least two responses")
    return anchored


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(one, two) for one in range(count) for two in range(one + 1, count)]


def _counted(
    own: Sequence[PairJudgement], max_order_gap: float | None, settings: ResolvedJudgeSettings
) -> list[PairJudgement]:
    counted = [
        pair for pair in own if within(pair, max_order_gap) and not moved(pair.letter_gap, settings)
    ]
    if not counted or 2 * len(counted) < len(own):
        require_gap(max(own, key=lambda pair: pair.order_gap), max_order_gap)
        require_unmoved(greatest(pair.letter_gap for pair in own), settings)
    return counted


def _rated_group(
    item: CandidateGroup, anchored: bool, settings: ResolvedJudgeSettings, model: ModelInfo
) -> Run[GroupRanking]:
    refuse_reference(model, ground_truth=item.ground_truth)
    texts = (*item.responses, item.anchor) if anchored else item.responses
    rated = yield from rate(item.prompt, texts, settings, model)
    logits = [judgement.score for judgement in rated]
    scores = []
    for one in range(len(item.responses)):
        others = [len(texts) - 1] if anchored else [two for two in range(len(texts)) if two != one]
        scores.append(_mean([_win(logits, one, two) for two in others]))
    usage = sum((judgement.usage for judgement in rated), Usage())
    cut = tuple(judgement.truncated for judgement in rated[: len(scores)])
    return GroupRanking(tuple(scores), (0.0,) * len(scores), usage=usage, truncated=cut)


def _win(logits: Sequence[float], one: int, two: int) -> float:
    """sigmoid(r_one - r_two), with w(i, j) = 1 - w(j, i) exactly."""
    if one < two:
        return win_by_logits(logits[one], logits[two])
    return 1.0 - win_by_logits(logits[two], logits[one])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
