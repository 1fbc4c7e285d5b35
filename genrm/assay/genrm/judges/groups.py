"""Groups: the samples of one prompt, each against the anchor, each against each, or some."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

from assay.clients.judging.types import GroupRanking, PairJudgement, RankingMode, Usage
from assay.genrm.domain import CandidateGroup, ResolvedJudgeSettings, Run
from assay.genrm.engines.base import ModelInfo
from assay.genrm.judges.modes import invalid, require_text, resolve_mode
from assay.genrm.judges.numbers import greatest, least
from assay.genrm.judges.pairwise import (
    PAIR_MODES,
    PairComparison,
    comparison,
    require_gap,
    turned,
    win_by_logits,
    within,
)
from assay.genrm.judges.readings import moved, require_unmoved
from assay.genrm.judges.scalar import rate, refuse_reference
from assay.genrm.judges.strengths import Pair, joined_up, shares, strengths
from assay.genrm.judges.swiss import default_rounds, swiss
from assay.genrm.judges.together import caught, together
from assay.genrm.templates import Templates
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

Outcome = PairJudgement | Unjudgeable
"""What came of a comparison: a judgement, or why there is none."""


def judge_group(
    item: CandidateGroup,
    settings: ResolvedJudgeSettings,
    model: ModelInfo,
    templates: Templates,
    ranking: RankingMode = "auto",
    *,
    rounds: int = 0,
    max_order_gap: float | None = None,
) -> Run[GroupRanking]:
    """Ranks a group: the mean win probability of each response, over its comparisons.

    All comparisons are asked for at once and share the prompt: n with an anchor, n (n - 1) / 2
    without. Round-robin scores sum to n / 2 where all comparisons count. The ranking "auto" is by
    the anchor where there is one, else round-robin; "swiss" is `_by_rounds`, for which 0 `rounds`
    are `default_rounds`. A scalar head rates each response once whatever the ranking.

    A comparison without a readable verdict, with an order gap above `max_order_gap`, or that moves
    with the letters by more than the settings allow, does not count; a response that keeps fewer
    than half of its comparisons makes the group unrankable.

    Raises:
        Unjudgeable: MISSING_RESPONSE, MISSING_REFERENCE, INVALID_PARAMETER, UNKNOWN_TEMPLATE,
            JUDGE_UNPARSED, LOW_VERDICT_MASS, SCORE_NOT_FINITE, ORDER_GAP, LETTER_GAP; of the group
            as a whole.
    """
    anchored = _check(item, ranking)
    if resolve_mode(settings, model, PAIR_MODES) == "scalar-head":
        return (yield from _rated_group(item, anchored, settings, model))
    compare = comparison(item.prompt, item.ground_truth, settings, model, templates)
    if ranking == "swiss":
        return (yield from _by_rounds(item.responses, compare, rounds, settings, max_order_gap))
    texts = (*item.responses, item.anchor) if anchored else item.responses
    count = len(item.responses)
    places = [(one, count) for one in range(count)] if anchored else _pairs(count)
    compared = yield from together([caught(compare(texts[a], texts[b])) for a, b in places])
    found = Comparisons(texts, max_order_gap, settings)
    found.add(dict(zip(places, compared, strict=True)))
    counted = [found.counted(one) for one in range(count)]
    scores = [_mean([pair.win_probability for pair in own]) for own in counted]
    return found.ranking(scores, range(count))


class Comparisons:
    """What came of comparing some of a group's texts, by index, the lower one first."""

    def __init__(
        self, texts: Sequence[str], max_order_gap: float | None, settings: ResolvedJudgeSettings
    ) -> None:
        self._texts = texts
        self._max_order_gap = max_order_gap
        self._settings = settings
        self._made: dict[Pair, PairJudgement] = {}
        self._asked: set[frozenset[str]] = set()
        self._lost: set[frozenset[str]] = set()
        self._sides: list[list[Outcome]] = [[] for _ in texts]
        self._cut = [False] * len(texts)

    def add(self, outcomes: Mapping[Pair, Outcome]) -> dict[Pair, float]:
        """Takes them in; returns the chances that the first one wins, of those that count."""
        wins: dict[Pair, float] = {}
        for (one, two), outcome in outcomes.items():
            both = frozenset((self._texts[one], self._texts[two]))
            if len(both) == 2:
                self._asked.add(both)
            self._sides[one].append(outcome)
            if isinstance(outcome, Unjudgeable):
                self._sides[two].append(outcome)
                self._lost.add(both)
                continue
            self._sides[two].append(turned(outcome))
            self._made[one, two] = outcome
            longer = len(self._texts[one]) - len(self._texts[two])
            self._cut[one] |= outcome.truncated and longer >= 0
            self._cut[two] |= outcome.truncated and longer <= 0
            if self._counts(outcome):
                wins[one, two] = outcome.win_probability
            else:
                self._lost.add(both)
        return wins

    def counted(self, one: int) -> list[PairJudgement]:
        """The comparisons of one text that count, from its own side.

        Raises:
            Unjudgeable: fewer than half of them do; why the first does not.
        """
        own = self._sides[one]
        judged = [outcome for outcome in own if isinstance(outcome, PairJudgement)]
        counted = [pair for pair in judged if self._counts(pair)]
        if own and 2 * len(counted) < len(own):
            self._refuse(own)
        return counted

    def require_joined(self, wins: Mapping[Pair, float]) -> None:
        """Raises Unjudgeable where comparisons that count do not join all texts: why one does not.

        Without any, the strengths of the parts would have no common scale.
        """
        if not joined_up(len(self._texts), wins):
            self._refuse([outcome for own in self._sides for outcome in own])

    def ranking(self, scores: Sequence[float], places: Sequence[int]) -> GroupRanking:
        """The ranking with these scores; `places` are the texts of the responses."""
        made = list(self._made.values())
        counted = {one: self.counted(one) for one in set(places)}
        return GroupRanking(
            tuple(scores),
            tuple(_mean([pair.order_gap for pair in counted[one]]) for one in places),
            made[0].judge,
            sum((pair.usage for pair in made), Usage()),
            verdict_mass=least(pair.verdict_mass for pair in made),
            truncated=tuple(self._cut[one] for one in places),
            letter_gaps=_letter_gaps([counted[one] for one in places]),
            comparisons=len(self._asked),
            comparisons_lost=len(self._lost),
        )

    def _counts(self, pair: PairJudgement) -> bool:
        unmoved = not moved(pair.letter_gap, self._settings)
        return unmoved and within(pair, self._max_order_gap)

    def _refuse(self, own: Sequence[Outcome]) -> None:
        """Raises the trouble of the first without a verdict, else that of the greatest gap."""
        for outcome in own:
            if isinstance(outcome, Unjudgeable):
                raise outcome
        judged = [outcome for outcome in own if isinstance(outcome, PairJudgement)]
        require_gap(max(judged, key=lambda pair: pair.order_gap), self._max_order_gap)
        require_unmoved(greatest(pair.letter_gap for pair in judged), self._settings)


