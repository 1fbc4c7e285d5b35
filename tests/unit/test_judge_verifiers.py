"""Judges that are models: items become questions, opinions become judgements, faults stay faults.

The client is the real one; genrm is a function that answers its messages, with fault knobs.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from assay.api.judge.v1 import judge_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients.judging import AsyncJudgeClient, StepScore, StepScores
from assay.kit.errors import error_info
from assay.reward_server import border
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Candidate,
    Fault,
    Judgement,
    Message,
    VerifierItem,
)
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers import judges
from assay.reward_server.verifiers.judges.classes import ClassVerifier
from assay.reward_server.verifiers.judges.group import GroupVerifier
from assay.reward_server.verifiers.judges.pairwise import PairwiseVerifier
from assay.reward_server.verifiers.judges.pointwise import JudgeVerifier
from assay.reward_server.verifiers.judges.scalar import RewardModelVerifier
from assay.reward_server.verifiers.judges.steps import StepVerifier, judge_steps
from fake_genrm import RAMBLING, TOO_LONG, FakeGenrm, judge, judged, make, reasons


@pytest.fixture
def genrm() -> FakeGenrm:
    return FakeGenrm()


@pytest.fixture
def client(genrm: FakeGenrm) -> AsyncJudgeClient:
    return AsyncJudgeClient(transport=genrm)


async def test_a_response_is_held_against_what_its_item_has(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = JudgeVerifier(client)
    outcomes = await judge(
        verifier,
        make(verifier, "It is 42.", references=("42",), rubric="Be brief."),
        make(verifier, "It is 41.", references=("42", "forty-two")),
        make(verifier, "It is 42.", anchor="It is 40."),
        make(verifier, "It is 42.", rubric="Be brief."),
        make(verifier, "It is 42.", references=("42",), against="prompt"),
        make(verifier, "It is 42.", against="anchor"),
        make(verifier, "It is 42."),
        make(verifier, "It is 42.", references=("42", " ")),
        make(verifier, "It is 42.", data={"answer": 42}),
        make(verifier, "It is 42.", anchor="\n"),
    )
    assert [judged(one) for one in outcomes[:5]] == [
        (0.9, "correct"), (0.2, "incorrect"), (0.9, "correct"), (0.9, "correct"), (0.9, "correct")
    ]  # fmt: skip
    assert reasons(outcomes[5:]) == [
        "MISSING_REFERENCE", "MISSING_REFERENCE", "UNUSABLE_REFERENCE", "UNSUPPORTED_INPUT",
        "UNUSABLE_REFERENCE",
    ]  # fmt: skip
    [(method, request)] = genrm.requests
    assert method == "JudgeResponses"
    assert [item.WhichOneof("against") for item in request.items] == [
        "ground_truth", "ground_truth", "anchor_response", "rubric", None
    ]  # fmt: skip
    assert request.items[1].ground_truth.endswith("1. 42\n2. forty-two")
    assert request.items[0].prompt[0].content == "What is 6 * 7?"


async def test_items_of_equal_settings_travel_together(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = JudgeVerifier(client)
    hot: dict[str, Any] = {"votes": 8, "temperature": 0.7, "model": "big", "seed": 3}
    items = [make(verifier, f"42 {n}", references=("42",), **hot) for n in range(5)]
    items += [make(verifier, f"42 {n}", references=("42",)) for n in range(7)]
    outcomes = await judge(verifier, *items)
    assert reasons(outcomes) == ["correct"] * 12
    assert sorted(len(request.items) for _, request in genrm.requests) == [5, 7]
    settings = next(request.settings for _, request in genrm.requests if len(request.items) == 5)
    assert (settings.model, settings.votes, settings.temperature, settings.seed) == (
        "big", 8, 0.7, 3
    )  # fmt: skip
    plain = next(request.settings for _, request in genrm.requests if len(request.items) == 7)
    assert not plain.HasField("temperature")
    assert plain.seed == 0


async def test_uncertainty_and_origin_are_reported(client: AsyncJudgeClient) -> None:
    verifier = JudgeVerifier(client)
    [outcome] = await judge(verifier, make(verifier, "42", references=("42",), votes=8))
    assert isinstance(outcome, Judgement)
    parts = {part.name: (part.score, part.weight) for part in outcome.components}
    assert parts == {
        "score": (0.9, 1.0), "standard-error": (0.05, 0.0), "verdict-mass": (0.75, 0.0),
        "judge-tokens": (20.0, 0.0), "judge-cost": (0.5, 0.0),
    }  # fmt: skip
    for word in ("tiny@abc", "correctness@1", "80 kept", "1 votes could not", "It is right."):
        assert word in outcome.explanation


async def test_faults_of_genrm_keep_their_reason_and_their_facts(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = JudgeVerifier(client)
    items = [make(verifier, text, references=("42",)) for text in (TOO_LONG, "mumble", "42")]
    long, unread, fine = await judge(verifier, *items)
    assert reasons([long, unread, fine]) == ["CONTEXT_TOO_LONG", "JUDGE_UNPARSED", "correct"]
    assert isinstance(unread, Fault)
    assert len(unread.metadata["raw_text"]) == 2_000
    assert unread.metadata["raw_text"].startswith("I think\nthat")
    genrm.fails = True
    assert reasons(await judge(verifier, *items)) == ["INTERNAL"] * 3


async def test_a_blank_response_is_the_candidates_doing_and_costs_no_model(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    for make_verifier in judges.VERIFIERS:
        verifier: Any = make_verifier(client)
        held: dict[str, Any] = {"anchor": "41"}
        if isinstance(verifier, ClassVerifier | judges.RubricVerifier):
            held = {"references": ("safe", "safe")}
        items = [make(verifier, text, **held, group_id="g") for text in ("", " \n\t")]
        for reward, verdict in map(judged, await judge(verifier, *items)):
            assert verdict == "unparsed"
            assert reward == pytest.approx(0.0, abs=1e-9)
    assert genrm.requests == []
    verifier = JudgeVerifier(client)
    [outcome] = await judge(verifier, make(verifier, "\u200b", references=("42",)))
    assert judged(outcome) == (0.0, "unparsed")


@pytest.mark.parametrize("make_verifier", [JudgeVerifier, PairwiseVerifier, GroupVerifier])
async def test_a_response_that_is_too_long_is_cut_or_overlong_by_itself(
    client: AsyncJudgeClient, genrm: FakeGenrm, make_verifier: Any
) -> None:
    verifier = make_verifier(client)
    texts = ["42", f"42 {RAMBLING}", "41"]

    async def judged_by(overflow: str) -> list[tuple[float, str]]:
        more = {"anchor": "4"} if make_verifier is not JudgeVerifier else {"references": ("4",)}
        items = [make(verifier, one, group_id="g", overflow=overflow, **more) for one in texts]
        return [judged(one) for one in await judge(verifier, *items)]

    cut = await judged_by("keep-ends")
    assert cut[1] == cut[0], "read at its ends"
    assert await judged_by("overlong") == [cut[0], (0.0, "overlong"), cut[2]]
    policies = {request.settings.overflow_policy for _, request in genrm.requests}
    assert policies == {judge_pb2.OVERFLOW_POLICY_KEEP_ENDS}


async def test_what_is_longer_than_the_response_is_not_its_doing(client: AsyncJudgeClient) -> None:
    verifier = PairwiseVerifier(client)
    item = make(verifier, "42", anchor=f"41 {RAMBLING}", overflow="overlong")
    [outcome] = await judge(verifier, item)
    assert judged(outcome) == (1.0, "better")


async def test_steps_that_do_not_fit_are_overlong_and_a_fault_where_asked(
    client: AsyncJudgeClient,
) -> None:
    verifier = StepVerifier(client)
    outcomes = await judge(
        verifier, make(verifier, TOO_LONG), make(verifier, TOO_LONG, overflow="refuse")
    )
    assert judged(outcomes[0]) == (0.0, "overlong")
    assert reasons(outcomes[1:]) == ["CONTEXT_TOO_LONG"]


async def test_a_missing_reference_is_found_before_a_blank_response(
    client: AsyncJudgeClient,
) -> None:
    pairwise, single = PairwiseVerifier(client), JudgeVerifier(client)
    assert reasons(await judge(pairwise, make(pairwise, ""))) == ["MISSING_REFERENCE"]
    assert reasons(await judge(single, make(single, ""))) == ["MISSING_REFERENCE"]


async def test_a_dialogue_is_refused(client: AsyncJudgeClient) -> None:
    verifier = RewardModelVerifier(client)
    turns = Candidate(turns=(Message("assistant", "42", from_policy=True),))
    item = VerifierItem(turns, references=("42",), parameters=verifier.spec.complete({}))
    assert reasons(await judge(verifier, item)) == ["UNSUPPORTED_INPUT"]


async def test_the_threshold_parts_right_from_wrong(client: AsyncJudgeClient) -> None:
    verifier = JudgeVerifier(client)
    for threshold, verdict in ((0.9, "correct"), (0.91, "incorrect")):
        item = make(verifier, "42", references=("42",), threshold=threshold)
        assert judged((await judge(verifier, item))[0]) == (0.9, verdict)


async def test_a_scalar_head_is_no_chance_of_being_right(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    genrm.scalar = True
    verifier = JudgeVerifier(client)
    item = make(verifier, "42", against="prompt")
    assert reasons(await judge(verifier, item)) == ["INVALID_PARAMETER"]


async def test_pairs_are_held_against_the_anchor(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = PairwiseVerifier(client)
    outcomes = await judge(
        verifier,
        make(verifier, "42", anchor="41"),
        make(verifier, "41", anchor="40"),
        make(verifier, "same", anchor="same"),
        make(verifier, "42", references=("42",)),
    )
    assert [judged(one) for one in outcomes[:3]] == [
        (1.0, "better"), (0.0, "worse"), (0.5, "better")
    ]  # fmt: skip
    assert reasons(outcomes[3:]) == ["MISSING_REFERENCE"]
    assert isinstance(outcomes[0], Judgement)
    names = [part.name for part in outcomes[0].components]
    assert names == ["win-probability", "order-gap", "first-place", "second-place"]
    assert not genrm.requests[0][1].HasField("max_order_gap")


async def test_a_gap_is_a_fault_or_a_verdict_as_the_profile_chooses(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    genrm.gap = 0.5
    verifier = PairwiseVerifier(client)
    strict: dict[str, Any] = {"anchor": "41", "max_order_gap": 0.4}
    wide, abstained, free = await judge(
        verifier,
        make(verifier, "42", **strict),
        make(verifier, "42", **strict, on_gap="abstain", gap_reward=0.25),
        make(verifier, "42", anchor="41"),
    )
    assert isinstance(wide, Fault)
    assert (wide.reason, wide.metadata["order_gap"]) == ("ORDER_GAP", "0.5")
    assert judged(abstained) == (0.25, "abstained")
    assert judged(free) == (1.0, "better")
    told = [
        request.max_order_gap for _, request in genrm.requests if request.HasField("max_order_gap")
    ]
    assert told == [0.4]


async def test_groups_of_a_call_are_ranked_whole(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = GroupVerifier(client)
    items = [
        make(verifier, "42", group_id="a"),
        make(verifier, "41", group_id="b"),
        make(verifier, "40", group_id="a"),
        make(verifier, "42", group_id="b"),
        make(verifier, "41", group_id="a"),
    ]
    outcomes = await judge(verifier, *items)
    assert [judged(one)[0] for one in outcomes] == [1.0, 0.0, 0.25, 1.0, 0.25]
    [(method, request)] = genrm.requests
    assert method == "JudgeGroups"
    assert sorted(tuple(group.responses) for group in request.items) == [
        ("41", "42"), ("42", "40", "41")
    ]  # fmt: skip
    found = await verifier.judge_all(items, 5.0)
    assert {one.execution_s for one in found} == {0.009}


async def test_blank_responses_of_a_group_lose_to_all_others(client: AsyncJudgeClient) -> None:
    verifier = GroupVerifier(client)
    texts = ["42", "", "41", " "]
    outcomes = await judge(verifier, *(make(verifier, text, group_id="g") for text in texts))
    # 42 beats 41 and both blanks; 41 loses to 42 and beats both blanks.
    assert [judged(one) for one in outcomes] == [
        (1.0, "better"), (0.0, "unparsed"), (pytest.approx(2 / 3), "better"), (0.0, "unparsed")
    ]  # fmt: skip
    alone = await judge(verifier, *(make(verifier, text, group_id="g") for text in ("41", "")))
    assert [judged(one) for one in alone] == [(1.0, "better"), (0.0, "unparsed")]
    held = [make(verifier, text, group_id="g", anchor="40") for text in texts]
    assert [judged(one)[0] for one in await judge(verifier, *held)] == [0.75, 0.0, 0.25, 0.0]


async def test_a_group_that_cannot_be_ranked_is_a_fault_of_each_item(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = GroupVerifier(client)
    alone = make(verifier, "42", group_id="alone")
    differing = [
        make(verifier, "42", group_id="d", anchor="41"),
        make(verifier, "41", group_id="d", anchor="40"),
    ]
    parameters = [
        make(verifier, "42", group_id="p"),
        make(verifier, "41", group_id="p", ranking="anchor"),
    ]
    anchorless = [make(verifier, "42", group_id="n", ranking="anchor") for _ in range(2)]
    outcomes = await judge(verifier, alone, *differing, *parameters, *anchorless)
    assert reasons(outcomes) == ["UNSUPPORTED_INPUT"] * 5 + ["MISSING_REFERENCE"] * 2
    assert genrm.requests == []
    genrm.fails = True
    items = [make(verifier, text, group_id="g") for text in ("42", "41")]
    assert reasons(await judge(verifier, *items)) == ["INTERNAL"] * 2


async def test_a_logit_is_squashed_or_cut(client: AsyncJudgeClient, genrm: FakeGenrm) -> None:
    genrm.scalar = True
    verifier = RewardModelVerifier(client)
    outcomes = await judge(
        verifier,
        make(verifier, "42", center=250.0),
        make(verifier, "42", center=248.0, scale=2.0),
        make(verifier, "42", center=248.0, squash="none"),
        make(verifier, "42", squash="none"),
        make(verifier, "42", center=1250.0, threshold=-2000.0),
        make(verifier, "", squash="none", blank_logit=-5.0),
    )
    assert [judged(one) for one in outcomes] == [
        (0.5, "accepted"),
        (pytest.approx(1 / (1 + math.exp(-1))), "accepted"),
        (2.0, "accepted"),
        (100.0, "accepted"),
        (0.0, "accepted"),
        (-5.0, "unparsed"),
    ]
    assert isinstance(outcomes[3], Judgement)
    assert "cut to 100" in outcomes[3].explanation
    modes = {request.settings.scoring_mode for _, request in genrm.requests}
    assert modes == {judge_pb2.SCORING_MODE_SCALAR_HEAD}


async def test_steps_become_spans(client: AsyncJudgeClient, genrm: FakeGenrm) -> None:
    verifier = StepVerifier(client)
    text = "# think\na right one\na wrong one\n"
    plain, signed, bare = await judge(
        verifier,
        make(verifier, text, threshold=0.5),
        make(verifier, text, step_rewards="signed"),
        make(verifier, text, step_rewards="none"),
    )
    assert judged(plain) == (0.25, "incorrect")
    assert isinstance(plain, Judgement)
    assert isinstance(signed, Judgement)
    assert isinstance(bare, Judgement)
    spans = [(span.start, span.end, span.reward, span.label) for span in plain.spans]
    assert spans == [(8, 20, 0.75, "step"), (20, 32, 0.25, "step")]
    assert [span.reward for span in signed.spans] == [0.5, -0.5]
    assert bare.spans == ()
    parts = {part.name: part.score for part in plain.components}
    assert parts == {"min-of-steps": 0.25, "steps": 3.0, "first-error-step": 3.0}
    told = [request.settings for _, request in genrm.requests]
    thresholds = [
        settings.error_threshold for settings in told if settings.HasField("error_threshold")
    ]
    assert thresholds == [0.5]


async def test_a_tag_is_needed_to_split_at_one(client: AsyncJudgeClient) -> None:
    verifier = StepVerifier(client)
    outcomes = await judge(verifier, make(verifier, "a", splitting="tag"))
    assert reasons(outcomes) == ["INVALID_PARAMETER"]


def scored_steps(count: int) -> StepScores:
    steps = tuple(StepScore(index, index + 1, 0.5) for index in range(count))
    return StepScores(steps, 0.5, passed=True)


def test_more_steps_than_spans_are_a_fault_that_says_what_to_do() -> None:
    verifier = StepVerifier(AsyncJudgeClient(transport=FakeGenrm()))
    parameters = dict(verifier.spec.complete({}))
    found = border.checked(verifier.spec, judge_steps(scored_steps(1_200), parameters))
    assert isinstance(found, Judgement)
    with pytest.raises(Exception, match="step_rewards=none"):
        judge_steps(scored_steps(1_201), parameters)
    parameters["step_rewards"] = "none"
    assert judge_steps(scored_steps(1_201), parameters).verdict == "correct"


@pytest.fixture
async def scorer(client: AsyncJudgeClient, genrm: FakeGenrm) -> AsyncIterator[RewardScorer]:
    remote = [make_verifier(client) for make_verifier in judges.VERIFIERS]
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry(remote, profiles=()))
    await scorer.start()
    assert genrm.requests == []  # no judge is asked before anybody asks for one
    yield scorer
    await scorer.close()
    assert genrm.closed == 1


async def test_through_the_server(scorer: RewardScorer, genrm: FakeGenrm) -> None:
    items = [reward_pb2.Item(id=str(n), task="judge", response=f"42 {n}") for n in range(4)]
    for item in items:
        item.reference.text = "42"
    items += [
        reward_pb2.Item(id=name, verifier="judge-group", group_id="g", response=name)
        for name in ("42", "41")
    ]
    items.append(reward_pb2.Item(id="lonely", verifier="judge-group", response="42"))
    items.append(reward_pb2.Item(id="routed", task="rtv-genrm", response="42"))
    items[-1].reference.anchor_response = "41"
    request = reward_pb2.BatchScoreRequest(items=items)
    results = (await scorer.batch_score(request, timeout_s=20.0)).results
    assert [result.id for result in results] == [item.id for item in items]
    rewards = [result.judgement.reward for result in results]
    assert rewards == [0.9] * 4 + [1.0, 0.0, 0.0, 0.9]
    assert results[0].timings.execution.nanos == 7_000_000
    info = error_info(results[6].fault)
    assert info is not None
    assert info.reason == "UNSUPPORTED_INPUT"
    assert results[7].judgement.verifier.name == "rtv-genrm"
    assert sorted(method for method, _ in genrm.requests) == [
        "JudgeGroups", "JudgeResponses", "JudgeResponses"
    ]  # fmt: skip


async def test_without_genrm_the_fault_says_which_flag_is_missing() -> None:
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry(profiles=()))
    await scorer.start()
    try:
        names = ("judge", "judge-attempt", "judge-refusal", "judge-pairwise", "judge-group")
        names = (*names, "reward-model", "prm")
        items = [reward_pb2.Item(id=name, verifier=name, response="42") for name in names]
        request = reward_pb2.BatchScoreRequest(items=items)
        results = (await scorer.batch_score(request, timeout_s=20.0)).results
    finally:
        await scorer.close()
    for result in results:
        info = error_info(result.fault)
        assert info is not None
        assert info.reason == "UNKNOWN_VERIFIER"
        assert "--genrm-target" in result.fault.message
