"""What a caller sends, as values of the domain; what is wrong is the item's fault, by name."""

from __future__ import annotations

import math

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.types import (
    GroupRanking,
    JudgeRef,
    ModelJudgement,
    PairJudgement,
    StepScore,
    StepScores,
    Usage,
    Vote,
)
from assay.genrm import convert
from assay.genrm.domain import (
    CandidateResponse,
    ChatMessage,
    ResolvedJudgeSettings,
    ResolvedStepSettings,
)
from assay.genrm.engines.base import ModelInfo
from assay.genrm.results import fill_judgement, fill_pair, fill_ranking, fill_steps, strip_texts
from assay.kit.batch.answers import fit_results
from assay.kit.batch.items import PendingItem
from assay.kit.errors import reason_of
from assay.kit.faults import Unjudgeable

INFO = ModelInfo("m", "transformers", "abc", frozenset(("choose",)), 100, deterministic=True)
USER = common_pb2.ChatMessage(role="user", content="q")


def test_settings_that_say_nothing_are_the_defaults() -> None:
    assert convert.judge_settings(judge_pb2.JudgeSettings(), 7) == ResolvedJudgeSettings(seed=7)
    assert convert.step_settings(process_pb2.StepSettings(), 7) == ResolvedStepSettings(seed=7)


@pytest.mark.parametrize(
    ("message", "temperature"),
    [
        (judge_pb2.JudgeSettings(), 1.0),
        (judge_pb2.JudgeSettings(votes=1), 0.0),
        (judge_pb2.JudgeSettings(temperature=0.0), 0.0),
        (judge_pb2.JudgeSettings(votes=1, temperature=0.5), 0.5),
        (judge_pb2.JudgeSettings(scoring_mode=judge_pb2.SCORING_MODE_TOKEN_PROBABILITY), 0.0),
        (judge_pb2.JudgeSettings(scoring_mode=judge_pb2.SCORING_MODE_CONSENSUS), 1.0),
    ],
)
def test_an_unset_temperature_follows_the_votes(
    message: judge_pb2.JudgeSettings, temperature: float
) -> None:
    assert convert.judge_settings(message, 0).temperature == temperature


def test_the_temperature_of_critiques_follows_their_number() -> None:
    assert convert.step_settings(process_pb2.StepSettings(votes=1), 0).temperature == 0
    assert convert.step_settings(process_pb2.StepSettings(votes=3), 0).temperature == 1
    assert convert.step_settings(process_pb2.StepSettings(votes=3, temperature=0), 0).votes == 3


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_seeds_leave_room_to_count_up_from(seed: int) -> None:
    assert 0 <= convert.judge_settings(judge_pb2.JudgeSettings(seed=seed), 5).seed < 2**62


def test_a_bound_of_0_is_a_bound() -> None:
    assert convert.judge_settings(judge_pb2.JudgeSettings(max_letter_gap=0), 0).max_letter_gap == 0
    assert convert.judge_settings(judge_pb2.JudgeSettings(), 0).max_letter_gap is None


@pytest.mark.parametrize(
    ("message", "setting"),
    [
        (judge_pb2.JudgeSettings(votes=-1), "votes"),
        (judge_pb2.JudgeSettings(votes=257), "votes"),
        (judge_pb2.JudgeSettings(temperature=-0.1), "temperature"),
        (judge_pb2.JudgeSettings(temperature=math.nan), "temperature"),
        (judge_pb2.JudgeSettings(temperature=math.inf), "temperature"),
        (judge_pb2.JudgeSettings(max_tokens=-1), "max_tokens"),
        (judge_pb2.JudgeSettings(max_tokens=2**31 - 1), "max_tokens"),
        (judge_pb2.JudgeSettings(max_letter_gap=1.01), "max_letter_gap"),
        (judge_pb2.JudgeSettings(max_letter_gap=math.nan), "max_letter_gap"),
        (judge_pb2.JudgeSettings(scoring_mode=99), "scoring_mode"),  # type: ignore[arg-type]
        (judge_pb2.JudgeSettings(overflow_policy=99), "overflow_policy"),  # type: ignore[arg-type]
        (judge_pb2.JudgeSettings(template="x" * 257), "template"),
    ],
)
def test_settings_that_are_wrong_name_the_setting(
    message: judge_pb2.JudgeSettings, setting: str
) -> None:
    with pytest.raises(Unjudgeable, match=setting) as caught:
        convert.judge_settings(message, 0)
    assert caught.value.reason == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    ("message", "setting"),
    [
        (process_pb2.StepSettings(error_threshold=1.5), "error_threshold"),
        (process_pb2.StepSettings(error_threshold=math.nan), "error_threshold"),
        (process_pb2.StepSettings(splitting=99), "splitting"),  # type: ignore[arg-type]
        (process_pb2.StepSettings(aggregation=99), "aggregation"),  # type: ignore[arg-type]
        (process_pb2.StepSettings(step_tag="x" * 257), "step_tag"),
    ],
)
def test_step_settings_that_are_wrong_name_the_setting(
    message: process_pb2.StepSettings, setting: str
) -> None:
    with pytest.raises(Unjudgeable, match=setting):
        convert.step_settings(message, 0)


