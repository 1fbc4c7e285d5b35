"""Tool calls apart from the text: shapes, the wire, rows, HTTP's short forms, trainers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.clients.convert import item_to_proto
from assay.clients.rows.items import Defaults, Keys, RowError, item_of
from assay.clients.trainers.common.rows import RowReader
from assay.clients.types import Data, Item, ToolCall, Turn, tool_calls_of
from assay.compat import nemo_gym
from assay.kit.errors import BadRequestError
from assay.kit.tool_calls import read_tool_call
from assay.reward_server import convert
from assay.reward_server.domain import Candidate, Message, Unjudgeable, VerifierItem
from assay.reward_server.domain import ToolCall as Called
from assay.reward_server.equality import item_key
from assay.reward_server.http.codec import read_batch
from assay.reward_server.verifiers.tool_call import tool_call
from assay.reward_server.workers import wire

SPEC = tool_call.spec
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.lists(
    st.builds(ToolCall, TEXTS, st.none() | TEXTS | st.dictionaries(TEXTS, JSON, max_size=3)),
    max_size=3,
)
REFERENCE = {"calls": [{"name": "f", "arguments": {"x": 1}}]}
OPENAI = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}


def judged(item: Item | reward_pb2.Item) -> VerifierItem:
    message = item_to_proto(item, "x") if isinstance(item, Item) else item
    return convert.item_from_proto(message, SPEC)


def rewarded(item: Item | reward_pb2.Item) -> float:
    return tool_call.judge(judged(item)).reward


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (OPENAI, ("f", '{"x": 1}')),
        ({"name": "f", "arguments": {"x": 1}}, ("f", {"x": 1})),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, ("f", "{}")),
        ({"function": "f", "arguments": {"x": 1}}, ("f", {"x": 1})),
        ({"name": "f"}, ("f", None)),
        (json.dumps(OPENAI), ("f", '{"x": 1}')),
        (SimpleNamespace(function="f", arguments={}, id="1"), ("f", {})),
        (SimpleNamespace(model_dump=lambda: OPENAI), ("f", '{"x": 1}')),
    ],
)
def test_shapes_of_a_call(shape: Any, wanted: Any) -> None:
    assert read_tool_call(shape) == wanted
    assert tool_calls_of([shape]) == (ToolCall(*wanted),)


@pytest.mark.parametrize(
    "shape", [None, 3, {}, {"name": 1}, {"name": "f", "arguments": 3}, "f()", {"function": None}]
)
def test_what_is_no_call(shape: Any) -> None:
    with pytest.raises(ValueError, match=r"tool call|JSON|Expecting"):
        read_tool_call(shape)
    (call,) = tool_calls_of([shape])
    assert rewarded(Item("", Data(REFERENCE), tool_calls=[call])) == 0.0


@given(TEXTS, CALLS, st.lists(st.builds(Turn, TEXTS, TEXTS, st.booleans(), CALLS), max_size=3))
def test_calls_reach_the_verifier(text: str, calls: list[ToolCall], turns: list[Turn]) -> None:
    def called(calls: Any) -> tuple[Called, ...]:
        return tuple(Called(c.name, {} if c.arguments is None else c.arguments) for c in calls)

    reference = Data({"calls": []})
    assert judged(Item(text, reference, tool_calls=calls)).candidate == Candidate(
        text, calls=called(calls)
    )
    if turns:
        found = judged(Item(None, reference, turns=turns)).candidate
        assert found.turns == tuple(
            Message(turn.role, turn.content, turn.from_policy, called(turn.tool_calls))
            for turn in turns
        )
    item = judged(Item(text, reference, tool_calls=calls))
    again = wire.read_item(json.loads(json.dumps(wire.pack_item(item, SPEC))), SPEC)
    assert again.candidate == item.candidate
    bare = judged(Item(text, reference))
    assert (item_key(SPEC, item) == item_key(SPEC, bare)) is (not calls)


def test_calls_alone_are_an_empty_response() -> None:
    call = ToolCall("f", {"x": 1})
    assert rewarded(Item(None, Data(REFERENCE), tool_calls=[call])) == 1.0
    assert rewarded(Item("Wait.", Data(REFERENCE), tool_calls=[call])) == 1.0
    with pytest.raises(Unjudgeable) as caught:
        judged(Item(None, Data(REFERENCE)))
    assert caught.value.reason == "MISSING_RESPONSE"
    turns = [Turn("assistant", "", True, [call])]
    assert rewarded(Item(None, Data(REFERENCE), turns=turns)) == 1.0
    for item in (
        Item(None, Data(REFERENCE), turns=turns, tool_calls=[call]),
        Item("", Data(REFERENCE), tool_calls=[call] * 1_025),
    ):
        with pytest.raises(Unjudgeable) as caught:
            judged(item)
        assert caught.value.reason == "UNSUPPORTED_INPUT"


def test_arguments_that_json_cannot_have_are_a_fault() -> None:
    message = item_to_proto(Item("", Data(REFERENCE)), "x")
    message.tool_calls.add(name="f").data.bytes_value = b"x"
    with pytest.raises(Unjudgeable) as caught:
        judged(message)
    assert caught.value.reason == "UNSUPPORTED_INPUT"
    with pytest.raises(ValueError, match="arguments of a tool call"):
        item_to_proto(Item("", tool_calls=[ToolCall("f", {"x": float("nan")})]), "x")


def http(item: dict[str, Any]) -> reward_pb2.Item:
    body = {"items": [{"verifier": "tool-call", "reference": {"data": REFERENCE}, **item}]}
    [read] = read_batch(json.dumps(body).encode()).items
    return read


@pytest.mark.parametrize(
    "calls",
    [[OPENAI], [{"name": "f", "arguments": {"x": 1}}], [{"name": "f", "arguments": '{"x": 1}'}],
     [{"name": "f", "text": '{"x": 1}'}],
     [{"name": "f", "data": {"mapping_value": {"entries": [
         {"key": {"string_value": "x"}, "value": {"int_value": "1"}}]}}}]],
)  # fmt: skip
def test_short_forms_over_http(calls: Any) -> None:
    assert rewarded(http({"tool_calls": calls})) == 1.0
    assert rewarded(http({"response": "Sure.", "toolCalls": calls})) == 1.0
    turn = {"message": {"role": "assistant", "content": ""}, "from_policy": True}
    turns = {"turns": [{**turn, "tool_calls": calls}]}
    assert rewarded(http({"turns": turns})) == 1.0


@pytest.mark.parametrize("calls", [[{"arguments": {}}], [{"function": {}}], 3, ["f"], [[]]])
def test_wrong_forms_over_http(calls: Any) -> None:
    with pytest.raises(BadRequestError) as caught:
        http({"tool_calls": calls})
    assert caught.value.reason == "MALFORMED_REQUEST"


def test_rows() -> None:
    def row(**columns: Any) -> Item:
        data = {"verifier": "tool-call", "reference": REFERENCE, **columns}
        return item_of(Keys(), Defaults(), data, "1")

    assert rewarded(row(tool_calls=[OPENAI])) == 1.0
    assert rewarded(row(tool_calls=[OPENAI], response="Sure.")) == 1.0
    assert rewarded(row(tool_calls=None, response="No.")) == 0.0
    turns = [{"role": "assistant", "content": None, "from_policy": True, "tool_calls": [OPENAI]}]
    assert rewarded(row(turns=turns)) == 1.0
    for wrong in (3, [3], [{}], {"name": "f"}):
        with pytest.raises(RowError, match="tool_calls"):
            row(tool_calls=wrong, response="")


def test_the_calls_of_a_trainers_messages() -> None:
    said = [
        {"role": "assistant", "content": "I look.", "tool_calls": [OPENAI]},
        {"role": "tool", "name": "f", "content": "7"},
        {"role": "assistant", "content": "It is 7."},
    ]
    reader = RowReader("tool-call", reference_kind="json")
    columns = {"reference": [json.dumps(REFERENCE)] * 2}
    text = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    items = reader.items(["?"] * 2, [said, text], None, columns)
    assert [item.response for item in items] == ["I look.\n\nIt is 7.", text]
    assert [len(item.tool_calls) for item in items] == [1, 0]
    assert [rewarded(item) for item in items] == [1.0, 1.0]


def test_the_calls_of_a_rollout_of_nemo_gym() -> None:
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "arguments": '{"x": 1}', "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "7"},
    ]
    body = {
        "responses_create_params": {"input": "?"},
        "response": {"output": output},
        "label": REFERENCE,
    }
    item = nemo_gym.read(body, ("tool-call", ""))
    assert [(call.name, call.text) for call in item.tool_calls] == [("f", '{"x": 1}')]
    assert rewarded(item) == 1.0
