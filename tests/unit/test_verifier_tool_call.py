"""`tool-call`: forms of calls, comparison as structures, references that cannot be used."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from bench.tool_formats import DEEPSEEK, RENDERERS, UNTYPED, hermes, python
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.json_text import MAX_CHARS
from assay.kit.tool_calls.dialects import FORMATS, MARKS, read_calls
from assay.kit.tool_calls.pythonic import read_python
from assay.reward_server.domain import Candidate, Judgement, Message, Unjudgeable, VerifierItem
from assay.reward_server.domain import ToolCall as Structured
from assay.reward_server.verifiers.tool_call.comparison import equal, same
from assay.reward_server.verifiers.tool_call.verifier import tool_call

VERIFIER = tool_call
CALL = {"name": "f", "arguments": {"x": 1, "y": ["a", {"b": None}]}}
OTHER = {"name": "g", "arguments": {}}
WEATHER: dict[str, Any] = {"city": "Oslo", "days": 3, "hourly": True, "fields": ["wind", "rain"]}
FORMAT_NAMES = sorted(RENDERERS)


def judged(candidate: Candidate, reference: Any, **parameters: Any) -> Judgement:
    complete = VERIFIER.spec.complete(parameters)
    return VERIFIER.judge(VerifierItem(candidate, data=reference, parameters=complete))


def judge(response: str, reference: Any, **parameters: Any) -> Judgement:
    return judged(Candidate(response), reference, **parameters)


def tagged(*calls: Any) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def rendered(name: str, *calls: tuple[str, dict[str, Any]]) -> str:
    return RENDERERS[name][1](list(calls))


def test_examples_get_their_verdicts() -> None:
    for example in VERIFIER.examples:
        assert VERIFIER.judge(example.item).verdict == example.verdict


def test_every_format_is_rendered_here() -> None:
    assert {dialect for dialect, _ in RENDERERS.values()} == FORMATS.keys()
    assert {mark.dialect for mark in MARKS} <= FORMATS.keys()
    assert len(FORMATS) >= 14


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("around", ["{}", "<think>I could call f(x=1).</think>{}", "\n{}\n"])
def test_the_right_calls_in_each_format(name: str, around: str) -> None:
    response = around.format(rendered(name, ("weather", WEATHER), ("time.now", {"zone": "CET"})))
    reference = [
        {"name": "weather", "arguments": WEATHER},
        {"name": "time.now", "arguments": {"zone": "CET"}},
    ]
    judgement = judge(response, reference)
    assert (judgement.verdict, judgement.reward) == ("correct", 1.0), judgement.explanation
    dialect = RENDERERS[name][0]
    assert judge(response, reference, format=dialect).reward == 1.0
    assert judge(response, {"calls": []}).reward == 0.0


WRONG: dict[str, dict[str, Any]] = {
    "another value": {**WEATHER, "days": 4},
    "another text": {**WEATHER, "city": "Rome"},
    "another type": {**WEATHER, "days": "three"},
    "another order of a list": {**WEATHER, "fields": ["rain", "wind"]},
    "one missing": {key: WEATHER[key] for key in ("city", "days", "hourly")},
    "one more": {**WEATHER, "unit": "C"},
    "truth as a number": {**WEATHER, "hourly": 1},
}


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("what", sorted(WRONG))
def test_a_wrong_call_in_each_format(name: str, what: str) -> None:
    reference = {"name": "weather", "arguments": WEATHER}
    assert judge(rendered(name, ("weather", WRONG[what])), reference).verdict == "incorrect"


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_another_name_and_another_number_of_calls(name: str) -> None:
    reference = {"name": "weather", "arguments": WEATHER}
    assert judge(rendered(name, ("climate", WEATHER)), reference).reward == 0.0
    twice = judge(rendered(name, ("weather", WEATHER), ("weather", WEATHER)), reference)
    assert (twice.verdict, twice.reward) == ("partial", 0.0)


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("cut", [1, 4, 9, 20])
def test_a_call_that_is_cut_is_never_another_call(name: str, cut: int) -> None:
    """The end of a response is lost: what is read is the same calls, fewer, or none that can be."""
    whole = rendered(name, ("weather", WEATHER))
    reading = read_calls(whole[:-cut])
    assert all(call is None or call.name == "weather" for call in reading.calls)
    judgement = judge(whole[:-cut], {"name": "weather", "arguments": WEATHER})
    assert judgement.reward in (0.0, 1.0)
    half = judge(whole[: len(whole) * 2 // 3], {"name": "weather", "arguments": WEATHER})
    assert half.reward == 0.0


names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: read_python(f"{name}()") is not None
)
words = st.text(alphabet="abcXYZ 0123456789äß漢.,:;?!/@#%&*()+-=", max_size=12).map(str.strip)
numbers = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6, allow_nan=False).map(
    lambda value: round(value, 3)
)
values = st.recursive(
    words | numbers | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
calls_made = st.lists(
    st.tuples(names, st.dictionaries(names, values, max_size=4)), min_size=1, max_size=4
)


@given(st.sampled_from(FORMAT_NAMES), calls_made)
def test_what_a_format_writes_is_read(name: str, made: list[Any]) -> None:
    """read(render(calls)) == calls, for each format; texts without types by the right value."""
    dialect, render = RENDERERS[name]
    reading = read_calls(render(made))
    assert reading.dialects == {dialect}
    assert [call and call.name for call in reading.calls] == [name for name, _ in made]
    for call, (_, arguments) in zip(reading.calls, made, strict=True):
        assert call is not None
        assert call.arguments.keys() == arguments.keys()
        assert all(same(call.arguments[key], value) for key, value in arguments.items())
        if dialect not in UNTYPED:
            assert equal(dict(call.arguments), arguments)  # type: ignore[arg-type]  # has types


@given(st.sampled_from(FORMAT_NAMES), st.sampled_from(FORMAT_NAMES), calls_made)
def test_nobody_guesses_twice(first: str, second: str, made: list[Any]) -> None:
    """Calls in two formats earn nothing, whichever of them is right.

    What is read as one format's counts as a whole: a bare object behind granite's mark is a call.
    """
    one, two = (RENDERERS[name][1](made) for name in (first, second))
    if RENDERERS[first][0] == RENDERERS[second][0]:
        return
    reference = [{"name": name, "arguments": given} for name, given in made]
    found = judge(f"{one}\n{two}", [*reference, *reference], reward="f1")
    whole = judge(f"{one}\n{two}", reference)
    read = read_calls(f"{one}\n{two}")
    assert found.reward < 1.0 or len(read.dialects) == 1
    assert len(read.dialects) != 1 or whole.reward == 0.0 or len(read.calls) == len(made)


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
        "f(x=1, y=['a', {'b': None}])",
        "`[f(x=1, y=['a', {'b': None}])]`",
        "<think>[f(x=2)]</think>[f(y=('a', {'b': None}), x=1)]",
        "[THINK]f(x=2)[/THINK]" + tagged(CALL),
        "<|channel>thought\nf(x=2)<tool_call>{}</tool_call><channel|>" + tagged(CALL),
        "Like this:\n```json\n[]\n```\n" + tagged(CALL),
        tagged(CALL) + "<|im_end|>\n<|im_start|>user\n" + tagged(OTHER),
        tagged(CALL) + "</s>",
    ],
)
def test_forms_of_a_call(response: str) -> None:
    for reference in (CALL, [CALL], {"calls": [CALL]}):
        assert judge(response, reference).reward == 1.0


BAD = '<tool_call>{"name": "g", "arguments": {'
INSIDE = {
    "name": "write",
    "arguments": {"text": "</tool_call><invoke name='g'>[TOOL_CALLS]g[ARGS]{}"},
}


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
        ("[]", {"calls": []}, {}, "correct", 1.0),
        (BAD, {"calls": []}, {}, "incorrect", 0.0),
        ("```python\nprint('hello')\n```", {"calls": []}, {}, "correct", 1.0),
        ('{"name": "Ada", "age": 36}', {"calls": []}, {}, "correct", 1.0),
        ("<think>I may call <tool_call>{}</tool_call></think>No.", {"calls": []}, {}, "correct", 1),
        ("<think>" + tagged(OTHER), {"calls": []}, {}, "unparsed", 0.0),
        ("<think>" + tagged(OTHER), [OTHER], {}, "unparsed", 0.0),
        ("f(x=1)", [CALL], {}, "incorrect", 0.0),
        ("I call f(x=1) now.", [CALL], {}, "unparsed", 0.0),
        ("<tool_call>{'name': 'g'}</tool_call>", [OTHER], {}, "incorrect", 0.0),
        ('<tool_call>{"name": "g", "name": "g"}</tool_call>', [OTHER], {}, "incorrect", 0.0),
        (tagged({"name": "g", "arguments": {"z": 1}}), [OTHER], {}, "incorrect", 0.0),
        (tagged({"name": "G"}), [OTHER], {"strings": "loose"}, "incorrect", 0.0),
        (tagged(*[OTHER] * 65), [OTHER], {}, "incorrect", 0.0),
        (tagged(OTHER) + "<tool_call>{NaN}</tool_call>", [OTHER], {}, "partial", 0.0),
        (tagged(OTHER) + "[TOOL_CALLS]g[ARGS]{}", [OTHER], {}, "incorrect", 0.0),
        (tagged(OTHER) + "[TOOL_CALLS]g[ARGS]{}", [OTHER, OTHER], {"reward": "f1"}, "incorrect", 0),
        (tagged(INSIDE), [INSIDE], {}, "correct", 1.0),
        ("```\n" + tagged(CALL) + "\n```\n" + tagged(OTHER), [OTHER], {}, "partial", 0.0),
        ("```json\n" + json.dumps(CALL) + "\n```\n" + tagged(OTHER), [OTHER], {}, "correct", 1.0),
        ("Action: g\nAction Input: {}\nObservation: 1\nAction: f\nAction Input: {}", [OTHER], {},
         "correct", 1.0),
        ("Action: g\nAction Input: now", [OTHER], {}, "incorrect", 0.0),
        ("<tool_call>g</tool_call>", [OTHER], {}, "correct", 1.0),
        ("✿FUNCTION✿: g ✿ARGS✿: {}", [OTHER], {}, "correct", 1.0),
        ("<invoke name='f'><parameter name='x'>a\n</parameter></invoke>",
         {"name": "f", "arguments": {"x": "a\n"}}, {}, "correct", 1.0),
        ("<function=f><parameter=x>\na\n\n</parameter></function>",
         {"name": "f", "arguments": {"x": "a\n"}}, {}, "correct", 1.0),
        ("<function=f><parameter=x>1</parameter><parameter=x>1</parameter></function>",
         {"name": "f", "arguments": {"x": 1}}, {}, "incorrect", 0.0),
        ("<|channel|>final<|message|>" + tagged(OTHER), {"calls": []}, {}, "correct", 1.0),
    ],
)  # fmt: skip
def test_calls(response: str, reference: Any, parameters: Any, verdict: str, reward: float) -> None:
    judgement = judge(response, reference, **parameters)
    assert (judgement.verdict, judgement.reward) == (verdict, pytest.approx(reward))


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_right_calls_in_an_excluded_format_are_a_fault_and_wrong_ones_a_verdict(name: str) -> None:
    reference = {"name": "weather", "arguments": WEATHER}
    excluding = [f for f, dialects in FORMATS.items() if RENDERERS[name][0] not in dialects]
    for named in [*excluding, "structured"]:
        with pytest.raises(Unjudgeable) as caught:
            judge(rendered(name, ("weather", WEATHER)), reference, format=named)
        assert caught.value.reason == "UNSUPPORTED_INPUT"
        for wrong in WRONG.values():
            judgement = judge(rendered(name, ("weather", wrong)), reference, format=named)
            assert (judgement.verdict, judgement.reward) == ("unparsed", 0.0)
        right = rendered(name, ("weather", WEATHER))
        learnt = judge(right, reference, format=named, excluded="unparsed")
        assert (learnt.verdict, learnt.reward) == ("unparsed", 0.0)
        assert judge(rendered(name, ("weather", WEATHER)), {"calls": []}, format=named).reward == 0


def test_structured_calls_are_what_was_called() -> None:
    made = (Structured("f", json.dumps(CALL["arguments"])), Structured("g", {}))
    for text in ("", "Sure.", tagged(OTHER), "[TOOL_CALLS]h[ARGS]{}"):
        for named in ("auto", "structured", "hermes"):
            candidate = Candidate(text, calls=made)
            assert judged(candidate, [CALL, OTHER], format=named).reward == 1.0
            assert judged(candidate, {"calls": []}, format=named).reward == 0.0
    broken = Candidate("", calls=(Structured("g", '{"x": '),))
    assert judged(broken, [OTHER]).verdict == "incorrect"
    assert judged(Candidate("No."), [OTHER], format="structured").verdict == "unparsed"


def test_the_calls_of_a_dialogue_are_those_of_the_policys_turns() -> None:
    turns = (
        Message("assistant", "", True, (Structured("f", CALL["arguments"]),)),
        Message("tool", tagged(CALL)),
        Message("assistant", tagged(OTHER), True),
        Message("assistant", "Done.", True),
    )
    mixed = judged(Candidate(turns=turns), [CALL, OTHER])
    assert mixed.verdict == "incorrect"  # structured and in the text: two formats
    said = (Message("assistant", tagged(CALL), True), *turns[1:])
    assert judged(Candidate(turns=said), [CALL, OTHER], order="same").reward == 1.0
    assert judged(Candidate(turns=said[1:]), [CALL, OTHER]).verdict == "partial"


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


def test_partial_orders() -> None:
    one, two, three = ({"name": name, "arguments": {}} for name in ("a", "b", "c"))
    reference = [one, two, {**three, "after": [0]}]
    for order in ([one, two, three], [one, three, two], [two, one, three]):
        assert judge(tagged(*order), reference).reward == 1.0
    for order in ([three, one, two], [three, two, one], [two, three, one]):
        judgement = judge(tagged(*order), reference)
        assert (judgement.verdict, judgement.reward) == ("partial", 0.0)
    again = [one, two, {**one, "after": [1]}]  # a before and after b
    assert judge(tagged(one, two, one), again).reward == 1.0
    assert judge(tagged(one, one, two), again).reward == 0.0


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "book",
            "parameters": {
                "type": "object",
                "properties": {
                    "seats": {"type": "integer", "minimum": 1},
                    "row": {"type": "string", "pattern": "^[A-Z]$"},
                    "window": {"type": "boolean", "default": False},
                    "extras": {"type": "array", "items": {"type": "string"}},
                    "code": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["seats", "row"],
                "additionalProperties": False,
            },
        },
    },
    {"name": "cancel", "input_schema": {"type": "object", "properties": {}}},
]
BOOKED: dict[str, Any] = {"seats": 2, "row": "7", "extras": ["tea"]}


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_types_by_schema(name: str) -> None:
    arguments = {"seats": 2, "row": "F", "extras": ["tea"], "code": "12"}
    reference = {"calls": [{"name": "book", "arguments": arguments}], "tools": TOOLS}
    assert judge(rendered(name, ("book", arguments)), reference).reward == 1.0
    with_default = {**arguments, "window": False}
    assert judge(rendered(name, ("book", with_default)), reference).reward == 1.0
    asked = {"calls": [{"name": "book", "arguments": with_default}], "tools": TOOLS}
    assert judge(rendered(name, ("book", arguments)), asked).reward == 1.0
    for wrong in ({"window": True}, {"seats": 3}, {"extras": "tea"}, {"code": None}, {"more": 1}):
        assert judge(rendered(name, ("book", {**arguments, **wrong})), reference).reward == 0.0
    loose = judge(rendered(name, ("book", {**arguments, "row": "f"})), reference, strings="loose")
    assert loose.reward == 0.0, "equal without case, but not by the schema's pattern"


def test_a_text_of_a_type_is_not_of_another() -> None:
    reference = {"calls": [{"name": "book", "arguments": {"seats": 2, "row": "F"}}], "tools": TOOLS}
    text = "<function=book><parameter=seats>{}</parameter><parameter=row>F</parameter></function>"
    assert judge(text.format("2"), reference).reward == 1.0
    assert judge(text.format('"2"'), reference).reward == 0.0
    assert judge(text.format("2.5"), reference).reward == 0.0
    assert (
        judge(tagged({"name": "book", "arguments": {"seats": "2", "row": "F"}}), reference).reward
        == 0
    )


def test_any_call_of_a_tool() -> None:
    reference = {"calls": "any", "tools": TOOLS}
    assert judge(tagged({"name": "cancel"}), reference).reward == 1.0
    for name, arguments in (("book", {}), ("book", {"seats": 0, "row": "F"}), ("other", {})):
        assert judge(tagged({"name": name, "arguments": arguments}), reference).reward == 0.0
    assert judge("No call.", reference).verdict == "unparsed"
    assert judge(tagged({"name": "other"}), {"calls": "any"}).reward == 1.0
    assert judge(BAD, {"calls": "any"}).reward == 0.0


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
anything = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


@given(anything, anything)
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


@pytest.mark.parametrize(
    "text",
    ["f(1)", "f(*x)", "f(**x)", "f(x=y)", "f(x=true)", "f(x=[y for y in z])", "f(x=lambda: 0)",
     "f(x=1 + 1)", "f(x=g())", "f(x=b'a')", "f(x=f'a')", "f(x={1: 2})", "f(x={'a': 1, 'a': 2})",
     "f(x=1)(y=2)", "f.g(x=1).h()", "f(x=1e999)", "f(x=1j)", "f(x=--1)", "f(x=...)", "f(x={1})",
     "__import__('os').system('true')", "f(x=__import__('os'))", "f(x=1, x=2)", "f[0](x=1)"],
)  # fmt: skip
def test_what_is_no_literal_is_no_right_call(text: str) -> None:
    calls = read_python(text)
    assert calls is None or calls == [None]
    assert judge(text, [{"name": "f", "arguments": {"x": 1}}]).reward == 0.0


BOMBS = [
    "f(x=" + "(" * 100_000 + ")" * 100_000 + ")",
    "f(x=" + "[" * 100_000,
    "f(x=" + "-" * 150_000 + "1)",
    "f(x=" + "not " * 40_000 + "1)",
    "f" + ".f" * 90_000 + "()",
    "f" + "()" * 90_000,
    "f(x=" + "9" * 150_000 + ")",
    "f(x=" + "lambda:" * 25_000 + "0)",
    "f(x=" + "{'a':" * 30_000 + "1" + "}" * 30_000 + ")",
    "f(x=" + "1+" * 90_000 + "1)",
    "f(x=" + "'a' " * 40_000 + ")",
    "[" + "f()," * 45_000 + "]",
    "f(x='" + "\\" * 150_000 + "')",
    "f(x='''" + "'" * 150_000,
    "f(x=" + "x if x else " * 15_000 + "x)",
    "f(x=" + "a[" * 60_000 + "]" * 60_000 + ")",
    "\n".join(["f()"] * 45_000),
    "f(x=[" + "1," * 90_000 + "])",
]


@pytest.mark.parametrize("text", BOMBS, ids=[text[:12] for text in BOMBS])
def test_bombs_of_pythons_syntax_are_read_at_once(text: str) -> None:
    started_s = time.process_time()
    assert judge(text, [CALL]).reward == 0.0
    assert time.process_time() - started_s < 1


@given(st.text(alphabet='{}[]",:<>tool_call/ \n`1a()=', max_size=300))
def test_any_text_is_read(text: str) -> None:
    read_calls(text)


pieces = st.sampled_from(
    [mark.opens.replace("\\", "") for mark in MARKS]
    + [mark.closes for mark in MARKS if mark.closes]
    + ["{", "}", "[", "]", '"name": "f"', '"arguments": ', "f", "\n", " ", "<parameter=x>", "```"]
    + ["</parameter>", '<invoke name="f">', '<parameter name="x">', "<arg_key>", "</arg_key>"]
    + ["<|message|>", "to=functions.f", "call:f{", '<|"|>', "[ARGS]", "Action: f\n", "f(x=1)", ";"]
    + [DEEPSEEK.format("tool▁sep"), "<|tool_call_argument_begin|>", "Action Input:", "</think>"]
)


@given(st.lists(pieces, max_size=30).map("".join))
def test_any_mess_of_marks_is_read(text: str) -> None:
    reading = read_calls(text)
    assert bool(reading.calls) <= bool(reading.dialects)


@pytest.mark.parametrize(
    "reference",
    [3, [3], [{}], [{"name": 1}], [{"name": "f", "arguments": 3}], [OTHER] * 65, {"calls": 1},
     [{"name": "f", "arguments": "{"}], [{"name": "f", "optional": ["x"]}],
     [{"name": "f", "arguments": {"x": 1}, "accept": {"x": 1}}],
     [OTHER, {**OTHER, "after": [1]}], [{**OTHER, "after": 0}],
     {"calls": [OTHER], "tools": [{"name": "h"}]}, {"calls": [OTHER], "tools": 3},
     {"calls": [{"name": "book", "arguments": {"seats": 0, "row": "F"}}], "tools": TOOLS},
     {"calls": [OTHER], "tools": [{"name": "g", "parameters": {"type": "nonsense"}}]},
     {"ground_truth": 1}, {"ground_truth": [{"f": {"x": 1}}], "function": []},
     {"ground_truth": [], "language": "cobol"}],
)  # fmt: skip
def test_unusable_references(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(tagged(OTHER), reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


MARKS_OPEN = sorted({mark.opens.replace("\\", "") for mark in MARKS if "(" not in mark.opens})
HOSTILE = [
    "[" * 10**6, "<tool_call>" * 90_000, '{"a":' * 200_000, "`" * 10**6, "```\n" * 250_000,
    "<tool_call>" + "9" * 10**6, "[" + "1," * 500_000, "a" * 10**6, "Action: f\n" * 100_000,
    tagged(OTHER) * 20_000, "[g()]" * 200_000, '<invoke name="' * 70_000, "<|channel|>" * 90_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
@pytest.mark.parametrize("length", [MAX_CHARS, 2**20])
def test_a_million_characters_are_read_at_once(text: str, length: int) -> None:
    started_s = time.process_time()
    assert judge(text[:length], [CALL]).reward == 0.0
    assert time.process_time() - started_s < 1  # what is not linear takes minutes


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS_OPEN)
@pytest.mark.parametrize(
    "filling", ["", "{", '{"', "[[", '{"name": "f", "arguments": {}}', "f\n", "[],", "f(x="]
)
def test_each_mark_a_hundred_thousand_times(mark: str, filling: str) -> None:
    piece = mark + filling
    text = (piece * 10**5)[:MAX_CHARS]
    started_s = time.process_time()
    assert judge(text, [CALL]).reward == 0.0
    assert judge(mark + filling * 20_000, [CALL]).reward == 0.0
    assert time.process_time() - started_s < 1


def test_a_response_over_the_bound_is_unparsed() -> None:
    long = " " * (MAX_CHARS + 1) + tagged(OTHER)
    for wanted in ([OTHER], {"calls": []}):
        assert judge(long, wanted).verdict == "unparsed"
    huge = (Structured("g", " " * MAX_CHARS + "{}"),) * 100
    assert judged(Candidate("", calls=huge), [OTHER]).verdict == "unparsed"
    assert judge("x" * MAX_CHARS + "</think>" + tagged(OTHER), [OTHER]).reward == 1.0


def test_helpers_render_what_they_say() -> None:
    assert hermes([("f", {"x": 1})]) == tagged({"name": "f", "arguments": {"x": 1}})
    assert python([("f", {"x": True, "y": "a"})]) == "f(x=True, y='a')"


@pytest.mark.parametrize("end", ["", "<|eom_id|>"])
def test_llamas_own_tools_are_called_by_their_names(end: str) -> None:
    wanted = {"name": "brave_search", "arguments": {"query": "fjords"}}
    right = f'<|python_tag|>brave_search.call(query="fjords"){end}'
    assert judge(right, wanted).verdict == "correct"
    assert judge(right.replace("fjords", "fords"), wanted).verdict == "incorrect"
    assert judge(right.replace("brave", "bold"), wanted).verdict == "incorrect"
