"""References: which Python value becomes which kind, and what JSON cannot write."""

from __future__ import annotations

import enum
import json
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.clients import Anchor, Data, Item
from assay.clients.convert import item_to_proto
from assay.clients.reward import SCORING
from assay.clients.types import Fault, as_json
from assay.kit.plain import plain_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda part: st.lists(part) | st.dictionaries(st.text(st.characters(codec="utf-8")), part),
    max_leaves=20,
)


@given(JSON)
def test_data_arrives_as_it_left(value: Any) -> None:
    message = item_to_proto(Item("a", Data(value)), "1")
    assert message.reference.WhichOneof("kind") == "data"
    arrived = plain_json(message.reference.data)
    assert json.dumps(arrived) == json.dumps(value)


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("4", "text"),
        ("", "text"),
        (["4", "four"], "texts"),
        (("4",), "texts"),
        ([], "texts"),
        (4, "data"),
        (True, "data"),
        (0.5, "data"),
        ({"boxes": []}, "data"),
        ([[1, 2, 3, 4]], "data"),
        ([1, "2"], "data"),
        (Data(["a", "b"]), "data"),
        (Data("a"), "data"),
        (Anchor("x"), "anchor_response"),
        (execution_pb2.TestSuite(), "tests"),
    ],
)
def test_kinds_follow_from_types(reference: Any, kind: str) -> None:
    assert item_to_proto(Item("a", reference), "1").reference.WhichOneof("kind") == kind


class Colour(enum.IntEnum):
    RED = 1


def test_other_containers_take_the_shapes_of_json() -> None:
    view = types.MappingProxyType({"a": (1, (2.0,)), "b": Colour.RED})
    assert as_json(view) == {"a": [1, [2.0]], "b": 1}
    assert type(as_json(view)["b"]) is int  # type: ignore[call-overload, index]  # an object


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1, float("nan")]}, r"the reference\['a'\]\[1\] is nan"),
        ({1: 2}, "has the key 1; keys of data are texts"),
        ([{"x": b"y"}], r"the reference\[0\]\['x'\] is bytes"),
        ({"x": {1, 2}}, "is set; data holds"),
    ],
)
def test_what_json_cannot_write_is_a_fault_that_names_the_place(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        as_json(value)
    fault = SCORING.write(Item("a", value), "1", "item")
    assert isinstance(fault, Fault)
    assert fault.reason == "UNSUPPORTED_INPUT"


def test_data_that_is_nested_too_deeply_is_a_fault() -> None:
    value: Any = 1
    for _ in range(60):
        value = [value]
    fault = SCORING.write(Item("a", value), "1", "item")
    assert isinstance(fault, Fault)
    assert "nested too deeply" in fault.message
