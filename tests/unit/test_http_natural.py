"""Short forms of a request over HTTP: what each stands for, and what is said of what is none."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import BadRequestError
from assay.kit.plain import from_plain, to_plain
from assay.reward_server.http.codec import read_batch
from assay.reward_server.http.natural import in_contract

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
DATA = st.recursive(
    TEXTS | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
)


def read(*items: Any) -> list[reward_pb2.Item]:
    return [*read_batch(json.dumps({"items": items}).encode()).items]


def refused(item: dict[str, Any]) -> str:
    with pytest.raises(BadRequestError) as caught:
        read({"response": "42"}, item)
    assert caught.value.reason == "MALFORMED_REQUEST"
    return str(caught.value)


def test_the_request_that_people_type() -> None:
    [item] = read({"completion": r"\boxed{42}", "reference": "42", "verifier": "math",
                   "prompt": "What is 6 * 7?"})  # fmt: skip
    assert (item.id, item.response, item.reference.text) == ("0", r"\boxed{42}", "42")
    [message] = item.prompt
    assert (message.role, message.content) == ("user", "What is 6 * 7?")


def test_items_without_names_are_numbered_and_one_name_ends_that() -> None:
    assert [item.id for item in read({}, {}, {})] == ["0", "1", "2"]
    assert [item.id for item in read({}, {"id": "b"})] == ["", "b"]  # the scorer refuses it
    assert [item.id for item in read({"id": 7}, {"id": "7"})] == ["7", "7"]


@pytest.mark.parametrize(
    ("reference", "wanted"),
    [
        ("42", {"text": "42"}),
        ("", {"text": ""}),
        (42, {"text": "42"}),
        (0.5, {"text": "0.5"}),
        (1e22, {"text": "1e+22"}),
        (["42", "forty-two"], {"texts": {"values": ["42", "forty-two"]}}),
        ({"texts": ["42"]}, {"texts": {"values": ["42"]}}),
        ({"text": "42"}, {"text": "42"}),
        ({"anchorResponse": "41"}, {"anchor_response": "41"}),
        ({"data": {"string_value": "a"}}, {"data": {"string_value": "a"}}),
    ],
)
def test_a_reference_as_people_write_it(reference: Any, wanted: dict[str, Any]) -> None:
    [item] = read({"response": "x", "reference": reference})
    assert item.reference == json_format.ParseDict(wanted, reward_pb2.Reference())


@pytest.mark.parametrize("data", [[], [[1, 2], [3, 4]], [1, "a"], {"x": 1, "y": [None, True]}, {}])
def test_a_reference_of_data(data: Any) -> None:
    given_as = [{"data": data}] if isinstance(data, dict) else [data, {"data": data}]
    for reference in given_as:
        [item] = read({"response": "x", "reference": reference})
        assert from_plain(item.reference.data) == data


@given(
    st.dictionaries(
        TEXTS.filter(bool),
        st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXTS
        | st.lists(TEXTS),
        max_size=4,
    )
)
def test_parameters_keep_value_and_kind(parameters: dict[str, Any]) -> None:
    [item] = read({"response": "x", "parameters": parameters})
    found = {}
    for name, value in item.parameters.items():
        kind = value.WhichOneof("kind")
        held = getattr(value, kind)
        found[name] = [*held.values] if kind == "string_list_value" else held
    assert found == parameters
    assert {name: type(one) for name, one in found.items()} == {
        name: type(one) for name, one in parameters.items()
    }


def test_a_time_out_in_seconds() -> None:
    [item] = read({"response": "x", "timeout": 1.5})
    assert item.timeout.ToTimedelta().total_seconds() == 1.5


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"reponse": "42"}, "items[1].reponse: there is no such field; is it response? (known: "),
        ({"zzz": 1}, "items[1].zzz: there is no such field (known: "),
        ({"response": 42}, "items[1].response: must be a text"),
        ({"completion": [{"role": "assistant"}]}, "items[1].completion: must be a text"),
        ({"completion": "a", "response": "b"}, "items[1].response: the item has this field twice"),
        ({"reference": True}, "items[1].reference: must be a text, a number, a list of texts"),
        ({"reference": {"txt": "42"}}, "items[1].reference.txt: there is no such field; is it te"),
        ({"reference": {"boxes": []}}, 'items[1].reference.boxes: there is no such field; data st'),
        ({"parameters": {"n": None}}, "items[1].parameters.n: must be a text, a number, true, "),
        ({"parameters": {"n": [1]}}, "items[1].parameters.n: must be a text, a number, true, "),
    ],
)  # fmt: skip
def test_an_error_names_the_field(item: dict[str, Any], words: str) -> None:
    assert words in refused(item)


def test_data_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    assert "items[1].reference" in refused({"response": "x", "reference": deep})


@given(TEXTS.filter(bool), TEXTS, st.booleans(), DATA)
def test_what_is_in_the_contracts_shapes_stays_as_it_is(
    name: str, text: str, camel: bool, data: Any
) -> None:
    item = reward_pb2.Item(id=name, response=text, group_id=text, truncated=True)
    item.reference.data.CopyFrom(to_plain(data))
    item.parameters["n"].int_value = 3
    item.timeout.FromMilliseconds(1500)
    request = reward_pb2.BatchScoreRequest(items=[item])
    body = json_format.MessageToDict(request, preserving_proto_field_name=not camel)
    again = json_format.ParseDict(in_contract(body), reward_pb2.BatchScoreRequest())
    assert again == request


@given(st.recursive(st.none() | st.booleans() | st.integers() | TEXTS,
       lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
           TEXTS | st.sampled_from(["items", "id", "reference", "data", "prompt", "parameters"]),
           inner, max_size=3)))  # fmt: skip
def test_any_json_is_a_request_or_refused(found: Any) -> None:
    for body in (found, {"items": found}, {"items": [found]}):
        with contextlib.suppress(BadRequestError):
            read_batch(json.dumps(body).encode())
