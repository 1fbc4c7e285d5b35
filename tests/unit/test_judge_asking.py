"""What verifiers of models pass on to genrm: rounds of a group, and whose account it is on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.api.judge.v1 import judge_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Message, ToolCall
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers import judges
from assay.reward_server.verifiers.judges.group import GroupVerifier
from assay.reward_server.verifiers.judges.pairwise import PairwiseVerifier
from assay.reward_server.verifiers.judges.pointwise import JudgeVerifier
from assay.reward_server.verifiers.judges.scalar import RewardModelVerifier
from assay.reward_server.verifiers.judges.steps import StepVerifier
from fake_genrm import FakeGenrm, judge, judged, make, reasons


@pytest.fixture
def genrm() -> FakeGenrm:
    return FakeGenrm()


@pytest.fixture
def client(genrm: FakeGenrm) -> AsyncJudgeClient:
    return AsyncJudgeClient(transport=genrm)


async def test_a_group_by_rounds_is_asked_so(client: AsyncJudgeClient, genrm: FakeGenrm) -> None:
    verifier = GroupVerifier(client)
    texts = ("42", "41", "40", "")
    made = [make(verifier, text, group_id="g", ranking="swiss", rounds=2) for text in texts]
    outcomes = await judge(verifier, *made)
    assert [judged(one)[1] for one in outcomes] == ["better", "better", "better", "unparsed"]
    [(_, request)] = genrm.requests
    assert (request.ranking_mode, request.rounds) == (judge_pb2.RANKING_MODE_SWISS, 2)
    assert tuple(request.items[0].responses) == texts[:3]
    stray = [make(verifier, text, group_id="g", rounds=2) for text in texts[:2]]
    assert reasons(await judge(verifier, *stray)) == ["INVALID_PARAMETER"] * 2


async def test_a_run_pays_for_what_it_asks(client: AsyncJudgeClient, genrm: FakeGenrm) -> None:
    alone, pairs, group, head, steps = (
        JudgeVerifier(client),
        PairwiseVerifier(client),
        GroupVerifier(client),
        RewardModelVerifier(client),
        StepVerifier(client),
    )
    for run in ("a", "b"):
        for verifier, more in (
            (alone, {"references": ("42",)}),
            (pairs, {"anchor": "41"}),
            (head, {}),
            (steps, {}),
        ):
            await verifier.judge_all([replace(make(verifier, "42", **more), run=run)], 5.0)
        members = [replace(make(group, text, group_id="g"), run=run) for text in ("42", "41")]
        await group.judge_all(members, 5.0)
    runs = [(method, request.settings.run) for method, request in genrm.requests]
    assert len(runs) == 10
    assert {run for _, run in runs[:5]} == {"a"}
    assert {run for _, run in runs[5:]} == {"b"}


async def test_a_dialogue_is_shown_turn_by_turn(client: AsyncJudgeClient, genrm: FakeGenrm) -> None:
    turns = (
        Message("assistant", "It is 42.", True, (ToolCall("check", {"n": 42}),)),
        Message("tool", "yes"),
    )
    alone, pairs = JudgeVerifier(client), PairwiseVerifier(client)
    for verifier, more in ((alone, {"references": ("42",)}), (pairs, {"anchor": "41"})):
        item = replace(make(verifier, "", **more), candidate=Candidate(turns=turns))
        silent = Candidate(turns=(Message("assistant", " \n", True), Message("tool", "42")))
        outcomes = await judge(verifier, item, replace(item, candidate=silent))
        assert judged(outcomes[1]) == (0.0, "unparsed")
    (_, first), (_, second) = genrm.requests
    for sent in (first.items[0].turns, second.items[0].turns_a):
        assert [turn.message.role for turn in sent] == ["assistant", "tool"]
        assert (sent[0].tool_calls[0].name, sent[0].tool_calls[0].arguments) == (
            "check", '{"n": 42}'
        )  # fmt: skip
    head = RewardModelVerifier(client)
    item = replace(make(head, ""), candidate=Candidate(turns=turns))
    assert reasons(await judge(head, item)) == ["UNSUPPORTED_INPUT"]


async def test_the_label_run_travels_and_the_cost_comes_back_through_a_profile(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    remote = [make_verifier(client) for make_verifier in judges.VERIFIERS]
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry(remote, profiles=()))
    await scorer.start()
    try:
        items = [
            reward_pb2.Item(id=run, task="judge", response="42", labels={"run": run})
            for run in ("a", "b")
        ]
        items += [reward_pb2.Item(id="p", verifier="rtv-genrm", response="42", labels={"run": "c"})]
        for item in items[:2]:
            item.reference.text = "42"
        items[2].reference.anchor_response = "41"
        request = reward_pb2.BatchScoreRequest(items=items)
        results = (await scorer.batch_score(request, timeout_s=20.0)).results
    finally:
        await scorer.close()
    assert sorted(request.settings.run for _, request in genrm.requests) == ["a", "b", "c"]
    for result in results:
        costs = [part for part in result.judgement.components if part.name == "judge-cost"]
        assert [(part.score, part.weight) for part in costs] == [(0.5, 0.0)]
    assert results[2].judgement.reward == pytest.approx(results[0].judgement.reward)
