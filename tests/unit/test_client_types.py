"""The values of the client, and their way to the wire and back."""

from __future__ import annotations

import pickle

import grpc
import pytest

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients import Anchor, Fault, Item, Judgement, Result, Turn
from assay.clients.convert import (
    item_to_proto,
    limits_from_proto,
    parameter_from_proto,
    parameter_to_proto,
    result_from_proto,
    server_info_from_proto,
)
from assay.clients.core.client import match_all, name_all
from assay.clients.reward import SCORING
from assay.clients.testing import exact_info, result_to_proto
from assay.clients.types import Component, Span
from assay.kit import limits
from assay.kit.errors import BadRequestError

JUDGEMENT = Judgement(
    reward=0.75,
    verdict="correct",
    components=(Component("correctness", 1.0, 0.5), Component("length", 0.5, 0.5)),
    spans=(Span(0, 3, 0.25, "step", 1),),
    extracted_answer="",
    explanation="because",
    verifier="math",
    version="3",
    suspicions=("several-boxed-answers",),
)


def test_a_fault_has_no_reward() -> None:
    fault = Result("a", Fault("QUEUE_FULL", "full"))
    assert fault.reward is None
    assert fault.judgement is None
    judged = Result("a", JUDGEMENT)
    assert judged.reward == 0.75
    assert judged.fault is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_judgement_with_a_number_that_is_not_finite_cannot_be_made(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        Judgement(reward=bad, verdict="correct")
    with pytest.raises(ValueError, match="not finite"):
        Judgement(reward=0.0, verdict="correct", spans=(Span(0, 1, bad),))


@pytest.mark.parametrize(
    "fields",
    [{"response": 4}, {"reference": b"4"}, {"reference": object()}, {"id": 4}, {"task": None}],
)
def test_an_item_of_wrong_types_cannot_be_made(fields: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"Item\."):
        Item(**fields)  # type: ignore[arg-type]  # the wrong types are the point


def test_values_can_be_pickled() -> None:
    item = Item("a", reference=["b", "c"], parameters={"x": 1})
    assert pickle.loads(pickle.dumps(item)) == item
    assert pickle.loads(pickle.dumps(Result("a", JUDGEMENT))) == Result("a", JUDGEMENT)


def test_an_item_keeps_everything_on_its_way_out() -> None:
    message = item_to_proto(
        Item(
            "answer",
            reference=["4", "four"],
            verifier="math",
            task="gsm8k",
            prompt=[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
            group_id="g",
            parameters={"flag": True, "n": 3, "x": 0.5, "mode": "a", "names": ["p", "q"]},
            response_token_count=0,
            truncated=True,
            timeout_s=1.5,
        ),
        "wire",
    )
    assert (message.id, message.verifier, message.task, message.group_id) == (
        "wire",
        "math",
        "gsm8k",
        "g",
    )
    assert [(part.role, part.content) for part in message.prompt] == [
        ("system", "s"),
        ("user", "u"),
    ]
    assert message.response == "answer"
    assert list(message.reference.texts.values) == ["4", "four"]
    assert message.parameters["flag"].bool_value is True
    assert message.parameters["n"].int_value == 3
    assert message.HasField("response_token_count")
    assert message.truncated
    assert message.timeout.ToMilliseconds() == 1500


def test_kinds_of_candidates_and_references() -> None:
    assert item_to_proto(Item(""), "1").WhichOneof("candidate") == "response"
    assert item_to_proto(Item(), "1").WhichOneof("candidate") is None
    turns = item_to_proto(Item(turns=[Turn("assistant", "x", from_policy=True)]), "1").turns.turns
    assert turns[0].from_policy
    assert not item_to_proto(Item("a"), "1").HasField("reference")
    assert item_to_proto(Item("a", ""), "1").reference.WhichOneof("kind") == "text"
    assert item_to_proto(Item("a", []), "1").reference.WhichOneof("kind") == "texts"
    assert item_to_proto(Item("a", Anchor("b")), "1").reference.anchor_response == "b"
    suite = execution_pb2.TestSuite(stop_at_first_failure=True)
    assert item_to_proto(Item("a", suite), "1").reference.tests == suite
    assert item_to_proto(Item("a", prompt="why?"), "1").prompt[0].role == "user"


@pytest.mark.parametrize("value", [True, False, 0, -7, 2**63 - 1, 0.5, "", "text"])
def test_parameters_keep_value_and_kind(value: bool | int | float | str) -> None:
    back = parameter_from_proto(parameter_to_proto(value))
    assert back == value
    assert type(back) is type(value)
    assert parameter_from_proto(parameter_to_proto(["a", "b"])) == ("a", "b")
    assert parameter_from_proto(common_pb2.ParameterValue()) is None


@pytest.mark.parametrize("item", [Item("half \ud800"), Item("a", parameters={"n": 2**70})])
def test_what_no_message_can_hold_is_a_fault_of_its_item(item: Item) -> None:
    fault = SCORING.write(item, "1", "item")
    assert isinstance(fault, Fault)
    assert fault.reason == "UNSUPPORTED_INPUT"
    assert "\n" not in fault.message


def test_a_judgement_keeps_everything_on_its_way_in() -> None:
    message = result_to_proto("1", JUDGEMENT)
    message.timings.queue.FromMilliseconds(20)
    message.timings.execution.FromMilliseconds(30)
    message.from_cache = True
    expected = Result("mine", JUDGEMENT, queue_s=0.02, execution_s=0.03, from_cache=True)
    assert result_from_proto(message, "mine") == expected


def test_a_fault_keeps_reason_code_and_facts() -> None:
    fault = Fault("ITEM_TIMEOUT", "slow", code="DEADLINE_EXCEEDED", metadata={"verifier": "math"})
    assert result_from_proto(result_to_proto("1", fault), "1").outcome == fault


def test_what_is_no_judgement_becomes_a_fault() -> None:
    empty = result_from_proto(reward_pb2.Result(id="1"), "1")
    assert empty.fault is not None
    assert empty.fault.reason == "MISSING_RESULT"
    message = result_to_proto("1", JUDGEMENT)
    message.judgement.reward = float("nan")
    wrong = result_from_proto(message, "1")
    assert wrong.reward is None
    assert wrong.fault is not None
    assert wrong.fault.code == grpc.StatusCode.INTERNAL.name


def test_limits_that_are_not_stated_have_defaults() -> None:
    stated = limits_from_proto(common_pb2.BatchLimits(max_items=3, max_item_bytes=5))
    assert (stated.max_items, stated.max_item_bytes) == (3, 5)
    assert stated.max_message_bytes == limits.MAX_MESSAGE_BYTES
    assert stated.default_item_timeout_s == limits.DEFAULT_ITEM_TIMEOUT_S


def test_the_listing_finds_who_judges() -> None:
    info = server_info_from_proto(reward_pb2.ListVerifiersResponse(verifiers=[exact_info()]))
    by_name, by_task = info.find("exact"), info.find("", "exact")
    assert by_name is not None
    assert by_name == by_task
    assert info.find("nobody", "exact") is None
    assert info.find("", "") is None


def test_items_are_named_by_position_and_ids_are_checked() -> None:
    assert name_all([Item("a"), Item("b", id="x"), Item("c")], "item") == ["0", "x", "2"]
    with pytest.raises(BadRequestError, match="'x'") as twice:
        name_all([Item("a", id="x"), Item("b", id="x")], "item")
    assert twice.value.reason == "DUPLICATE_ITEM_ID"
    with pytest.raises(BadRequestError, match="256 bytes"):
        name_all([Item("a", id="é" * 129)], "item")


def test_results_are_matched_by_id_only() -> None:
    items = [reward_pb2.Item(id=name) for name in "abcd"]
    stray = result_to_proto("z", JUDGEMENT)
    b, c = (result_to_proto("b", JUDGEMENT), result_to_proto("c", Judgement(2.0, "correct")))
    again = result_to_proto("c", Judgement(3.0, "correct"))
    results = match_all(SCORING, items, [stray, c, b, b, again], "item")
    assert [result.id for result in results] == ["a", "b", "c", "d"]
    reasons = [result.fault and result.fault.reason for result in results]
    assert reasons == ["MISSING_RESULT", None, "INTERNAL", "MISSING_RESULT"]
