"""The verifier `rubric`: rows become questions, criteria become components, faults stay faults.

The client is the real one; genrm is a function that answers its messages.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging import AsyncJudgeClient, Criterion, read_rubric
from assay.kit.errors import make_status
from assay.kit.reasons import Reason
from assay.reward_server import border
from assay.reward_server.domain import Candidate, Fault, Judgement, Message, VerifierItem
from assay.reward_server.verifiers.judges.rubric import RubricVerifier

PROMPT = (Message("user", "What is 6 * 7?"),)
OWN = [
    {"id": "number", "text": "Gives a number.", "weight": 3},
    {"id": "why", "text": "Says why.", "weight": 1, "kind": "graded", "evidence": True},
    {"id": "rude", "text": "Insults somebody.", "weight": -2},
]
HEALTH = [
    {"criterion": "Mentions the risk.", "points": 5, "tags": ["axis:accuracy"]},
    {"criterion": "Promises a cure.", "points": -4, "tags": []},
]
RAR = [
    {"title": "Names the Organ", "description": "Names the organ.", "weight": 5},
    {"title": "Names the Organ", "description": "Says what it does.", "weight": 3},
]


class FakeRubrics:
    """Meets a criterion by 0.75, unless told otherwise by its text; a text is a fault's reason."""

    def __init__(self) -> None:
        self.requests: list[judge_pb2.JudgeRubricsRequest] = []
        self.said: dict[str, float | str] = {}
        self.whole = ""

    async def call(self, method: str, request: Any, *, timeout_s: float) -> Any:
        name = method.rpartition(".")[2]
        assert timeout_s > 0
        limits = common_pb2.BatchLimits(max_items=64, max_message_bytes=2**22, max_item_bytes=2**20)
        if name == "ListJudgeModels":
            return judge_pb2.ListJudgeModelsResponse(limits=limits)
        if name == "ListProcessModels":
            return process_pb2.ListProcessModelsResponse(limits=limits)
        assert name == "JudgeRubrics"
        self.requests.append(request)
        response = judge_pb2.JudgeRubricsResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            if self.whole:
                result.fault.CopyFrom(make_status(self.whole, "the fake is told to fail"))
                continue
            made = result.judgement
            made.judge.model = "tiny"
            earned = whole = 0.0
            for one in item.rubric.criteria:
                said = self.said.get(one.text, 0.75)
                found = made.criteria.add(id=one.id, weight=one.weight)
                if isinstance(said, str):
                    found.fault.CopyFrom(make_status(said, "unreadable"))
                elif not math.isnan(said):
                    found.score = said
                    earned += said * one.weight
                    whole += max(0.0, one.weight)
            made.score = min(1.0, max(0.0, earned / whole))
            made.least = made.greatest = made.score
            if request.rubric_settings.HasField("gate"):
                made.score = float(made.score >= request.rubric_settings.gate)
            made.verdict_mass = 0.9
        return response

    async def close(self) -> None:
        """Nothing to do."""


@pytest.fixture
def genrm() -> FakeRubrics:
    return FakeRubrics()


@pytest.fixture
async def verifier(genrm: FakeRubrics) -> RubricVerifier:
    client = AsyncJudgeClient("127.0.0.1:1")
    client._transport = genrm  # type: ignore[assignment]  # the wire is the seam
    return RubricVerifier(client)


def item(data: Any = None, response: str = "42", **given: Any) -> VerifierItem:
    """An item with a rubric as data, or as references where it is a tuple of texts."""
    parameters = RubricVerifier(None).spec.complete(given)  # type: ignore[arg-type]
    held = {"references": data} if isinstance(data, tuple) else {"data": data}
    return VerifierItem(Candidate(response), prompt=PROMPT, parameters=parameters, **held)


async def judge(verifier: RubricVerifier, *items: VerifierItem) -> list[Judgement | Fault]:
    outcomes = [one.outcome for one in await border.judge_all(verifier, items, 5.0)]
    for outcome in outcomes:
        if isinstance(outcome, Judgement):
            total = math.fsum(part.weight * part.score for part in outcome.components)
            assert total == pytest.approx(outcome.reward)
    return outcomes


