"""Lists, rankings, preferences, patterns and JSON schemas: golden tables with their sources."""

from __future__ import annotations

import json
import math
import time

import pytest

from assay.kit.json_text import NotJson, fenced, last_value, read_json
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    JsonValue,
    Unjudgeable,
    Verifier,
)
from assay.reward_server.verifiers.text.json_schema import json_schema
from assay.reward_server.verifiers.text.lists import read_items
from assay.reward_server.verifiers.text.ndcg import discounted, ndcg, normalised
from assay.reward_server.verifiers.text.pairwise import pairwise_accuracy
from assay.reward_server.verifiers.text.preference import preference
from assay.reward_server.verifiers.text.regex import regex
from assay.reward_server.verifiers.text.set_f1 import set_f1
from text_verifier_support import item, judge

NDCG, PAIRS, PREFERENCE = ndcg, pairwise_accuracy, preference
SETS, REGEX, SCHEMA = set_f1, regex, json_schema


def fault_of(verifier: Verifier, response: str, **given: object) -> str:
    with pytest.raises(Unjudgeable) as caught:
        judge(verifier, response, **given)  # type: ignore[arg-type]
    return caught.value.reason


# --- lists and set-f1 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", "b, c", 3, true]', ["a", "b, c", "3", "true"]),
        ('```json\n["a"]\n```', ["a"]),
        ("a, b and c", ["a", "b and c"]),
        ("a, b, and c.", ["a", "b", "c"]),
        ("{1, 2; 3}", ["1", "2", "3"]),
        ("北京、上海\uff0c广州", ["北京", "上海", "广州"]),
        ("- a\n- b, c", ["a", "b, c"]),
        ("1. a\n2) b", ["a", "b"]),
        ("Here they are:\n* a\n* b\nThat is all.", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("1, 2, 3", ["1", "2", "3"]),
        ("[]", []),
        ("", None),
        (" \n\t\u3000", None),
        ("x," * 1_001, None),
    ],
)
def test_lists_are_read_by_their_form(text: str, items: list[str] | None) -> None:
    assert read_items(text) == items


@pytest.mark.parametrize(
    ("response", "right", "parameters", "score"),
    [
        ("red, green", ["green", "red"], {}, 1.0),
        ("RED; 'green'", ["green", "red"], {}, 1.0),
        ("red", ["green", "red"], {}, 2 / 3),
        ("red", ["green", "red"], {"measure": "precision"}, 1.0),
        ("red", ["green", "red"], {"measure": "recall"}, 0.5),
        ("red", ["green", "red"], {"measure": "jaccard"}, 0.5),
        ("red", ["green", "red"], {"measure": "exact"}, 0.0),
        ("red, red", ["red"], {"measure": "exact"}, 0.0),
        ("red, red, green", ["green", "red"], {}, 4 / 5),
        ("[2, 3]", [2.0, 3], {"measure": "exact"}, 1.0),
        ("NYC, Paris", [["New York", "NYC"], "Paris"], {"measure": "exact"}, 1.0),
        ("NYC, New York", [["New York", "NYC"]], {}, 2 / 3),
        ("[]", [], {}, 1.0),
        ("red", [], {}, 0.0),
        ("[]", ["red"], {}, 0.0),
        ("Red", ["red"], {"case_sensitive": True}, 0.0),
    ],
)
def test_sets(response: str, right: JsonValue, parameters: dict[str, object], score: float) -> None:
    assert judge(SETS, response, data=right, **parameters).reward == pytest.approx(score)


def test_lists_in_texts_are_references_too() -> None:
    assert judge(SETS, "a, b", "x, y", "b, a").verdict == "correct"
    assert judge(SETS, "a, b", '["b", "a"]').verdict == "correct"
    assert judge(SETS, "a", '[["a", "x"]]').verdict == "correct"


@pytest.mark.parametrize(
    "data", [{"a": 1}, "a", [[]], [None], [""], [{"a": 1}], [["a"], ["a", "b"]]]
)
def test_references_that_are_no_sets_are_faults(data: JsonValue) -> None:
    assert fault_of(SETS, "a", data=data) == UNUSABLE_REFERENCE


# --- ndcg -----------------------------------------------------------------------------------------


