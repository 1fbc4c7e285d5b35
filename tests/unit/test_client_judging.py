"""The judging client's promises, over a wire that is a function."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.config import ClientConfig
from assay.clients.judging import (
    AsyncJudgeClient,
    Fault,
    GroupItem,
    GroupRanking,
    JudgeClient,
    JudgeItem,
    JudgeSettings,
    ModelJudgement,
    PairItem,
    PairJudgement,
    SelfVerificationItem,
    SelfVerificationScores,
    SelfVerificationSettings,
    StepItem,
    StepScores,
    StepSettings,
)
from assay.clients.judging.convert import group_result, judge_result, pair_result
from assay.kit.errors import BadRequestError, ConfigError, UnavailableError, refuse
from assay.kit.reasons import Reason

Spoil = Callable[[list[Any]], list[Any]]


def judged(item: judge_pb2.JudgeItem) -> judge_pb2.JudgeResult:
    """The answer of a judge who writes each item's id as its reasons."""
    result = judge_pb2.JudgeResult(id=item.id)
    result.judgement.score = 0.75
    result.judgement.rationale = item.id
    result.judgement.judge.model = "tiny"
    result.judgement.usage.prompt_tokens = 9
    result.timings.execution.FromMilliseconds(250)
    return result


def paired(item: judge_pb2.PairItem) -> judge_pb2.PairResult:
    result = judge_pb2.PairResult(id=item.id)
    result.judgement.win_probability = 0.5
    result.judgement.forward_probability = 0.75
    result.judgement.reverse_probability = 0.25
    result.judgement.order_gap = 0.5
    return result


def ranked(item: judge_pb2.GroupItem) -> judge_pb2.GroupResult:
    result = judge_pb2.GroupResult(id=item.id)
    result.ranking.scores.extend([0.5] * len(item.responses))
    result.ranking.order_gaps.extend([0.0] * len(item.responses))
    return result


def stepped(item: process_pb2.StepItem) -> process_pb2.StepResult:
    """Each step of the item, the first of them wrong."""
    result = process_pb2.StepResult(id=item.id)
    start = 0
    for index, text in enumerate(item.steps):
        step = result.scores.steps.add(score=float(index > 0))
        step.range.start, step.range.end = start, start + len(text)
        start += len(text)
    result.scores.aggregate, result.scores.error_threshold = 0.25, 0.5
    result.scores.first_error_step = 0
    return result


def verified(item: process_pb2.SelfVerificationItem) -> process_pb2.SelfVerificationResult:
    """Attempts as the item says; every verification says "correct"."""
    result = process_pb2.SelfVerificationResult(id=item.id)
    for index in range(len(item.policy_turns)):
        turn = result.scores.turns.add(reward=1.0)
        if index % 2:
            turn.strict_verdict = turn.tolerant_verdict = process_pb2.SELF_VERDICT_CORRECT
        else:
            turn.attempt_correct = item.attempts_correct[index // 2]
    return result


_SERVED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "JudgeResponses": (judged, judge_pb2.JudgeResponsesResponse),
    "JudgePairs": (paired, judge_pb2.JudgePairsResponse),
    "JudgeGroups": (ranked, judge_pb2.JudgeGroupsResponse),
    "ScoreSteps": (stepped, process_pb2.ScoreStepsResponse),
    "ScoreSelfVerification": (verified, process_pb2.ScoreSelfVerificationResponse),
}


class Wire:
    """A judge service as a function, with a few refusals first."""

    def __init__(self, spoil: Spoil = lambda results: results, refusals: int = 0) -> None:
        self.requests: list[Any] = []
        self._spoil = spoil
        self._refusals = refusals

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        name = method.rpartition(".")[2]
        assert timeout_s > 0
        limits = common_pb2.BatchLimits(max_items=4, max_message_bytes=10_000, max_item_bytes=2000)
        if name == "ListJudgeModels":
            models = [judge_pb2.JudgeModelInfo(name="tiny", is_default=True, scoring_modes=[1, 99])]
            return judge_pb2.ListJudgeModelsResponse(models=models, limits=limits)
        if name == "ListProcessModels":
            limits.max_items = 3
            return process_pb2.ListProcessModelsResponse(limits=limits)
        if self._refusals:
            self._refusals -= 1
            raise refuse(Reason.DRAINING, "the fake is told to be unavailable")
        self.requests.append(request)
        answer, response = _SERVED[name]
        return response(results=self._spoil([answer(item) for item in request.items]))

    async def close(self) -> None:
        return

    @property
    def batches(self) -> list[list[str]]:
        return [[item.id for item in request.items] for request in self.requests]