def parts(outcome: Judgement | Fault) -> dict[str, tuple[float, float]]:
    assert isinstance(outcome, Judgement), outcome
    return {part.name: (part.score, part.weight) for part in outcome.components}


@pytest.mark.asyncio
async def test_each_criterion_is_a_component(verifier: RubricVerifier, genrm: FakeRubrics) -> None:
    genrm.said = {"Gives a number.": 1.0, "Insults somebody.": 0.5}
    [found] = await judge(verifier, item(OWN))
    assert isinstance(found, Judgement)
    assert found.reward == pytest.approx((3 + 0.75 - 1) / 4)
    assert found.verdict == "correct"
    assert parts(found) == {
        "criterion-number": (1.0, 0.75),
        "criterion-why": (0.75, 0.25),
        "criterion-rude": (0.5, -0.5),
        "verdict-mass": (0.9, 0.0),
    }
    assert "number 1; why 0.75; rude 0.5" in found.explanation
    sent = genrm.requests[0].items[0]
    assert [one.id for one in sent.rubric.criteria] == ["number", "why", "rude"]
    assert sent.rubric.criteria[1].kind == judge_pb2.CRITERION_KIND_GRADED
    assert sent.rubric.criteria[1].evidence_required


@pytest.mark.asyncio
async def test_clipping_has_a_component(verifier: RubricVerifier, genrm: FakeRubrics) -> None:
    genrm.said = {"Gives a number.": 0.0, "Says why.": 0.0, "Insults somebody.": 1.0}
    [found] = await judge(verifier, item(OWN))
    assert isinstance(found, Judgement)
    assert (found.reward, found.verdict) == (0.0, "incorrect")
    assert parts(found)["clipped"] == (0.5, 1.0)


@pytest.mark.asyncio
async def test_an_unread_criterion_is_marked_and_has_no_score(
    verifier: RubricVerifier, genrm: FakeRubrics
) -> None:
    genrm.said = {"Gives a number.": Reason.LOW_VERDICT_MASS}
    [found] = await judge(verifier, item(OWN, missing="leave-out"))
    assert isinstance(found, Judgement)
    assert parts(found)["unread-number"] == (1.0, 0.0)
    assert "criterion-number" not in parts(found)
    assert parts(found)["criterion-why"] == (0.75, 1.0)
    assert "number unread (LOW_VERDICT_MASS)" in found.explanation
    assert genrm.requests[0].rubric_settings.missing == judge_pb2.MISSING_CRITERION_LEAVE_OUT


@pytest.mark.asyncio
async def test_a_gate_decides_and_unasked_criteria_are_no_components(
    verifier: RubricVerifier, genrm: FakeRubrics
) -> None:
    genrm.said = {"Says why.": math.nan, "Insults somebody.": math.nan, "Gives a number.": 1.0}
    [found] = await judge(verifier, item(OWN, gate=0.5))
    assert isinstance(found, Judgement)
    assert (found.reward, found.verdict) == (1.0, "correct")
    held = parts(found)
    assert held["gate"] == (1.0, 1.0)
    assert held["criterion-number"] == (1.0, 0.0)
    assert "criterion-why" not in held
    assert "why unasked" in found.explanation


@pytest.mark.asyncio
async def test_settings_reach_genrm(verifier: RubricVerifier, genrm: FakeRubrics) -> None:
    given = {
        "models": ("x", "y", "z"),
        "combination": "majority",
        "quorum": 2,
        "order": "criterion-first",
        "compound": "split",
        "low_mass": "votes",
        "overflow": "refuse",
        "seed": 7,
    }
    await judge(verifier, item(OWN, **given))
    request = genrm.requests[0]
    assert list(request.ensemble.models) == ["x", "y", "z"]
    assert request.ensemble.combination == judge_pb2.COMBINATION_MAJORITY
    assert request.ensemble.quorum == 2
    assert request.rubric_settings.order == judge_pb2.CRITERION_ORDER_CRITERION_FIRST
    assert request.rubric_settings.compound == judge_pb2.COMPOUND_CRITERION_SPLIT
    assert not request.rubric_settings.HasField("gate")
    assert request.settings.seed == 7
    await judge(verifier, item(OWN, second_model="large", margin=0.2))
    second = genrm.requests[1]
    assert not second.HasField("ensemble")
    assert (second.rubric_settings.second_model, second.rubric_settings.margin) == ("large", 0.2)


