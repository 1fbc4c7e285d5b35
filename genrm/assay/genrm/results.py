"""From what judges made of items to the messages of the contract. Pure."""

from __future__ import annotations

from typing import Any

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.types import (
    GroupRanking,
    JudgeRef,
    ModelJudgement,
    PairJudgement,
    StepScores,
    Usage,
)
from assay.genrm.domain import CRITIQUE_CHARS, RATIONALE_CHARS
from assay.genrm.engines.base import ModelInfo


def fill_judgement(
    result: judge_pb2.JudgeResult, judgement: ModelJudgement, model: ModelInfo
) -> None:
    """Writes what a model thinks of one response."""
    message = result.judgement
    message.score = judgement.score
    if judgement.standard_error is not None:
        message.standard_error = judgement.standard_error
    for vote in judgement.votes:
        message.votes.add(value=vote.value, text=_text(vote.text, RATIONALE_CHARS))
    message.rationale = _text(judgement.rationale, RATIONALE_CHARS)
    message.candidate_truncated = judgement.truncated
    message.unparsed_votes = judgement.unparsed_votes
    _fill_mass(message, judgement.verdict_mass)
    _fill_judge(message.judge, judgement.judge, model)
    _fill_usage(message.usage, judgement.usage)


def fill_pair(result: judge_pb2.PairResult, judgement: PairJudgement, model: ModelInfo) -> None:
    """Writes what a model thinks of a pair."""
    message = result.judgement
    message.win_probability = judgement.win_probability
    message.forward_probability = judgement.forward
    message.reverse_probability = judgement.reverse
    message.order_gap = judgement.order_gap
    if judgement.standard_error is not None:
        message.standard_error = judgement.standard_error
    message.rationale = _text(judgement.rationale, RATIONALE_CHARS)
    message.candidate_truncated = judgement.truncated
    message.unparsed_votes = judgement.unparsed_votes
    _fill_mass(message, judgement.verdict_mass)
    _fill_judge(message.judge, judgement.judge, model)
    _fill_usage(message.usage, judgement.usage)


def fill_ranking(result: judge_pb2.GroupResult, ranking: GroupRanking, model: ModelInfo) -> None:
    """Writes how the samples of a group stand."""
    message = result.ranking
    message.scores.extend(ranking.scores)
    message.order_gaps.extend(ranking.order_gaps)
    message.candidates_truncated.extend(ranking.truncated)
    _fill_mass(message, ranking.verdict_mass)
    _fill_judge(message.judge, ranking.judge, model)
    _fill_usage(message.usage, ranking.usage)


def fill_steps(result: process_pb2.StepResult, scores: StepScores, model: ModelInfo) -> None:
    """Writes the steps of a response and their scores."""
    message = result.scores
    for step in scores.steps:
        added = message.steps.add(critique=_text(step.critique, CRITIQUE_CHARS))
        added.range.start, added.range.end = step.start, step.end
        if step.score is not None:
            added.score = step.score
    message.aggregate = scores.aggregate
    if scores.first_error is not None:
        message.first_error_step = scores.first_error
    message.model = model.name
    message.model_revision = model.revision
    message.passed = scores.passed
    message.error_threshold = scores.error_threshold
    message.unparsed_votes = scores.unparsed_votes
    _fill_mass(message, scores.verdict_mass)
    _fill_usage(message.usage, scores.usage)


def strip_texts(result: Any) -> None:
    """Leaves out what a result holds for people only."""
    kind = result.WhichOneof("outcome")
    if kind == "judgement":
        result.judgement.ClearField("rationale")
        for vote in getattr(result.judgement, "votes", ()):
            vote.ClearField("text")
    elif kind == "scores":
        for step in getattr(result.scores, "steps", ()):
            step.ClearField("critique")


def _fill_mass(message: Any, mass: float | None) -> None:
    if mass is not None:
        message.verdict_mass = mass


def _fill_judge(message: judge_pb2.JudgeRef, judge: JudgeRef, model: ModelInfo) -> None:
    message.model = model.name
    message.model_revision = model.revision
    message.template = judge.template


def _fill_usage(message: common_pb2.TokenUsage, usage: Usage) -> None:
    message.prompt_tokens = usage.prompt
    message.cached_prompt_tokens = usage.cached
    message.completion_tokens = usage.completion


def _text(text: str, chars: int) -> str:
    """At most so many characters, as UTF-8 can carry them."""
    return text[:chars].encode("utf-8", "replace").decode()
