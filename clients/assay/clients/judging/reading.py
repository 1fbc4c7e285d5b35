"""From the messages of judge.proto and process.proto to `assay.clients.judging.types`. Pure.

A result without an outcome, with a number that is not finite or out of its range, or that does not
fit what was sent (as many scores as responses, steps inside the response), is a fault: a judgement
is never made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.convert import fault_from_proto, limits_from_proto, make_fault
from assay.clients.judging.convert import SCORING, SPLITTING
from assay.clients.judging.types import (
    GroupRanking,
    GroupResult,
    JudgeModelInfo,
    JudgeRef,
    JudgeResult,
    JudgeServerInfo,
    ModelJudgement,
    PairJudgement,
    PairResult,
    ProcessModelInfo,
    SelfVerificationResult,
    SelfVerificationScores,
    StepResult,
    StepScore,
    StepScores,
    TemplateInfo,
    Timings,
    Usage,
    Vote,
)
from assay.clients.self_verification import TurnScore
from assay.clients.types import Fault
from assay.clients.verdicts import Verdict
from assay.rpc.reasons import Reason

_SCORING = {number: name for name, number in SCORING.items()}
_SPLITTING = {number: name for name, number in SPLITTING.items()}
_VERDICTS: dict[int, Verdict] = {
    process_pb2.SELF_VERDICT_CORRECT: "correct",
    process_pb2.SELF_VERDICT_WRONG: "wrong",
    process_pb2.SELF_VERDICT_UNPARSED: "unparsed",
}
J = TypeVar("J")


class _Senseless(Exception):
    """A result that no server should send."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def judge_result(sent: judge_pb2.JudgeItem, message: judge_pb2.JudgeResult) -> JudgeResult:
    """Reads what came of a response."""
    del sent
    return _read(message, "judgement", _judgement)


def pair_result(sent: judge_pb2.PairItem, message: judge_pb2.PairResult) -> PairResult:
    """Reads what came of a pair."""
    del sent
    return _read(message, "judgement", _pair_judgement)


def group_result(sent: judge_pb2.GroupItem, message: judge_pb2.GroupResult) -> GroupResult:
    """Reads what came of a group."""
    return _read(message, "ranking", lambda result: _ranking(result, len(sent.responses)))


def step_result(sent: process_pb2.StepItem, message: process_pb2.StepResult) -> StepResult:
    """Reads what came of a response that was scored by steps."""
    return _read(message, "scores", lambda result: _step_scores(result, len(sent.response)))


def self_verification_result(
    sent: process_pb2.SelfVerificationItem, message: process_pb2.SelfVerificationResult
) -> SelfVerificationResult:
    """Reads what came of a dialogue."""
    return _read(message, "scores", lambda result: _turn_scores(result, len(sent.policy_turns)))


def _read(message: Any, field: str, read: Callable[[Any], J]) -> J | Fault:
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    if kind != field:
        return make_fault(
            Reason.MISSING_RESULT, f"the server answered with neither {field} nor fault"
        )
    try:
        return read(message)
    except _Senseless as error:
        return make_fault(error.reason, f"{error}; report it to whoever runs the server")


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise _Senseless(Reason.SCORE_NOT_FINITE, f"the server sent {value} as {name}")
    return value


def _ratio(name: str, value: float) -> float:
    if not 0 <= _finite(name, value) <= 1:
        raise _Senseless(Reason.INTERNAL, f"the server sent {value} as {name}, not in [0, 1]")
    return value


def _error_of(message: judge_pb2.ModelJudgement | judge_pb2.PairJudgement) -> float | None:
    if not message.HasField("standard_error"):
        return None
    return _finite("standard_error", message.standard_error)


def _judgement(message: judge_pb2.JudgeResult) -> ModelJudgement:
    found = message.judgement
    return ModelJudgement(
        score=_finite("score", found.score),
        standard_error=_error_of(found),
        votes=tuple(Vote(_ratio("vote", vote.value), vote.text) for vote in found.votes),
        unparsed_votes=found.unparsed_votes,
        rationale=found.rationale,
        truncated=found.candidate_truncated,
        judge=_judge(found.judge),
        usage=_usage(found.usage),
        timings=_timings(message.timings),
    )


def _pair_judgement(message: judge_pb2.PairResult) -> PairJudgement:
    found = message.judgement
    return PairJudgement(
        win_probability=_ratio("win_probability", found.win_probability),
        forward=_ratio("forward_probability", found.forward_probability),
        reverse=_ratio("reverse_probability", found.reverse_probability),
        order_gap=_ratio("order_gap", found.order_gap),
        standard_error=_error_of(found),
        unparsed_votes=found.unparsed_votes,
        rationale=found.rationale,
        truncated=found.candidate_truncated,
        judge=_judge(found.judge),
        usage=_usage(found.usage),
        timings=_timings(message.timings),
    )


def _ranking(message: judge_pb2.GroupResult, count: int) -> GroupRanking:
    found = message.ranking
    for name, values in (("scores", found.scores), ("order_gaps", found.order_gaps)):
        if len(values) != count:
            text = f"the server sent {len(values)} {name} for {count} responses"
            raise _Senseless(Reason.INTERNAL, text)
    return GroupRanking(
        scores=tuple(_ratio("score", value) for value in found.scores),
        order_gaps=tuple(_ratio("order_gap", value) for value in found.order_gaps),
        judge=_judge(found.judge),
        usage=_usage(found.usage),
        timings=_timings(message.timings),
    )


