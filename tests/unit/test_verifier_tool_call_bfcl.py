"""`tool-call` by BFCL's rules: values, texts, objects, optional arguments, Java and JavaScript."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from bench.tool_formats import RENDERERS

from assay.reward_server.domain import Candidate, Unjudgeable, VerifierItem
from assay.reward_server.verifiers.tool_call.bfcl import standard
from assay.reward_server.verifiers.tool_call.source import from_java, from_javascript
from assay.reward_server.verifiers.tool_call.verifier import tool_call


def function(name: str, required: list[str], **types: Any) -> dict[str, Any]:
    properties = {
        key: {"type": "array", "items": {"type": kind[0]}} if isinstance(kind, list) else
        {"type": kind} for key, kind in types.items()
    }  # fmt: skip
    parameters = {"type": "dict", "properties": properties, "required": required}
    return {"name": name, "parameters": parameters}


ROUTE = function(
    "map.route", ["start"], start="string", km="float", stops="integer", toll="boolean",
    via=["string"], legs=["dict"], options="dict", when="any",
)  # fmt: skip
ANSWERS: dict[str, list[Any]] = {
    "start": ["Berlin, DE", "Berlin"],
    "km": [2.5, 3, ""],
    "stops": [1, ""],
    "toll": [False, ""],
    "via": [["St. Gallen", "Ulm"], ""],
    "legs": [[{"to": ["Ulm"], "km": [1]}], ""],
    "options": [{"fast": [True], "by": ["car", ""]}, ""],
    "when": ["now", ""],
}
ROW = {"ground_truth": [{"map.route": ANSWERS}], "function": [ROUTE]}


def is_right(given: dict[str, Any], row: Any = ROW, *, name: str = "map.route") -> bool:
    """Whether a call is right; in formats with types it makes no difference which."""
    found = {reward(writer, [(name, given)], row) for writer in ("hermes", "mistral 11", "kimi k2")}
    assert len(found) == 1
    return found == {1.0}


def reward(writer: str, calls: list[tuple[str, Any]], row: Any) -> float:
    item = VerifierItem(
        Candidate(RENDERERS[writer][1](calls)), data=row, parameters=tool_call.spec.complete({})
    )
    return tool_call.judge(item).reward


@pytest.mark.parametrize(
    "more",
    [{}, {"km": 2.5}, {"km": 3}, {"km": 3.0}, {"stops": 1}, {"toll": False}, {"when": "NOW"},
     {"when": ""},
     {"via": ["st gallen", "ULM"]}, {"via": []}, {"options": {"fast": True}},
     {"options": {"fast": True, "by": "CAR"}}, {"legs": [{"to": "ulm", "km": 1}]}, {"legs": []}],
)  # fmt: skip
def test_what_is_right(more: dict[str, Any]) -> None:
    for start in ("Berlin, DE", "berlin", "BERLIN DE", "Berlin - D/E"):
        assert is_right({"start": start, **more})


@pytest.mark.parametrize(
    "more",
    [{"start": "Bern"}, {"start": None}, {"km": 4}, {"km": "2.5"}, {"km": True}, {"stops": 1.0},
     {"stops": True}, {"stops": "1"}, {"toll": 0}, {"toll": True}, {"via": ["Ulm", "St. Gallen"]},
     {"via": ["Ulm"]}, {"via": "Ulm"}, {"via": [1, 2]}, {"options": {}}, {"options": {"fast": 1}},
     {"options": {"fast": True, "x": 1}}, {"options": {"fast": True, "by": "bus"}},
     {"legs": [{"to": "Ulm"}]}, {"legs": [{"to": "Ulm", "km": 1}] * 2}, {"legs": ["Ulm"]},
     {"when": "later"}, {"other": 1}],
)  # fmt: skip
def test_what_is_wrong(more: dict[str, Any]) -> None:
    assert not is_right({"start": "Berlin", **more})
    assert not is_right({key: value for key, value in more.items() if key != "start"})


def test_names_counts_and_pairs() -> None:
    assert is_right({"start": "Berlin"}, name="map_route")
    assert not is_right({"start": "Berlin"}, name="route")
    narrow, wide = {"x": [1]}, {"x": [1, 2]}
    row = {
        "ground_truth": [{"f": wide}, {"f": narrow}],
        "function": [function("f", ["x"], x="integer")],
    }
    for calls in ([1, 2], [2, 1]):  # the leaderboard takes 1 for the first answer, and 2 for none
        assert reward("hermes", [("f", {"x": x}) for x in calls], row) == 1.0
    for calls in ([1], [2, 2], [1, 2, 1], [1, 3]):
        assert reward("hermes", [("f", {"x": x}) for x in calls], row) == 0.0


def test_formats_without_types_and_names_in_pythons_syntax() -> None:
    given = {"start": "Berlin", "km": 3, "toll": False, "via": ["St. Gallen", "Ulm"]}
    for writer in ("qwen3-coder", "glm", "anthropic", "bfcl prompt"):
        assert reward(writer, [("map.route", given)], ROW) == 1.0
        assert reward(writer, [("map.route", {**given, "km": 4})], ROW) == 0.0
    row = {
        "ground_truth": [{"f": {"x": ["order_id"]}}],
        "function": [function("f", [], x="integer")],
    }
    item = VerifierItem(
        Candidate("[f(x=order_id)]"), data=row, parameters=tool_call.spec.complete({})
    )
    assert tool_call.judge(item).reward == 1.0, "a variable where the answer is one"


@pytest.mark.parametrize(
    ("code", "kind", "inner", "value"),
    [
        ("12", "integer", "", 12), ("-7", "short", "", -7), ("1.5", "integer", "", "1.5"),
        ("12L", "long", "", 12), ("12", "long", "", "12"), ("1.5", "double", "", 1.5),
        ("2e3", "double", "", 2000.0), ("1.5f", "float", "", 1.5), ("1.5", "float", "", "1.5"),
        ("true", "boolean", "", True), ("True", "boolean", "", "True"), ("x", "any", "", "x"),
        ("new int[]{1, 2}", "Array", "integer", [1, 2]), ("xs", "Array", "", "xs"),
        ("new int[]{}", "Array", "integer", []),
        ("new ArrayList<>(Arrays.asList(\"a\", \"b\"))", "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<Long>(Arrays.asList(1L, 2L))", "ArrayList", "long", [1, 2]),
        ("new ArrayList<Integer>() {{ add(1); add(2); }}", "ArrayList", "integer", [1, 2]),
        ("new ArrayList<>()", "ArrayList", "", []),
        ('new HashMap<String, Object>() {{ put("a", 1); put("b", "x"); }}', "HashMap", "",
         {"a": 1, "b": "x"}),
        ("new HashMap<>()", "HashMap", "", {}), ("options", "HashMap", "", "options"),
        ("9" * 400, "integer", "", "9" * 400),
    ],
)  # fmt: skip
def test_values_in_java(code: str, kind: str, inner: str, value: Any) -> None:
    found = from_java(code, kind, inner)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("code", "kind", "inner", "value"),
    [
        ("12", "integer", "", 12), ("12.0", "float", "", 12.0), ("12n", "Bigint", "", 12),
        ("true", "Boolean", "", True), ("'a'", "String", "", "a"), ("a", "String", "", "a"),
        ("[1, 2]", "array", "integer", [1, 2]), ("['a', 'b']", "array", "String", ["a", "b"]),
        ("new Array(1, 2)", "array", "", [1, 2]), ("[[1, 2], [3]]", "array", "", [[1, 2], [3]]),
        ("[]", "array", "", []), ("[1] x", "array", "", "[1] x"), ("list", "array", "", "list"),
        ("{a: 1, 'b': 'x, y'}", "dict", "", {"a": 1, "b": "x, y"}), ("{}", "dict", "", {}),
        ("{a: [1, 2], b: {c: true}}", "dict", "", {"a": [1, 2], "b": {"c": True}}),
        ("{a}", "dict", "", "{a}"), ("{} x", "dict", "", "{} x"),
    ],
)  # fmt: skip
def test_values_in_javascript(code: str, kind: str, inner: str, value: Any) -> None:
    found = from_javascript(code, kind, inner)
    assert (found, type(found)) == (value, type(value))


def test_a_call_in_java_has_texts_only() -> None:
    row = {
        "ground_truth": [{"f": {"n": [12], "on": [True, ""], "to": ["target"]}}],
        "function": [function("f", ["n"], n="long", on="boolean", to="any")],
        "language": "java",
    }
    assert is_right({"n": "12L", "to": "target"}, row, name="f")
    assert is_right({"n": "12L", "to": "target", "on": "true"}, row, name="f")
    for wrong in ({"n": 12}, {"n": "12"}, {"n": "13L"}, {"n": "12L", "on": True}):
        assert not is_right({"to": "target", **wrong}, row, name="f")


def test_texts_are_compared_as_the_leaderboard_does() -> None:
    assert standard("April 1, 2024") == standard("april-1.2024") == "april12024"
    assert standard("it's") == 'it"s'


@pytest.mark.parametrize(
    "row",
    [{"ground_truth": [{"f": {"x": [1]}}], "function": [function("g", [], x="integer")]},
     {"ground_truth": [{"f": {"x": [1]}}], "function": [function("f", [], x="decimal")]},
     {"ground_truth": [{"f": {"x": [1]}, "g": {}}], "function": []},
     {"ground_truth": [{"f": {"x": [1]}}], "function": [function("f", [], x="integer")],
      "language": "java script"}],
)  # fmt: skip
def test_rows_that_cannot_be_used(row: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        reward("hermes", [("f", {"x": 1})], row)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


@pytest.mark.parametrize(
    "code",
    ["add(" * 2_400, "put(\"" * 1_900, "[" * 9_000, "{a:" * 3_000, "new " * 2_400,
     "new HashMap<" * 800, "new ArrayList<" * 700, "9" * 9_999, "'" * 9_999, "1," * 4_900],
)  # fmt: skip
def test_hostile_source_is_read_at_once(code: str) -> None:
    kinds = {"java": ("long", "Array", "ArrayList", "HashMap"), "javascript": ("array", "dict")}
    started_s = time.process_time()
    for language, names in kinds.items():
        for kind in names:
            value = {"f": {"x": ["target"]}}
            row = {"ground_truth": [value] * 16, "language": language,
                   "function": [function("f", [], x=kind)]}  # fmt: skip
            text = json.dumps([{"name": "f", "arguments": {"x": code}}] * 16)
            assert reward("xlam", json.loads(text) and [("f", {"x": code})] * 16, row) == 0.0
    assert time.process_time() - started_s < 3