def test_the_worked_example_of_discounted_gain() -> None:
    """Wikipedia, "Discounted cumulative gain": six documents of grades 3, 2, 3, 0, 1, 2."""
    grades = [3, 2, 3, 0, 1, 2]
    assert sum(grades) == 11
    assert discounted(grades) == pytest.approx(6.861, abs=5e-4)
    assert discounted(sorted([*grades, 3, 2], reverse=True), 6) == pytest.approx(8.740, abs=5e-4)
    assert normalised(grades, [*grades, 3, 2], 6) == pytest.approx(0.785, abs=5e-4)
    document: JsonValue = {f"D{place}": grade for place, grade in enumerate([*grades, 3, 2], 1)}
    judgement = judge(NDCG, "D1 > D2 > D3 > D4 > D5 > D6", data=document, k=6)
    assert judgement.reward == pytest.approx(0.785, abs=5e-4)


def test_the_examples_of_scikit_learn() -> None:
    """Docstring of sklearn.metrics.ndcg_score: relevance 10, 0, 0, 1, 5 and two score vectors."""
    document: JsonValue = {"a": 10, "b": 0, "c": 0, "d": 1, "e": 5}
    assert judge(NDCG, "e, d, c, b, a", data=document).reward == pytest.approx(0.69, abs=6e-3)
    assert judge(NDCG, "b, c, d, a, e", data=document).reward == pytest.approx(0.49, abs=6e-3)
    assert judge(NDCG, "b, c, d, a, e", data=document, k=4).reward == pytest.approx(0.35, abs=6e-3)


def test_exponential_gain() -> None:
    """2^grade - 1 over log2(place + 1), worked by hand: 3 + 7/log2(3) over 7 + 3/log2(3)."""
    worked = (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))
    judgement = judge(NDCG, "b > a", data={"a": 3, "b": 2}, gain="exponential")
    assert judgement.reward == pytest.approx(worked)


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("a, b", 1.0),
        ("a, a, b", (2 + 1 / 2) / (2 + 1 / math.log2(3))),
        ("x, a, b", (2 / math.log2(3) + 1 / 2) / (2 + 1 / math.log2(3))),
        ("a", 2 / (2 + 1 / math.log2(3))),
        ("x", 0.0),
        ("1. A\n2. B", 1.0),
    ],
)
def test_repetition_and_invention_push_down(response: str, score: float) -> None:
    assert judge(NDCG, response, data={"a": 2, "b": 1, "c": 0}).reward == pytest.approx(score)


@pytest.mark.parametrize(
    "data", [[], {}, {"a": 0}, {"a": -1}, {"a": True}, {"a": "x"}, {"a": 1, "A": 2}, {" ": 1}]
)
def test_references_without_grades_are_faults(data: JsonValue) -> None:
    assert fault_of(NDCG, "a", data=data) == UNUSABLE_REFERENCE


# --- pairwise-accuracy and preference -------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "data", "parameters", "score"),
    [
        ("a > b > c", {"a": 3, "b": 2, "c": 1}, {}, 1.0),
        ("a > c > b", {"a": 3, "b": 2, "c": 1}, {}, 2 / 3),
        ("a > c > b", {"a": 3, "b": 2, "c": 2}, {}, 1.0),
        ('{"a": 7, "b": 9}', [["a", "b"]], {}, 0.0),
        ("a: 9/10\nb: 3.5/10", [["a", "b"]], {}, 1.0),
        ("a: 5, b: 5", [["a", "b"]], {}, 0.0),
        ("a: 5, b: 5", [["a", "b"]], {"ties": "half"}, 0.5),
        ("a: 9, a: 1, b: 5", [["a", "b"]], {"ties": "half"}, 0.0),
        ("a: 9", [["a", "b"]], {}, 0.0),
        ('["a", "b"]', [["a", "b"]], {}, 1.0),
        ("b: 1, a: 2", [["a", "b"]], {"form": "order"}, 0.0),
        ("Response 1: 8\nResponse 2: 6", [["response 1", "response 2"]], {}, 1.0),
    ],
)
def test_preferences_are_counted(
    response: str, data: JsonValue, parameters: dict[str, object], score: float
) -> None:
    assert judge(PAIRS, response, data=data, **parameters).reward == pytest.approx(score)


@pytest.mark.parametrize(
    "data", [[], {}, {"a": 1}, {"a": 1, "b": 1}, [["a"]], [["a", "a"]], "a", [1]]
)
def test_references_without_preferences_are_faults(data: JsonValue) -> None:
    assert fault_of(PAIRS, "a > b", data=data) == UNUSABLE_REFERENCE