def items(count: int) -> list[JudgeItem]:
    return [JudgeItem(f"prompt {n}", "text", id=f"i{n}") for n in range(count)]


def fault_reason(outcome: object) -> str:
    assert isinstance(outcome, Fault), outcome
    return outcome.reason


async def test_order_is_kept_over_calls_that_fit_the_stricter_limit() -> None:
    wire = Wire(lambda results: results[::-1])
    async with AsyncJudgeClient(transport=wire) as client:
        outcomes = await client.judge_responses(items(10))
        assert await client.judge_responses([]) == []
    assert [o.rationale for o in outcomes if isinstance(o, ModelJudgement)] == [
        f"i{n}" for n in range(10)
    ]
    assert sorted(map(len, wire.batches)) == [1, 3, 3, 3]
    first = outcomes[0]
    assert isinstance(first, ModelJudgement)
    assert (first.judge.model, first.usage.prompt) == ("tiny", 9)
    assert first.timings.execution_s == 0.25
    assert first.standard_error is None


async def test_items_of_one_prompt_travel_together() -> None:
    wire = Wire()
    asked = [JudgeItem(f"prompt {n % 2}", f"text {n}", id=f"{n}") for n in range(6)]
    async with AsyncJudgeClient(transport=wire) as client:
        outcomes = await client.judge_responses(asked)
    assert sorted(wire.batches) == [["0", "2", "4"], ["1", "3", "5"]]
    assert [o.rationale for o in outcomes if isinstance(o, ModelJudgement)] == list("012345")


async def test_every_kind_of_call() -> None:
    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]
    wire = Wire()
    async with AsyncJudgeClient(transport=wire) as client:
        [pair] = await client.judge_pairs([PairItem(prompt, "a", "b", "gold")], max_order_gap=0.75)
        [group] = await client.judge_groups([GroupItem(prompt, ["a", "b"])], ranking="round-robin")
        [steps] = await client.score_steps([StepItem(prompt, "xyyz", steps=("x", "yy", "z"))])
    assert pair == PairJudgement(0.5, 0.75, 0.25, 0.5)
    assert group == GroupRanking((0.5, 0.5), (0.0, 0.0))
    assert isinstance(steps, StepScores)
    assert [(s.start, s.end, s.score) for s in steps.steps] == [(0, 1, 0), (1, 3, 1), (3, 4, 1)]
    assert (steps.first_error, steps.passed) == (0, False)
    sent_pair, sent_group, sent_steps = wire.requests
    assert sent_pair.max_order_gap == 0.75
    assert not sent_group.HasField("max_order_gap")
    assert sent_group.ranking_mode == judge_pb2.RANKING_MODE_ROUND_ROBIN
    assert sent_pair.items[0].ground_truth == "gold"
    assert [message.role for message in sent_steps.items[0].prompt] == ["system", "user"]


async def test_metrics_are_counted_over_all_calls() -> None:
    right = SelfVerificationItem("p", ["a", "v"], attempts_correct=[True])
    wrong = SelfVerificationItem("p", ["a", "v", "b"], attempts_correct=[False, True])
    wire = Wire()
    async with AsyncJudgeClient(transport=wire) as client:
        report = await client.score_self_verification([right, wrong, right, right, wrong])
    assert len(wire.requests) == 2
    assert all(isinstance(result, SelfVerificationScores) for result in report.results)
    assert report.metrics.first_accuracy == pytest.approx(3 / 5)
    assert report.metrics.final_accuracy == 1.0
    assert report.metrics.verifier_accuracy == pytest.approx(3 / 5)
    assert report.metrics.best_of_n_accuracy is None