@pytest.mark.parametrize("gap", [-0.1, 1.1, math.nan])
def test_an_order_gap_is_between_0_and_1(gap: float) -> None:
    with pytest.raises(Unjudgeable, match="max_order_gap"):
        convert.max_order_gap(judge_pb2.JudgePairsRequest(max_order_gap=gap))


def test_an_order_gap_of_0_is_not_an_unset_one() -> None:
    assert convert.max_order_gap(judge_pb2.JudgePairsRequest()) is None
    assert convert.max_order_gap(judge_pb2.JudgePairsRequest(max_order_gap=0)) == 0


def test_an_empty_ground_truth_is_not_an_unset_one() -> None:
    item = convert.judge_item(judge_pb2.JudgeItem(prompt=[USER], response="r", ground_truth=""))
    assert item == CandidateResponse((ChatMessage("user", "q"),), "r", ground_truth="")


@pytest.mark.parametrize("role", ["", "judge", "<|im_start|>", "User"])
def test_a_role_that_is_none(role: str) -> None:
    message = common_pb2.ChatMessage(role=role, content="x")
    with pytest.raises(Unjudgeable, match="role"):
        convert.judge_item(judge_pb2.JudgeItem(prompt=[message], response="r"))


@pytest.mark.parametrize(
    ("count", "anchor", "fine"), [(64, "", True), (65, "", False), (256, "a", True)]
)
def test_a_group_is_bounded_by_how_it_is_ranked(count: int, anchor: str, fine: bool) -> None:
    message = judge_pb2.GroupItem(responses=["r"] * count, anchor_response=anchor)
    if fine:
        assert len(convert.group_item(message, "auto").responses) == count
    else:
        with pytest.raises(Unjudgeable, match="each against each"):
            convert.group_item(message, "auto")


def test_a_judgement_on_the_wire() -> None:
    result = judge_pb2.JudgeResult()
    votes = (Vote(1.0, "yes\ud800"), Vote(0.0, "x" * 5000))
    judgement = ModelJudgement(
        0.5,
        0.0,
        votes,
        rationale="why",
        judge=JudgeRef(template="correctness@1"),
        usage=Usage(9, 4, 2),
    )
    fill_judgement(result, judgement, INFO)
    written = result.judgement
    assert written.HasField("standard_error")
    assert [vote.text for vote in written.votes] == ["yes?", "x" * 4000]
    assert (written.judge.model, written.judge.model_revision) == ("m", "abc")
    assert (written.usage.prompt_tokens, written.usage.cached_prompt_tokens) == (9, 4)


def test_steps_on_the_wire_keep_neutral_apart_from_zero() -> None:
    result = process_pb2.StepResult()
    steps = (StepScore(0, 2, None), StepScore(2, 5, 0.0), StepScore(5, 6, 0.9, "fine"))
    fill_steps(result, StepScores(steps, 0.0, passed=False, first_error=1), INFO)
    assert [step.HasField("score") for step in result.scores.steps] == [False, True, True]
    assert (result.scores.first_error_step, result.scores.passed) == (1, False)


def test_no_error_is_no_first_error() -> None:
    result = process_pb2.StepResult()
    fill_steps(result, StepScores((StepScore(0, 2, 0.5),), 0.5, passed=True), INFO)
    assert not result.scores.HasField("first_error_step")
    assert result.scores.passed


def test_a_pair_and_a_group_on_the_wire() -> None:
    pair = judge_pb2.PairResult()
    fill_pair(pair, PairJudgement(0.25, 0.5, 0.0, 0.5), INFO)
    assert not pair.judgement.HasField("standard_error")
    assert pair.judgement.reverse_probability == 0
    group = judge_pb2.GroupResult()
    fill_ranking(group, GroupRanking((0.1, 0.9), (0.0, 0.2)), INFO)
    assert list(group.ranking.scores) == [0.1, 0.9]


def test_an_answer_without_room_leaves_out_texts_first_and_then_says_so() -> None:
    def result() -> judge_pb2.JudgeResult:
        made = judge_pb2.JudgeResult(id="a")
        votes = tuple(Vote(1.0, "x" * 4000) for _ in range(8))
        fill_judgement(made, ModelJudgement(1.0, votes=votes), INFO)
        return made

    results = [result() for _ in range(8)]
    pairs = [(PendingItem("", 0.0, outcome=made.judgement), made) for made in results]
    fit_results(pairs, strip_texts, "no room", 32_500)
    assert results[0].judgement.votes[0].text
    assert results[1].judgement.votes[0].value == 1
    assert not results[1].judgement.votes[0].text
    assert reason_of(results[-1].fault) == "MESSAGE_TOO_LARGE"
    assert [item.faulted for item, _ in pairs] == [made.HasField("fault") for made in results]
