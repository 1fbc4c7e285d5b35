"""`tool-call`: forms of calls, comparison as structures, references that cannot be used."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.reward_server.domain import Candidate, Judgement, Unjudgeable, VerifierItem
from assay.reward_server.verifiers.tool_call import equal, find_calls, tool_call

VERIFIER = tool_call
CALL = {"name": "f", "arguments": {"x": 1, "y": ["a", {"b": None}]}}
OTHER = {"name": "g", "arguments": {}}


def judge(response: str, reference: Any, **parameters: Any) -> Judgement:
    complete = VERIFIER.spec.complete(parameters)
    return VERIFIER.judge(VerifierItem(Candidate(response), data=reference, parameters=complete))


def tagged(*calls: Any) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def test_examples_get_their_verdicts() -> None:
    for example in VERIFIER.examples:
        assert VERIFIER.judge(example.item).verdict == example.verdict


@pytest.mark.parametrize(
    "response",
    [
        tagged(CALL),
        "<think>{}</think>Sure.\n" + tagged(CALL),
        "<tool_call>" + json.dumps(CALL),
        f"```json\n{json.dumps(CALL)}\n```",
        f"```\n{json.dumps([CALL])}\n```",
        json.dumps(CALL),
        json.dumps([CALL]),
        json.dumps({"name": "f", "parameters": CALL["arguments"]}),
        json.dumps({"function": {"name": "f", "arguments": json.dumps(CALL["arguments"])}}),
        '{"arguments": {"y": ["a", {"b": null}], "x": 1.0}, "name": "f"}',
    ],
)
def test_forms_of_a_call(response: str) -> None:
    for reference in (CALL, [CALL], {"calls": [CALL]}):
        assert judge(response, reference).reward == 1.0


@pytest.mark.parametrize(
    ("response", "reference", "parameters", "verdict", "reward"),
    [
        (tagged(OTHER, CALL), [CALL, OTHER], {}, "correct", 1.0),
        (tagged(OTHER, CALL), [CALL, OTHER], {"order": "same"}, "incorrect", 0.0),
        (tagged(CALL), [CALL, OTHER], {}, "partial", 0.0),
        (tagged(CALL), [CALL, OTHER], {"reward": "f1"}, "partial", 2 / 3),
        (tagged(CALL, CALL), [CALL], {}, "partial", 0.0),
        (tagged(CALL), {"calls": []}, {}, "incorrect", 0.0),
        ("No tool is needed.", {"calls": []}, {}, "correct", 1.0),
        ("f(x=1)", [CALL], {}, "unparsed", 0.0),
        ("<tool_call>{'name': 'g'}</tool_call>", [OTHER], {}, "incorrect", 0.0),
        ('<tool_call>{"name": "g", "name": "g"}</tool_call>', [OTHER], {}, "incorrect", 0.0),
        (tagged({"name": "g", "arguments": {"z": 1}}), [OTHER], {}, "incorrect", 0.0),
        (tagged({"name": "G"}), [OTHER], {"strings": "loose"}, "incorrect", 0.0),
        (tagged(*[OTHER] * 65), [OTHER], {}, "incorrect", 0.0),
        (tagged(OTHER) + "<tool_call>NaN</tool_call>", [OTHER], {}, "partial", 0.0),
    ],
)
def test_calls(response: str, reference: Any, parameters: Any, verdict: str, reward: float) -> None:
    judgement = judge(response, reference, **parameters)
    assert (judgement.verdict, judgement.reward) == (verdict, pytest.approx(reward))


def test_optional_arguments_and_further_values() -> None:
    reference = {
        "name": "w",
        "arguments": {"city": "San Francisco", "unit": "C"},
        "optional": ["unit"],
        "accept": {"city": ["SF"]},
    }
    assert judge(tagged({"name": "w", "arguments": {"city": "SF"}}), reference).reward == 1.0
    assert judge(tagged({"name": "w", "arguments": {"unit": "C"}}), reference).reward == 0.0
    wrong = {"name": "w", "arguments": {"city": "SF", "unit": "F"}}
    assert judge(tagged(wrong), reference).reward == 0.0
    shout = {"name": "w", "arguments": {"city": " sf"}}
    assert judge(tagged(shout), reference).reward == 0.0
    assert judge(tagged(shout), reference, strings="loose").reward == 1.0


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


@given(values, values)
def test_equality_is_that_of_json(a: Any, b: Any) -> None:
    assert equal(a, a)
    assert equal(a, b) == equal(b, a)
    assert equal(a, json.loads(json.dumps(a)))


@pytest.mark.parametrize(
    ("a", "b"), [(1, True), (0, False), (None, False), ("1", 1), ([], {}), ([1, 2], [2, 1])]
)
def test_kinds_are_kept_apart(a: Any, b: Any) -> None:
    assert not equal(a, b)
    assert not equal({"x": a}, {"x": b})


@given(st.text(alphabet='{}[]",:<>tool_call/ \n`1a', max_size=300))
def test_any_text_is_read(text: str) -> None:
    find_calls(text)


@pytest.mark.parametrize(
    "reference",
    [3, [3], [{}], [{"name": 1}], [{"name": "f", "arguments": 3}], [OTHER] * 65, {"calls": 1},
     [{"name": "f", "arguments": "{"}], [{"name": "f", "optional": ["x"]}],
     [{"name": "f", "arguments": {"x": 1}, "accept": {"x": 1}}]],
)  # fmt: skip
def test_unusable_references(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(tagged(OTHER), reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


@pytest.mark.parametrize(
    "text",
    ["[" * 10**6, "<tool_call>" * 90_000, '{"a":' * 200_000, "`" * 10**6, "```\n" * 250_000,
     "<tool_call>" + "9" * 10**6, "[" + "1," * 500_000],
)  # fmt: skip
def test_a_million_characters_are_read_at_once(text: str) -> None:
    started_s = time.process_time()
    judge(text, [CALL])
    assert time.process_time() - started_s < 1  # what is not linear takes minutes
