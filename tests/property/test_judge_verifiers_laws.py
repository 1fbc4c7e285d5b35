"""Laws of judges that are models: one outcome an item, sound judgements, nothing made up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.clients.judging import (
    AsyncJudgeClient,
    GroupItem,
    GroupRanking,
    JudgeItem,
    JudgeRef,
    JudgeSettings,
    ModelJudgement,
    PairJudgement,
    StepScore,
    StepScores,
)
from assay.clients.types import Fault as ClientFault
from assay.reward_server import border
from assay.reward_server.domain import (
    Candidate,
    Fault,
    Judgement,
    Outcome,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers.judges.group import GroupVerifier
from assay.reward_server.verifiers.judges.pairwise import PairwiseVerifier, judge_pair
from assay.reward_server.verifiers.judges.pointwise import JudgeVerifier, judge_score
from assay.reward_server.verifiers.judges.scalar import RewardModelVerifier, judge_logit
from assay.reward_server.verifiers.judges.steps import StepVerifier, judge_steps

RATIOS = st.floats(0, 1)
JUDGE = JudgeRef("tiny", "abc", "any@1")
TEXTS = st.sampled_from(["", " \n", "good", "bad", "middling", "faulty"])
OPINIONS = {"good": 0.9, "bad": 0.1, "middling": 0.5}


class Opinions(AsyncJudgeClient):
    """A client without a server: texts have known worths, and one has none."""

    def __init__(self) -> None:
        super().__init__("nowhere:1")
        self.asked: list[str] = []

    async def judge_responses(  # type: ignore[override]
        self, items: Sequence[JudgeItem], settings: JudgeSettings, **_: Any
    ) -> list[ModelJudgement | ClientFault]:
        self.asked += [item.response for item in items]
        return [
            ModelJudgement(OPINIONS[item.response], judge=JUDGE)
            if item.response in OPINIONS
            else ClientFault("JUDGE_UNPARSED", "mumbled", metadata={"raw_text": "hm"})
            for item in items
        ]

    async def judge_groups(  # type: ignore[override]
        self, items: Sequence[GroupItem], settings: JudgeSettings, **_: Any
    ) -> list[GroupRanking | ClientFault]:
        found: list[GroupRanking | ClientFault] = []
        for item in items:
            self.asked += item.responses
            if "faulty" in item.responses:
                found.append(ClientFault("JUDGE_UNPARSED", "mumbled"))
                continue
            worth = [OPINIONS[text] for text in item.responses]
            scores = []
            for index, mine in enumerate(worth):
                others = worth[:index] + worth[index + 1 :]
                won = [(mine - other + 1) / 2 for other in others]
                scores.append(math.fsum(won) / len(won))
            found.append(GroupRanking(tuple(scores), (0.0,) * len(scores), JUDGE))
        return found


def sound(spec: VerifierSpec, outcome: Outcome) -> Judgement:
    """The judgement, which passes the border and adds up."""
    found = border.checked(spec, outcome)
    assert isinstance(found, Judgement), found
    total = math.fsum(part.weight * part.score for part in found.components)
    assert math.isclose(total, found.reward, abs_tol=1e-9)
    return found


def judge(verifier: Any, items: Sequence[VerifierItem]) -> list[Outcome]:
    found = asyncio.run(border.judge_all(verifier, items, 5.0))
    assert len(found) == len(items)
    return [one.outcome for one in found]


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "a", "b"])), max_size=12))
def test_judgements_and_faults_are_the_items_in_order(pairs: list[tuple[str, str]]) -> None:
    client = Opinions()
    verifier = JudgeVerifier(client)
    items = [
        VerifierItem(
            Candidate(text),
            references=("right",),
            parameters=verifier.spec.complete({"model": model}),
        )
        for text, model in pairs
    ]
    for (text, _), outcome in zip(pairs, judge(verifier, items), strict=True):
        if text == "faulty":
            assert isinstance(outcome, Fault)
            assert outcome.metadata == {"raw_text": "hm"}
        else:
            assert sound(verifier.spec, outcome).reward == OPINIONS.get(text, 0.0)
    assert sorted(client.asked) == sorted(text for text, _ in pairs if text.strip())


@given(st.lists(st.tuples(TEXTS, st.sampled_from("gh")), max_size=12))
def test_a_round_robin_shares_out_half_a_point_for_each_comparison(
    pairs: list[tuple[str, str]],
) -> None:
    verifier = GroupVerifier(Opinions())
    parameters = verifier.spec.complete({})
    items = [
        VerifierItem(Candidate(text), parameters=parameters, group_id=name) for text, name in pairs
    ]
    outcomes = judge(verifier, items)
    for name in {name for _, name in pairs}:
        places = [place for place, pair in enumerate(pairs) if pair[1] == name]
        texts = [pairs[place][0] for place in places]
        own = [outcomes[place] for place in places]
        unread = "faulty" in texts and sum(bool(text.strip()) for text in texts) > 1
        if len(texts) < 2 or unread:
            assert all(isinstance(outcome, Fault) for outcome in own)
            continue
        rewards = [sound(verifier.spec, outcome).reward for outcome in own]
        blank = sum(not text.strip() for text in texts)
        # Two blank responses earn nothing of what they would share.
        lost = blank * (blank - 1) / 2 / (len(texts) - 1)
        assert math.isclose(math.fsum(rewards), len(texts) / 2 - lost, abs_tol=1e-9)


@given(st.tuples(RATIOS, RATIOS, RATIOS), st.sampled_from(["fault", "abstain"]), RATIOS, RATIOS)
def test_pairs_are_sound_and_abstain_past_the_gap_only(
    chances: tuple[float, float, float], on_gap: str, limit: float, gap_reward: float
) -> None:
    won, forward, reverse = chances
    spec = PairwiseVerifier(Opinions()).spec
    gap = abs(forward - reverse)
    parameters = spec.complete({"on_gap": on_gap, "max_order_gap": limit, "gap_reward": gap_reward})
    found = sound(spec, judge_pair(PairJudgement(won, forward, reverse, gap), parameters))
    assert (found.verdict == "abstained") == (gap > limit)
    assert found.reward == (gap_reward if gap > limit else won)


@given(RATIOS, st.none() | RATIOS, RATIOS, st.text(max_size=3000))
def test_scores_are_sound(score: float, error: float | None, least: float, why: str) -> None:
    found = ModelJudgement(score, error, rationale=why, judge=JUDGE)
    spec = JudgeVerifier(Opinions()).spec
    parameters = spec.complete({"threshold": least})
    judgement = sound(spec, judge_score(found, "ground-truth", parameters))
    assert judgement.reward == score
    assert (judgement.verdict == "correct") == (score >= least)


LOGITS = st.floats(-1e6, 1e6)


@given(LOGITS, LOGITS, st.floats(1e-6, 1e6), st.sampled_from(["sigmoid", "none"]), LOGITS)
def test_logits_are_squashed_in_their_order(
    logit: float, center: float, scale: float, squash: str, other: float
) -> None:
    spec = RewardModelVerifier(Opinions()).spec
    parameters = spec.complete({"center": center, "scale": scale, "squash": squash})
    rewards = [
        sound(spec, judge_logit(ModelJudgement(value), parameters)).reward
        for value in sorted((logit, other))
    ]
    assert rewards[0] <= rewards[1]
    if squash == "sigmoid":
        assert all(0 <= reward <= 1 for reward in rewards)


@given(st.lists(st.none() | RATIOS, min_size=1, max_size=300), RATIOS, st.booleans())
def test_steps_become_spans_in_order(
    scores: list[float | None], aggregate: float, passed: bool
) -> None:
    spec = StepVerifier(Opinions()).spec
    steps = tuple(StepScore(3 * n, 3 * n + 3, score) for n, score in enumerate(scores))
    found = StepScores(steps, aggregate, passed)
    judgement = sound(spec, judge_steps(found, spec.complete({})))
    assert judgement.reward == aggregate
    assert [span.reward for span in judgement.spans] == [s for s in scores if s is not None]
    signed = sound(spec, judge_steps(found, spec.complete({"step_rewards": "signed"})))
    assert all(-1 <= span.reward <= 1 for span in signed.spans)
