"""From what judges made of items to the messages of the contract. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.rubrics import CriterionResult, RubricJudgement
from assay.clients.judging.types import (
    GroupRanking,
    JudgeRef,
    ModelJudgement,
    Opinion,
    PairJudgement,
    StepScores,
    Usage,
)
from assay.genrm.convert import ORDERS
from assay.genrm.domain import CRITIQUE_CHARS, RATIONALE_CHARS
from assay.genrm.engines.base import ModelInfo
from assay.kit.batch.answers import fill_fault
from assay.kit.faults import ItemFault

_ORDERS = {word: judge_pb2.CriterionOrder.ValueType(number) for number, word in ORDERS.items()}


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
    _fill_measures(message, judgement)
    _fill_judge(message.judge, judgement.judge, model)
    _fill_usage(message.usage, judgement.usage)
    _fill_opinions(message, judgement.opinions, judgement.disagreement)


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
    _fill_measures(message, judgement)
    _fill_judge(message.judge, judgement.judge, model)
    _fill_usage(message.usage, judgement.usage)


def fill_ranking(result: judge_pb2.GroupResult, ranking: GroupRanking, model: ModelInfo) -> None:
    """Writes how the samples of a group stand."""
    message = result.ranking
    message.scores.extend(ranking.scores)
    message.order_gaps.extend(ranking.order_gaps)
    message.candidates_truncated.extend(ranking.truncated)
    message.letter_gaps.extend(ranking.letter_gaps)
    message.comparisons = ranking.comparisons
    message.comparisons_lost = ranking.comparisons_lost
    if ranking.verdict_mass is not None:
        message.verdict_mass = ranking.verdict_mass
    _fill_judge(message.judge, ranking.judge, model)
    _fill_usage(message.usage, ranking.usage)


def fill_rubric(
    result: judge_pb2.RubricResult, judgement: RubricJudgement, model: ModelInfo
) -> None:
    """Writes what a response is worth by its rubric."""
    message = result.judgement
    message.score = judgement.score
    message.least, message.greatest = judgement.least, judgement.greatest
    for one in judgement.criteria:
        _fill_criterion(message.criteria.add(), one)
    message.order = _ORDERS[judgement.order]
    message.candidate_truncated = judgement.truncated
    _fill_judge(message.judge, judgement.judge, model)
    _fill_usage(message.usage, judgement.usage)
    if judgement.verdict_mass is not None:
        message.verdict_mass = judgement.verdict_mass
    if judgement.disagreement is not None:
        message.disagreement = judgement.disagreement


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
    if scores.verdict_mass is not None:
        message.verdict_mass = scores.verdict_mass
    _fill_usage(message.usage, scores.usage)


def strip_texts(result: Any) -> None:
    """Leaves out what a result holds for people only."""
    kind = result.WhichOneof("outcome")
    if isinstance(result, judge_pb2.RubricResult):
        for criterion in result.judgement.criteria:
            criterion.ClearField("opinions")
    elif kind == "judgement":
        result.judgement.ClearField("rationale")
        for vote in getattr(result.judgement, "votes", ()):
            vote.ClearField("text")
    elif kind == "scores":
        for step in getattr(result.scores, "steps", ()):
            step.ClearField("critique")


def _fill_measures(message: Any, judgement: ModelJudgement | PairJudgement) -> None:
    if judgement.verdict_mass is not None:
        message.verdict_mass = judgement.verdict_mass
    if judgement.letter_gap is not None:
        message.letter_gap = judgement.letter_gap


def _fill_judge(message: judge_pb2.JudgeRef, judge: JudgeRef, model: ModelInfo) -> None:
    message.model = model.name
    message.model_revision = model.revision
    message.template = judge.template


def _fill_usage(message: common_pb2.TokenUsage, usage: Usage) -> None:
    message.prompt_tokens = usage.prompt
    message.cached_prompt_tokens = usage.cached
    message.completion_tokens = usage.completion
    message.engine.FromNanoseconds(round(usage.engine_s * 1e9))
    message.cost = usage.cost


def _text(text: str, chars: int) -> str:
    """At most so many characters, as UTF-8 can carry them."""
    return text[:chars].encode("utf-8", "replace").decode()


def _fill_opinions(
    message: judge_pb2.ModelJudgement | judge_pb2.CriterionResult,
    opinions: Sequence[Opinion],
    disagreement: float | None,
) -> None:
    """Writes what each model said, and how far they are apart."""
    for one in opinions:
        added = message.opinions.add()
        _fill_ref(added.judge, one.judge)
        if isinstance(one.fault, ItemFault):
            fill_fault(added, one.fault)
        elif one.score is not None:
            added.score = one.score
    if disagreement is not None:
        message.disagreement = disagreement


def _fill_criterion(message: judge_pb2.CriterionResult, found: CriterionResult) -> None:
    message.id, message.weight = found.id, found.weight
    if isinstance(found.fault, ItemFault):
        fill_fault(message, found.fault)
    elif found.score is not None:
        message.score = found.score
    if found.evidence is not None:
        message.evidence.start, message.evidence.end = found.evidence
    if found.judge.model:
        _fill_ref(message.judge, found.judge)
    if found.verdict_mass is not None:
        message.verdict_mass = found.verdict_mass
    _fill_opinions(message, found.opinions, found.disagreement)


def _fill_ref(message: judge_pb2.JudgeRef, judge: JudgeRef) -> None:
    message.model, message.model_revision = judge.model, judge.revision
    message.template = judge.template