# The marks that MT-Bench (arXiv 2306.05685, figure 5: [[A]], [[B]], [[C]] for a tie) and Arena-Hard
# (arXiv 2406.11939: [[A>>B]] to [[B>>A]], [[A=B]]) ask for, and what models write without one.
@pytest.mark.parametrize(
    ("response", "reference", "verdict"),
    [
        ("Assistant A is more precise.\n\n[[A]]", "A", "correct"),
        ("[[B]]", "A", "incorrect"),
        ("[[C]]", "tie", "correct"),
        ("My final verdict is: [[B>>A]]", "B", "correct"),
        ("[[A>B]]", "1", "correct"),
        ("[[A=B]]", "tie", "correct"),
        ("[[A<B]]", "B", "correct"),
        ("Response 2 is better.", "B", "correct"),
        ("B", "2", "correct"),
        ("**A**", "A", "correct"),
        ("Answer A is clearly the better one", "A", "correct"),
        ("It is a tie.", "tie", "correct"),
        ("[[A]] and [[B]]", "A", "hedged"),
        ("A is better\nno: [[B]]", "A", "incorrect"),
        ("I like both.", "A", "unparsed"),
        ("12 is better", "B", "unparsed"),
    ],
)
def test_verdicts_on_pairs(response: str, reference: str, verdict: str) -> None:
    assert judge(PREFERENCE, response, reference).verdict == verdict


def test_a_reference_that_is_no_verdict_is_a_fault() -> None:
    with pytest.raises(Unjudgeable, match="not A, B, 1, 2 or tie"):
        judge(PREFERENCE, "A", "D")


# --- regex ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "parameters", "score"),
    [
        ("12 apples", {"all_of": (r"^\d+", "apples$")}, 1.0),
        ("12 pears", {"all_of": (r"^\d+", "apples$")}, 0.0),
        ("12 pears", {"all_of": (r"^\d+", "apples$"), "scoring": "fraction"}, 0.5),
        ("a dog", {"any_of": ("cat", "dog")}, 1.0),
        ("a bird", {"any_of": ("cat", "dog"), "none_of": ("bird",), "scoring": "fraction"}, 0.0),
        ("a cow", {"any_of": ("cat", "dog"), "none_of": ("bird",), "scoring": "fraction"}, 0.5),
        ("ABC", {"all_of": ("b",)}, 0.0),
        ("ABC", {"all_of": ("b",), "case_sensitive": False}, 1.0),
        ("ABC", {"all_of": ("B",), "whole": True}, 0.0),
        ("a\nb", {"all_of": ("a.b",)}, 0.0),
        ("a\nb", {"all_of": ("a.b",), "dot_all": True}, 1.0),
        ("a\nb", {"all_of": ("^b",)}, 0.0),
        ("a\nb", {"all_of": ("^b",), "multi_line": True}, 1.0),
        ("a\n", {"all_of": ("a$",)}, 0.0),  # unlike Python's re
        ("<think>x</think>y", {"none_of": ("x",), "part": "final"}, 1.0),
        ("<think>x", {"all_of": ("x",), "part": "final"}, 0.0),
        ("", {"none_of": ("x",)}, 0.0),
        ("", {"all_of": ("^$",)}, 1.0),
        ("\ud800x", {"all_of": ("x",)}, 1.0),
        ("é", {"all_of": (r"^\pL$",)}, 1.0),
    ],
)
def test_patterns(response: str, parameters: dict[str, object], score: float) -> None:
    judgement = judge(REGEX, response, **parameters)
    assert judgement.reward == pytest.approx(score)
    glanced = REGEX.glance(item(REGEX, response, **parameters))
    assert glanced == judgement


def test_patterns_of_the_reference_add_up() -> None:
    data: JsonValue = {"all_of": ["b"], "none_of": ["z"]}
    assert judge(REGEX, "ab", data=data, all_of=("a",)).reward == 1.0
    assert judge(REGEX, "abz", data=data, scoring="fraction").reward == 0.5


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(b", "missing )"),
        ("x[z-a]", "at character 2"),
        ("(?=a)", "at character 0"),
        (r"(a)\1", "at character 3"),
        ("a**", "at character 1"),
        ("a{1001}", "at character 1"),
        ("((a{100}){100}){100}", "pattern 0"),
        ("x" * 2_001, "2,001 characters"),
        ("\ud800", "at character 0"),
    ],
)
def test_a_pattern_that_re2_does_not_take_is_a_fault_that_names_the_place(
    pattern: str, what: str
) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(REGEX, "a", all_of=(pattern,))
    assert caught.value.reason == INVALID_PARAMETER
    assert what in caught.value.message
    with pytest.raises(Unjudgeable) as caught:
        judge(REGEX, "a", data={"none_of": [pattern]})
    assert caught.value.reason == UNUSABLE_REFERENCE