@pytest.mark.asyncio
async def test_items_of_equal_settings_travel_together(
    verifier: RubricVerifier, genrm: FakeRubrics
) -> None:
    items = [item(OWN, response=f"4{n}") for n in range(5)] + [item(OWN, gate=0.5)]
    assert len(await judge(verifier, *items)) == 6
    assert sorted(len(request.items) for request in genrm.requests) == [1, 5]


@pytest.mark.asyncio
async def test_faults_stay_faults(verifier: RubricVerifier, genrm: FakeRubrics) -> None:
    genrm.whole = Reason.JUDGE_UNFIT
    [found] = await judge(verifier, item(OWN))
    assert isinstance(found, Fault)
    assert found.reason == Reason.JUDGE_UNFIT
    genrm.whole = Reason.CONTEXT_TOO_LONG
    [long] = await judge(verifier, item(OWN, response="x" * 99, overflow="overlong"))
    assert isinstance(long, Judgement)
    assert (long.verdict, long.reward) == ("overlong", 0.0)


@pytest.mark.parametrize(
    ("data", "given", "reason", "message"),
    [
        (None, {}, "MISSING_REFERENCE", "no rubric"),
        ([], {}, "UNUSABLE_REFERENCE", "at least one"),
        ({"rubric": []}, {}, "UNUSABLE_REFERENCE", "criteria"),
        (
            [{"text": "x", "wieght": 2}],
            {},
            "UNUSABLE_REFERENCE",
            "criterion 1: there is no 'wieght'",
        ),
        ([{"criterion": "x"}], {}, "UNUSABLE_REFERENCE", "points"),
        ([{"text": "x", "kind": "ternary"}], {}, "UNUSABLE_REFERENCE", "graded"),
        ([{"text": "x", "weight": "2"}], {}, "UNUSABLE_REFERENCE", "no number"),
        (("no json",), {}, "UNUSABLE_REFERENCE", "JSON"),
        (None, {"rubric": "{"}, "INVALID_PARAMETER", "parameter 'rubric'"),
        (OWN, {"models": ("x",)}, "INVALID_PARAMETER", "one model"),
    ],
)
@pytest.mark.asyncio
async def test_wrong_rows_say_what_to_write(  # noqa: PLR0917  # columns of a table
    verifier: RubricVerifier,
    genrm: FakeRubrics,
    data: Any,
    given: dict[str, Any],
    reason: str,
    message: str,
) -> None:
    [found] = await judge(verifier, item(data, **given))
    assert isinstance(found, Fault)
    assert found.reason == reason
    assert message in found.message
    assert not genrm.requests


def test_rows_of_others_are_read_as_they_are() -> None:
    assert read_rubric(HEALTH).criteria == (
        Criterion("c1", "Mentions the risk.", 5.0),
        Criterion("c2", "Promises a cure.", -4.0),
    )
    assert read_rubric(RAR).criteria == (
        Criterion("names-the-organ", "Names the organ.", 5.0),
        Criterion("c2", "Says what it does.", 3.0),
    )
    assert read_rubric({"criteria": ["Is short."]}).criteria == (Criterion("c1", "Is short."),)


@pytest.mark.asyncio
async def test_a_rubric_may_be_texts_json_or_a_parameter(
    verifier: RubricVerifier, genrm: FakeRubrics
) -> None:
    text = json.dumps(OWN)
    await judge(verifier, item((text,)), item(None, rubric=text), item(("Is short.", "Is kind.")))
    ids = [[one.id for one in sent.rubric.criteria] for sent in genrm.requests[0].items]
    assert ids == [["number", "why", "rude"], ["number", "why", "rude"], ["c1", "c2"]]