def _by_rounds(
    responses: Sequence[str],
    compare: PairComparison,
    rounds: int,
    settings: ResolvedJudgeSettings,
    max_order_gap: float | None,
) -> Run[GroupRanking]:
    """Compares each with some, round by round; see `swiss`, `strengths` and `shares`.

    Equal responses are one to compare, and score the same. They are ordered by a hash of seed and
    text, so that the order in which they come changes nothing.
    """
    texts = sorted(set(responses), key=lambda text: (_drawn(settings.seed, text), text))
    places = [texts.index(text) for text in responses]
    if len(texts) == 1:
        same = yield from compare(texts[0], texts[0])
        return GroupRanking((0.5,) * len(places), (0.0,) * len(places), same.judge)
    found = Comparisons(texts, max_order_gap, settings)
    schedule = swiss(len(texts), rounds or default_rounds(len(texts)))
    pairs = next(schedule)
    while True:
        runs = [caught(compare(texts[one], texts[two])) for one, two in pairs]
        outcomes = yield from together(runs)
        try:
            pairs = schedule.send(found.add(dict(zip(pairs, outcomes, strict=True))))
        except StopIteration as end:
            wins: dict[Pair, float] = end.value
            break
    found.require_joined(wins)
    copies = [places.count(one) for one in range(len(texts))]
    scores = shares(copies, wins, strengths(len(texts), wins))
    return found.ranking([scores[one] for one in places], places)


def _drawn(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _letter_gaps(counted: Sequence[Sequence[PairJudgement]]) -> tuple[float, ...]:
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