def _step_scores(message: process_pb2.StepResult, length: int) -> StepScores:
    found = message.scores
    steps = tuple(
        StepScore(
            start=step.range.start,
            end=step.range.end,
            score=_ratio("step's score", step.score) if step.HasField("score") else None,
            critique=step.critique,
        )
        for step in found.steps
    )
    _check_spans(steps, length)
    first = found.first_error_step if found.HasField("first_error_step") else None
    if first is not None and not 0 <= first < len(steps):
        raise _Senseless(Reason.INTERNAL, f"the server sent {first} as first error of {len(steps)}")
    return StepScores(
        steps=steps,
        aggregate=_ratio("aggregate", found.aggregate),
        passed=found.passed,
        error_threshold=_ratio("error_threshold", found.error_threshold),
        first_error=first,
        unparsed_votes=found.unparsed_votes,
        judge=JudgeRef(found.model, found.model_revision),
        usage=_usage(found.usage),
        timings=_timings(message.timings),
    )


def _check_spans(steps: Iterable[StepScore], length: int) -> None:
    """Steps cover the response without overlap, in order."""
    edges = [0, *(edge for step in steps for edge in (step.start, step.end)), length]
    joined = all(end == start for end, start in zip(edges[::2], edges[1::2], strict=True))
    if not joined or any(end < start for start, end in pairwise(edges)):
        raise _Senseless(Reason.INTERNAL, "the server sent steps that do not cover the response")


def _turn_scores(message: process_pb2.SelfVerificationResult, count: int) -> SelfVerificationScores:
    found = message.scores
    if len(found.turns) != count:
        text = f"the server sent {len(found.turns)} scores for {count} turns"
        raise _Senseless(Reason.INTERNAL, text)
    for index, turn in enumerate(found.turns):
        verified = turn.strict_verdict in _VERDICTS and turn.tolerant_verdict in _VERDICTS
        if not (verified if index % 2 else turn.HasField("attempt_correct")):
            what = "a verdict" if index % 2 else "whether the attempt is right"
            raise _Senseless(Reason.INTERNAL, f"the server sent turn {index} without {what}")
    return SelfVerificationScores(
        turns=tuple(_turn(turn) for turn in found.turns),
        revision_due=found.revision_due,
        timings=_timings(message.timings),
    )


def _turn(message: process_pb2.TurnScore) -> TurnScore:
    asked = message.HasField("correct_probability")
    return TurnScore(
        reward=_finite("reward", message.reward),
        attempt_correct=message.attempt_correct if message.HasField("attempt_correct") else None,
        strict_verdict=_VERDICTS.get(message.strict_verdict),
        tolerant_verdict=_VERDICTS.get(message.tolerant_verdict),
        correct_probability=(
            _ratio("correct_probability", message.correct_probability) if asked else None
        ),
    )


def _judge(message: judge_pb2.JudgeRef) -> JudgeRef:
    return JudgeRef(message.model, message.model_revision, message.template)


def _usage(message: common_pb2.TokenUsage) -> Usage:
    return Usage(message.prompt_tokens, message.cached_prompt_tokens, message.completion_tokens)


def _timings(message: common_pb2.Timings) -> Timings:
    return Timings(message.queue.ToNanoseconds() / 1e9, message.execution.ToNanoseconds() / 1e9)


def server_info(
    judges: judge_pb2.ListJudgeModelsResponse, processes: process_pb2.ListProcessModelsResponse
) -> JudgeServerInfo:
    """Reads what a judge service serves; the stricter of the two services' limits hold."""
    both = (limits_from_proto(judges.limits), limits_from_proto(processes.limits))
    return JudgeServerInfo(
        models=tuple(_model(info) for info in judges.models),
        process_models=tuple(_process_model(info) for info in processes.models),
        templates=tuple(TemplateInfo(t.name, t.description, t.kind) for t in judges.templates),
        max_items=min(limits.max_items for limits in both),
        max_message_bytes=min(limits.max_message_bytes for limits in both),
        max_item_bytes=min(limits.max_item_bytes for limits in both),
        version=judges.server_version,
    )


def _model(message: judge_pb2.JudgeModelInfo) -> JudgeModelInfo:
    return JudgeModelInfo(
        name=message.name,
        revision=message.revision,
        engine=message.engine,
        scoring_modes=tuple(_names(message.scoring_modes, _SCORING)),
        context_tokens=message.context_tokens,
        deterministic=message.deterministic,
        is_default=message.is_default,
    )


def _process_model(message: process_pb2.ProcessModelInfo) -> ProcessModelInfo:
    return ProcessModelInfo(
        name=message.name,
        revision=message.revision,
        engine=message.engine,
        default_splitting=_SPLITTING.get(message.default_splitting, "auto"),
        generative=message.generative,
        context_tokens=message.context_tokens,
    )


def _names(numbers: Iterable[Any], names: Mapping[Any, J]) -> list[J]:
    """The names of an enum's numbers; those of a later version are passed over."""
    return [names[number] for number in numbers if number in names]