async def test_settings_are_sent_as_they_are() -> None:
    wire = Wire()
    async with AsyncJudgeClient(transport=wire) as client:
        await client.judge_responses(items(1), JudgeSettings())
        await client.judge_responses(
            items(1),
            JudgeSettings("m", "t", "votes", 5, 0.0, 7, 0, "keep-ends", meta_critique=True),
        )
        await client.score_steps(
            [StepItem("p", "r")], StepSettings(splitting="tag", step_tag="#", error_threshold=0.0)
        )
        await client.score_self_verification(
            [SelfVerificationItem("p", ["a"], attempts_correct=[True])],
            SelfVerificationSettings("tolerant", 0.5, "math", "m"),
        )
    plain, told, steps, verification = (request.settings for request in wire.requests)
    assert plain == judge_pb2.JudgeSettings()
    assert not plain.HasField("seed")
    assert not plain.HasField("temperature")
    assert told == judge_pb2.JudgeSettings(
        model="m", template="t", scoring_mode=2, votes=5, temperature=0.0, max_tokens=7, seed=0,
        overflow_policy=1, meta_critique=True,
    )  # fmt: skip
    assert told.HasField("temperature")
    assert (steps.splitting, steps.step_tag) == (process_pb2.STEP_SPLITTING_TAG, "#")
    assert steps.HasField("error_threshold")
    assert verification.parsing == process_pb2.VERDICT_PARSING_TOLERANT
    assert (verification.shaping_weight, verification.model) == (0.5, "m")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (JudgeSettings(scoring="guess"), "scoring is 'guess'; choose one of auto"),  # type: ignore[arg-type]
        (JudgeSettings(votes=2**40), "JudgeSettings"),
        (JudgeSettings(seed=2**70), "JudgeSettings"),
        (JudgeSettings(model="\ud800"), "JudgeSettings"),
        (JudgeSettings(votes="many"), "JudgeSettings"),  # type: ignore[arg-type]
    ],
)
async def test_wrong_settings_are_an_error_of_the_call(settings: JudgeSettings, says: str) -> None:
    async with AsyncJudgeClient(transport=Wire()) as client:
        with pytest.raises(ConfigError, match=says):
            await client.judge_responses(items(1), settings)


async def test_wrong_items_are_their_own_faults() -> None:
    wrong = [
        JudgeItem("p", "r", ground_truth="g", anchor="a"),
        JudgeItem("p", "half a pair: \ud800"),
        JudgeItem("p", None),  # type: ignore[arg-type]
        JudgeItem([{"role": 5, "content": "x"}], "r"),  # type: ignore[dict-item]
        JudgeItem([{"content": "x"}], "r"),
        JudgeItem("p", "x" * 3000),
    ]
    async with AsyncJudgeClient(transport=Wire()) as client:
        outcomes = await client.judge_responses([*wrong, *items(1)])
        [group] = await client.judge_groups([GroupItem("p", "letters")])
    *faults, last = outcomes
    assert [fault_reason(fault) for fault in faults] == [
        *["UNSUPPORTED_INPUT"] * 5, "ITEM_TOO_LARGE"
    ]  # fmt: skip
    assert isinstance(last, ModelJudgement)
    assert "one text; pass a list" in str(group)


async def test_what_a_server_says_wrongly_is_a_fault_of_that_item() -> None:
    def spoil(results: list[Any]) -> list[Any]:
        twice = judge_pb2.JudgeResult()
        twice.CopyFrom(results[1])
        twice.judgement.score = 0.5
        results[2].ClearField("outcome")
        return [*results[1:], twice, judge_pb2.JudgeResult(id="stray")]

    async with AsyncJudgeClient(transport=Wire(spoil)) as client:
        outcomes = await client.judge_responses(items(3))
    assert [fault_reason(outcome) for outcome in outcomes] == [
        "MISSING_RESULT", "INTERNAL", "MISSING_RESULT"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"score": float("nan")}, "SCORE_NOT_FINITE"),
        ({"score": float("inf")}, "SCORE_NOT_FINITE"),
        ({"score": 0.5, "standard_error": float("nan")}, "SCORE_NOT_FINITE"),
        ({"score": 0.5, "votes": [judge_pb2.Vote(value=2.0)]}, "INTERNAL"),
    ],
)
def test_numbers_without_sense_are_faults(message: dict[str, Any], reason: str) -> None:
    result = judge_pb2.JudgeResult(judgement=judge_pb2.ModelJudgement(**message))
    assert fault_reason(judge_result(judge_pb2.JudgeItem(), result)) == reason


