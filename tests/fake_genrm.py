"""A genrm that is a function with fault knobs, behind the real client; items to ask it about."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.kit.errors import make_status, refuse
from assay.kit.reasons import Reason
from assay.reward_server import border
from assay.reward_server.domain import (
    Candidate,
    Fault,
    Judgement,
    Message,
    ParameterValue,
    VerifierItem,
)

PROMPT = (Message("user", "What is 6 * 7?"),)
JUDGE = judge_pb2.JudgeRef(model="tiny", model_revision="abc", template="correctness@1")
TOO_LONG = "x" * 99
RAMBLING = "and so on, and so on, and so on"


class FakeGenrm:
    """Judges by looking for 42; longer than 98 characters does not fit into its context."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.scalar = False
        self.fails = False
        self.closed = 0
        self.gap = 0.1
        self.letter_gap: float | None = None

    def moved(self, settings: judge_pb2.JudgeSettings, result: Any) -> bool:
        """Whether the letters moved the verdict too far; writes the fault, or the gap."""
        if self.letter_gap is None:
            return False
        if settings.HasField("max_letter_gap") and self.letter_gap > settings.max_letter_gap:
            facts = {"letter_gap": str(self.letter_gap)}
            result.fault.CopyFrom(make_status(Reason.LETTER_GAP, "moves", metadata=facts))
            return True
        result.judgement.letter_gap = self.letter_gap
        return False

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        name = method.rpartition(".")[2]
        assert timeout_s > 0
        limits = common_pb2.BatchLimits(max_items=64, max_message_bytes=2**22, max_item_bytes=2**20)
        if name == "ListJudgeModels":
            return judge_pb2.ListJudgeModelsResponse(limits=limits)
        if name == "ListProcessModels":
            return process_pb2.ListProcessModelsResponse(limits=limits)
        if self.fails:
            raise refuse(Reason.INTERNAL, "the fake is told to fail")
        self.requests.append((name, request))
        await asyncio.sleep(0)
        return getattr(self, name)(request)

    def JudgeResponses(
        self, request: judge_pb2.JudgeResponsesRequest
    ) -> judge_pb2.JudgeResponsesResponse:
        response = judge_pb2.JudgeResponsesResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            if item.response == TOO_LONG:
                result.fault.CopyFrom(make_status(Reason.CONTEXT_TOO_LONG, "too long"))
                continue
            if item.response == "mumble":
                facts = {"raw_text": "I think\nthat it is " + "so " * 700}
                result.fault.CopyFrom(make_status(Reason.JUDGE_UNPARSED, "?", metadata=facts))
                continue
            if item.response == "\u200b":
                result.fault.CopyFrom(make_status(Reason.MISSING_RESPONSE, "blank"))
                continue
            if self.moved(request.settings, result):
                continue
            result.judgement.score = 0.9 if "42" in item.response else 0.2
            result.judgement.candidate_truncated = RAMBLING in item.response
            result.judgement.verdict_mass = 0.75
            result.judgement.judge.CopyFrom(JUDGE)
            result.timings.queue.nanos, result.timings.execution.nanos = 5_000_000, 7_000_000
            if self.scalar:
                result.judgement.score, result.judgement.judge.template = 250.0, ""
            if request.settings.votes:
                result.judgement.standard_error = 0.05
                result.judgement.unparsed_votes = 1
                result.judgement.votes.add(value=1.0, text="yes")
                result.judgement.rationale = "It is right."
            result.judgement.usage.prompt_tokens = 100
            result.judgement.usage.cached_prompt_tokens = 80
            result.judgement.usage.cost = 0.5
        return response

    def JudgePairs(self, request: judge_pb2.JudgePairsRequest) -> judge_pb2.JudgePairsResponse:
        response = judge_pb2.JudgePairsResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            if request.HasField("max_order_gap") and self.gap > request.max_order_gap:
                facts = {"order_gap": str(self.gap)}
                result.fault.CopyFrom(make_status(Reason.ORDER_GAP, "wide", metadata=facts))
                continue
            if self.moved(request.settings, result):
                continue
            won = 0.5 if item.response_a == item.response_b else float("42" in item.response_a)
            result.judgement.win_probability = won
            result.judgement.candidate_truncated = RAMBLING in item.response_a + item.response_b
            result.judgement.forward_probability = min(1.0, won + self.gap / 2)
            result.judgement.reverse_probability = max(0.0, won - self.gap / 2)
            result.judgement.order_gap = self.gap
            result.judgement.judge.CopyFrom(JUDGE)
        return response

    def JudgeGroups(self, request: judge_pb2.JudgeGroupsRequest) -> judge_pb2.JudgeGroupsResponse:
        response = judge_pb2.JudgeGroupsResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            right = [float("42" in text) for text in item.responses]
            for index, mine in enumerate(right):
                others = right[:index] + right[index + 1 :]
                held = [0.5] if item.anchor_response else others
                score = sum((mine - other + 1) / 2 for other in held) / len(held)
                result.ranking.scores.append(score)
                result.ranking.order_gaps.append(0.25)
                result.ranking.candidates_truncated.append(RAMBLING in item.responses[index])
            result.ranking.judge.CopyFrom(JUDGE)
            result.timings.execution.nanos = 9_000_000
        return response

    def ScoreSteps(self, request: process_pb2.ScoreStepsRequest) -> process_pb2.ScoreStepsResponse:
        response = process_pb2.ScoreStepsResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            if item.response == TOO_LONG:
                result.fault.CopyFrom(make_status(Reason.CONTEXT_TOO_LONG, "too long"))
                continue
            scores, at, values = result.scores, 0, []
            for number, line in enumerate(item.response.splitlines(keepends=True)):
                step = scores.steps.add()
                step.range.start, step.range.end = at, at + len(line)
                at += len(line)
                if not line.startswith("#"):
                    step.score = 0.25 if "wrong" in line else 0.75
                    values.append(step.score)
                    if step.score < 0.5 and not scores.HasField("first_error_step"):
                        scores.first_error_step = number
            scores.aggregate = min(values)
            scores.error_threshold = 0.5
            scores.passed = scores.aggregate >= 0.5
            scores.model, scores.model_revision = "steps", "def"
        return response

    async def close(self) -> None:
        self.closed += 1


def make(verifier: Any, response: str, /, *, group_id: str = "", **more: Any) -> VerifierItem:
    """An item for a verifier; what is none of an item's fields is a parameter."""
    fields = {name: more.pop(name) for name in ("references", "anchor", "data") if name in more}
    given: dict[str, ParameterValue] = more
    return VerifierItem(
        Candidate(response),
        prompt=PROMPT,
        parameters=verifier.spec.complete(given),
        group_id=group_id,
        **fields,
    )


async def judge(verifier: Any, *items: VerifierItem) -> list[Judgement | Fault]:
    found = await border.judge_all(verifier, items, 5.0)
    outcomes = [one.outcome for one in found]
    for outcome in outcomes:
        if isinstance(outcome, Judgement):
            total = math.fsum(part.weight * part.score for part in outcome.components)
            assert total == pytest.approx(outcome.reward)
            assert outcome.explanation
    return outcomes


def judged(outcome: Judgement | Fault) -> tuple[float, str]:
    assert isinstance(outcome, Judgement), outcome
    return outcome.reward, outcome.verdict


def reasons(outcomes: list[Judgement | Fault]) -> list[str]:
    return [one.reason if isinstance(one, Fault) else one.verdict for one in outcomes]