@pytest.mark.parametrize("given", [{}, {"all_of": ("a",) * 65}])
def test_no_pattern_and_too_many_are_faults(given: dict[str, object]) -> None:
    assert fault_of(REGEX, "a", **given) == INVALID_PARAMETER


@pytest.mark.parametrize("data", [["a"], {"some": ["a"]}, {"all_of": "a"}, {"all_of": [1]}])
def test_references_that_are_no_patterns_are_faults(data: JsonValue) -> None:
    assert fault_of(REGEX, "a", data=data) == UNUSABLE_REFERENCE


def test_patterns_that_backtrack_elsewhere_are_linear_here() -> None:
    began = time.process_time()
    for pattern in ("(a+)+$", "(a|a)*b", "(.*)*x", "(?:a?){30}a{30}b"):
        judge(REGEX, "a" * 200_000 + "!", all_of=(pattern,))
    assert time.process_time() - began < 5


# --- json -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NaN",
        "[1,]",
        "{'a': 1}",
        '{"a": 1, "a": 2}',
        "[1] x",
        "1e999",
        "1" * 301,
        "[" * 65 + "]" * 65,
        "// x\n1",
        "[0" + ",0" * 10_000 + "]",
        " " * 200_001,
        '"\\ud8"',
    ],
)
def test_json_is_read_strictly(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text)


def test_json_stands_in_fences_and_prose() -> None:
    assert fenced("```json\n1\n```\n```\n2\n```\n```python\n3\n```") == "\n2\n"
    assert fenced("```json\n1") is None
    assert last_value('so {see [1] and {x}} the answer {"a": "}"} ends [2') == '{"a": "}"}'
    assert last_value('[1] then {"a": 1} then [2]', "{") == '{"a": 1}'
    assert last_value('[1] then {"a": 1} then [2]') == "[2]"
    assert last_value('{"a": {"b": 1},}') is None  # no part of a broken object is an answer
    assert last_value("[0,1) and {x}") is None


