"""Classes by a model: votes become classes, classes rewards, and what is no class a fault.

The client is the real one; genrm answers with the votes that a response is told to get.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging import AsyncJudgeClient
from assay.genrm.domain import CandidateResponse, ResolvedJudgeSettings
from assay.genrm.engines.base import Answer, Request, Write, Written
from assay.genrm.judges.pointwise import judge_response
from assay.genrm.templates import load_templates
from assay.reward_server import border
from assay.reward_server.domain import (
    Candidate,
    Fault,
    Judgement,
    Message,
    ParameterValue,
    VerifierItem,
)
from assay.reward_server.verifiers.judges.classes import AttemptVerifier, RefusalVerifier
from genrm_judging_support import QUESTION, TOKENS, WRITER, drive, text_of

VOTES = {
    "right": [1.0],
    "wrong": [0.0],
    "neither": [0.5],
    "mostly wrong": [0.0, 1.0, 0.0],
    "right or not": [1.0, 0.5],
    "strange": [0.25],
    "none": [],
}


class Genrm:
    """Gives a response the votes that its name has."""

    def __init__(self) -> None:
        self.asked: list[judge_pb2.JudgeResponsesRequest] = []

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        limits = common_pb2.BatchLimits(max_items=64, max_message_bytes=2**22, max_item_bytes=2**20)
        if method.endswith("ListJudgeModels"):
            return judge_pb2.ListJudgeModelsResponse(limits=limits)
        if method.endswith("ListProcessModels"):
            return process_pb2.ListProcessModelsResponse(limits=limits)
        self.asked.append(request)
        response = judge_pb2.JudgeResponsesResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            result.judgement.judge.template = request.settings.template
            for value in VOTES[item.response]:
                result.judgement.votes.add(value=value, text="A")
        return response

    async def close(self) -> None:
        pass


@pytest.fixture
def genrm() -> Genrm:
    return Genrm()


async def judge(
    genrm: Genrm,
    kind: Callable[[AsyncJudgeClient], AttemptVerifier | RefusalVerifier],
    rows: list[tuple[str, str]],
    **given: ParameterValue,
) -> list[Judgement | Fault]:
    verifier = kind(AsyncJudgeClient(transport=genrm))
    items = [
        VerifierItem(
            Candidate(response),
            references=(reference,),
            prompt=(Message("user", "Who?"),),
            parameters=verifier.spec.complete(given),
        )
        for response, reference in rows
    ]
    return [found.outcome for found in await border.judge_all(verifier, items, 5.0)]


def told(outcome: Judgement | Fault) -> tuple[str, float]:
    if isinstance(outcome, Fault):
        return outcome.reason, 0.0
    return outcome.verdict, outcome.reward


async def test_attempts(genrm: Genrm) -> None:
    rows = [(name, "42") for name in VOTES] + [(" ", "42"), ("right", " ")]
    outcomes = await judge(genrm, AttemptVerifier, rows, abstained=0.25, wrong=-1.0, votes=3)
    assert list(map(told, outcomes)) == [
        ("correct", 1.0),
        ("incorrect", -1.0),
        ("not-attempted", 0.25),
        ("incorrect", -1.0),
        ("not-attempted", 0.25),  # of a tie what earns less
        ("INVALID_PARAMETER", 0.0),
        ("INVALID_PARAMETER", 0.0),
        ("unparsed", -1.0),
        ("UNUSABLE_REFERENCE", 0.0),
    ]
    mostly = outcomes[3]
    assert isinstance(mostly, Judgement)
    shares = {part.name: part.score for part in mostly.components}
    assert shares["incorrect"] == pytest.approx(2 / 3)
    [request] = genrm.asked
    assert request.settings.template == "attempt"
    assert request.settings.scoring_mode == judge_pb2.SCORING_MODE_VOTES
    assert request.items[0].ground_truth == "42"


async def test_refusals(genrm: Genrm) -> None:
    names = ("right", "neither", "wrong")  # full compliance, partial refusal, full refusal
    rows = [(name, kind) for kind in ("safe", "harmful", "both") for name in names]
    outcomes = await judge(genrm, RefusalVerifier, rows, partial=0.25)
    assert list(map(told, outcomes)) == [
        *[("correct", 1.0), ("partial", 0.25), ("incorrect", 0.0)],
        *[("incorrect", 0.0), ("partial", 0.25), ("correct", 1.0)],
        *[("UNUSABLE_REFERENCE", 0.0)] * 3,
    ]
    [request] = genrm.asked
    assert request.settings.template == "refusal"
    assert request.items[0].WhichOneof("against") is None


async def test_a_thought_is_not_shown(genrm: Genrm) -> None:
    rows = [("<think>wrong</think>right", "42"), ("<think>right", "42"), ("<think>a</think>", "42")]
    outcomes = await judge(genrm, AttemptVerifier, rows)
    assert [told(one)[0] for one in outcomes[:1]] == ["correct"]
    assert {item.response for request in genrm.asked for item in request.items} == {"right"}
    assert [told(one)[0] for one in outcomes[1:]] == ["unparsed", "unparsed"]


@pytest.mark.parametrize(
    ("meaning", "form", "value"),
    [
        ("right", "{}", 1.0),
        ("wrong", " {}.", 0.0),
        ("no attempt", "Grade: {}", 0.5),
        ("right", "{}: correct", None),
    ],
)
def test_a_letter_is_a_vote(meaning: str, form: str, value: float | None) -> None:
    def letter(prompt: str, meaning: str) -> str:
        [found] = re.findall(rf"^([A-Z]): {meaning}$", prompt, re.MULTILINE)
        return str(found)

    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        seen.append(text_of(request.prompt))
        first = form.format(letter(seen[-1], meaning))
        other = " " + letter(seen[-1], "no attempt")
        return Written(first if request.seed in (0, 2) else other, "stop", TOKENS)

    seen: list[str] = []
    settings = ResolvedJudgeSettings("attempt", "votes", votes=4, temperature=1.0)
    item = CandidateResponse(QUESTION, "It is four.", ground_truth="4")
    judgement, _ = drive(judge_response(item, settings, WRITER, load_templates()), answer)
    side = [0.5] if value is None else [value, 0.5]
    assert [vote.value for vote in judgement.votes] == 2 * side  # each assignment of letters
    assert seen[0].endswith("Grade:")
    assert "REFERENCE ANSWER" in seen[0]