async def test_outcomes_that_do_not_fit_what_was_sent_are_faults() -> None:
    def shorten(results: list[Any]) -> list[Any]:
        for result in results:
            match result:
                case judge_pb2.GroupResult():
                    result.ranking.scores.pop()
                case process_pb2.StepResult():
                    result.scores.steps[-1].range.end += 1
                case process_pb2.SelfVerificationResult():
                    result.scores.turns[1].ClearField("strict_verdict")
                case judge_pb2.PairResult():
                    result.judgement.win_probability = 1.5
        return results

    async with AsyncJudgeClient(transport=Wire(shorten)) as client:
        outcomes: list[object] = [
            *await client.judge_pairs([PairItem("p", "a", "b")]),
            *await client.judge_groups([GroupItem("p", ["a", "b"])]),
            *await client.score_steps([StepItem("p", "xy", steps=("x", "y"))]),
        ]
        item = SelfVerificationItem("p", ["a", "v"], attempts_correct=[True])
        report = await client.score_self_verification([item])
    assert [fault_reason(outcome) for outcome in [*outcomes, *report.results]] == ["INTERNAL"] * 4
    assert report.metrics.first_accuracy is None


async def test_a_refused_call_is_tried_again_then_a_fault_or_an_exception() -> None:
    async with AsyncJudgeClient(transport=Wire(refusals=2)) as client:
        [outcome] = await client.judge_responses(items(1))
        assert isinstance(outcome, ModelJudgement)
    async with AsyncJudgeClient(transport=Wire(refusals=99), timeout_s=0.3) as client:
        assert {fault_reason(o) for o in await client.judge_responses(items(3))} == {"DRAINING"}
        with pytest.raises(UnavailableError):
            await client.judge_responses(items(3), on_error="raise")


async def test_ids_and_the_clients_life() -> None:
    twins = [JudgeItem("p", "r", id="same")] * 2
    client = AsyncJudgeClient(transport=Wire(), config=ClientConfig(max_call_items=1))
    with pytest.raises(BadRequestError, match="2 items have the id 'same'"):
        await client.judge_responses(twins)
    info = await client.wait_ready()
    assert info.find("") == info.default_model == info.find("tiny")
    assert info.find("nobody") is None
    assert (info.max_items, info.models[0].scoring_modes) == (3, ("token-probability",))
    await client.close()
    await client.close()
    with pytest.raises(ConfigError, match="closed"):
        await client.judge_responses(items(1))


def test_a_client_wants_an_address_and_time() -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:50053"):
        JudgeClient("")
    with pytest.raises(ConfigError, match="time-out"):
        JudgeClient("127.0.0.1:1", timeout_s=0)
    client = JudgeClient("127.0.0.1:1")
    assert pickle.loads(pickle.dumps(client)).target == "127.0.0.1:1"
    client.close()


def test_values_are_frozen_and_can_be_compared() -> None:
    assert JudgeSettings() == JudgeSettings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        JudgeSettings().votes = 3  # type: ignore[misc]


def test_nobody_at_the_address_is_said_in_one_line() -> None:
    with JudgeClient("127.0.0.1:1", timeout_s=0.5) as client:
        [fault] = client.judge_responses(items(1))
    assert isinstance(fault, Fault)
    assert fault.reason == "UNREACHABLE"
    assert "assay serve genrm" in fault.message


@pytest.mark.parametrize("gaps", [[0.1], [0.1, 1.5]])
def test_letter_gaps_that_do_not_fit_are_a_fault(gaps: list[float]) -> None:
    sent = judge_pb2.GroupItem(id="g", responses=["a", "b"])
    message = ranked(sent)
    assert getattr(group_result(sent, message), "letter_gaps", None) == ()
    message.ranking.letter_gaps.extend([0.1, 0.2])
    assert getattr(group_result(sent, message), "letter_gaps", None) == (0.1, 0.2)
    del message.ranking.letter_gaps[:]
    message.ranking.letter_gaps.extend(gaps)
    found = group_result(sent, message)
    assert isinstance(found, Fault)
    assert found.reason == "INTERNAL"


def test_a_letter_gap_is_absent_or_a_number() -> None:
    sent = judge_pb2.PairItem(id="p")
    message = paired(sent)
    assert getattr(pair_result(sent, message), "letter_gap", 1) is None
    message.judgement.letter_gap = 0.0
    assert getattr(pair_result(sent, message), "letter_gap", None) == 0.0