PERSON: JsonValue = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("response", "parameters", "verdict", "score"),
    [
        ('{"name": "Ada", "age": 36}', {}, "correct", 1.0),
        ('{"name": "Ada", "age": 36.0}', {}, "correct", 1.0),
        ('Sure!\n```json\n{"name": "Ada", "age": 36}\n```\nDone.', {}, "correct", 1.0),
        ('It is {"name": "Ada", "age": 36}.', {}, "correct", 1.0),
        ('It is {"name": "Ada", "age": 36}.', {"extract": "whole"}, "unparsed", 0.0),
        ('It is {"name": "Ada", "age": 36}.', {"extract": "fence"}, "unparsed", 0.0),
        ('<think>{"name": "Ada", "age": 36}</think> no', {}, "unparsed", 0.0),
        ('<think>{"name": "Ada", "age": 36}', {}, "unparsed", 0.0),
        ('{"name": "Ada"}', {}, "incorrect", 0.0),
        ('{"name": "Ada"}', {"credit": "fraction"}, "partial", 2 / 3),
        ('{"name": "Ada", "age": -1}', {"credit": "fraction"}, "partial", 2 / 3),
        ('{"name": 1, "age": -1}', {"credit": "fraction"}, "partial", 1 / 3),
        ('{"name": "A", "age": 1, "x": 1}', {"credit": "fraction"}, "partial", 2 / 3),
        ("[]", {"credit": "fraction"}, "incorrect", 0.0),
        ('{"name": "Ada", "age": 36,}', {}, "unparsed", 0.0),
        ('{"name": "Ada", "age": 36, "age": 1}', {}, "unparsed", 0.0),
    ],
)
def test_schemas(response: str, parameters: dict[str, object], verdict: str, score: float) -> None:
    judgement = judge(SCHEMA, response, data=PERSON, **parameters)
    assert (judgement.verdict, judgement.reward) == (verdict, pytest.approx(score))
    assert judge(SCHEMA, response, json.dumps(PERSON), **parameters) == judgement


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        # JSON-Schema-Test-Suite: pattern, patternProperties, unevaluatedProperties, uniqueItems
        ({"pattern": "^a*$"}, "aaa", True),
        ({"pattern": "^a*$"}, "abc", False),
        ({"pattern": "a+"}, "xxaayy", True),
        ({"pattern": "^a$"}, "a\n", False),
        ({"pattern": "^\\u00e9$"}, "é", True),
        ({"pattern": "^\\p{L}+$"}, "é", True),
        ({"patternProperties": {"f.*o": {"type": "integer"}}}, {"foo": 1, "foooooo": 2}, True),
        ({"patternProperties": {"f.*o": {"type": "integer"}}}, {"foo": "bar"}, False),
        ({"patternProperties": {"^á": {}}, "additionalProperties": False}, {"ármányos": 2}, True),
        ({"patternProperties": {"^á": {}}, "additionalProperties": False}, {"élmény": 2}, False),
        ({"patternProperties": {"a": {}, "b": {}}, "additionalProperties": False}, {"x": 1}, False),
        ({"patternProperties": {"^f": {}}, "unevaluatedProperties": False}, {"foo": 1}, True),
        ({"patternProperties": {"^f": {}}, "unevaluatedProperties": False}, {"bar": 1}, False),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [1.0, 1.00, 1], False),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [True]}], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ({"properties": {"foo": {"$ref": "#"}}, "additionalProperties": False}, {"foo": {}}, True),
        (
            {"properties": {"foo": {"$ref": "#"}}, "additionalProperties": False},
            {"foo": {"bar": 1}},
            False,
        ),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, 1.0, False),
        ({"format": "ipv4"}, "x", True),
        (True, None, True),
        (False, None, False),
    ],
)
def test_cases_of_the_test_suite(schema: JsonValue, value: JsonValue, *, valid: bool) -> None:
    judgement = judge(SCHEMA, json.dumps(value), data=schema, extract="whole")
    assert (judgement.verdict == "correct") is valid


def test_formats_count_on_demand() -> None:
    assert judge(SCHEMA, '"x"', data={"format": "ipv4"}, formats=True).verdict == "incorrect"
    assert judge(SCHEMA, '"::1"', data={"format": "ipv6"}, formats=True).verdict == "correct"


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (1, "an object or a boolean"),
        ({"type": "number!"}, "type"),
        ({"$schema": "http://example.org/own"}, "not a known draft"),
        ({"$ref": "http://example.org/x.json"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "nothing is fetched"),
        ({"pattern": "(?=a)"}, "not one of RE2"),
        ({"patternProperties": {"(a)\\1": {}}}, "not one of RE2"),
        ({"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#"}]}, "another draft"),
        ({"$defs": {"a": {"x" * 200_001: 1}}}, "characters"),
        ({"$ref": "#"}, "without end"),
    ],
)
def test_schemas_that_cannot_be_used_are_faults(schema: JsonValue, what: str) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(SCHEMA, "1", data=schema)
    assert caught.value.reason == UNUSABLE_REFERENCE
    assert what in caught.value.message


def test_values_that_would_hold_up_a_validator_are_judged_at_once() -> None:
    """ReDoS in pattern and patternProperties, many items under uniqueItems, deep nesting."""
    evil = "(a+)+$"
    text = "a" * 60 + "!"
    cases: list[tuple[JsonValue, JsonValue]] = [
        ({"pattern": evil}, text),
        ({"patternProperties": {evil: {}}, "additionalProperties": False}, {text: 1}),
        ({"patternProperties": {evil: {}}, "unevaluatedProperties": False}, {text: 1}),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "properties": {"a": {"$ref": "#"}},
                "patternProperties": {evil: {}},
                "pattern": evil,
            },
            {"a": {"a": text}, text: text},
        ),
        ({"uniqueItems": True}, [{"a": number} for number in range(3_000)]),
        ({"items": {"$ref": "#"}}, json.loads("[" * 32 + "]" * 32)),
    ]
    began = time.process_time()
    for schema, value in cases:
        judge(SCHEMA, json.dumps(value), data=schema, extract="whole")
    assert time.process_time() - began < 3
    assert judge(SCHEMA, "[" * 33 + "]" * 33, data={}).verdict == "unparsed"
