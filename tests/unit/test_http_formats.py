"""What goes in and out of each format, without a server."""

from __future__ import annotations

import contextlib
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from assay.api.reward.v1 import reward_pb2
from assay.compat import nemo_gym, openrlhf, slime
from assay.compat.graders import face as graders
from assay.compat.graders import formula, grading
from assay.compat.items import fault_of
from assay.kit.errors import BadRequestError, CallError, make_status, refuse
from assay.kit.http import codec as kit_codec
from assay.kit.http import pages, problems
from assay.kit.http.app import document_of
from assay.kit.http.config import HttpConfig
from assay.kit.http.faces import load_faces, routes_of
from assay.kit.reasons import LEXICON, Reason
from assay.reward_server.http import codec, native
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.site import SITE, shipped_schemas

MATH = ("math", "")
texts = st.text(st.characters(codec="utf-8"), max_size=30)


def judged(reward: float = 0.0, **scores: float) -> reward_pb2.Result:
    result = reward_pb2.Result(id="0")
    result.judgement.reward = reward
    result.judgement.verdict = "fine"
    for name, score in scores.items():
        result.judgement.components.add(name=name, score=score, weight=1.0)
    return result


def faulted(reason: str = "WORKER_DIED") -> reward_pb2.Result:
    return reward_pb2.Result(id="0", fault=make_status(reason, "it died"))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def results(draw: st.DrawFn) -> reward_pb2.Result:
    labels = draw(st.dictionaries(texts, texts, max_size=2))
    result = reward_pb2.Result(id=draw(texts), from_cache=draw(st.booleans()), labels=labels)
    if draw(st.booleans()):
        result.timings.queue.FromNanoseconds(draw(st.integers(0, 10**11)))
    if draw(st.booleans()):
        result.timings.execution.SetInParent()
    judgement = result.judgement
    judgement.reward, judgement.verdict = draw(numbers), draw(texts)
    judgement.SetInParent()
    for name in draw(st.lists(texts, max_size=2)):
        judgement.components.add(name=name, score=draw(numbers), weight=draw(numbers))
        judgement.suspicions.append(name)
    if draw(st.booleans()):
        judgement.extracted_answer = draw(texts)
        judgement.verifier.name = draw(texts)
    if draw(st.booleans()):
        judgement.spans.add(reward=draw(numbers), label="step")
        judgement.judge_usage.prompt_tokens = draw(st.integers(0, 2**40))
    return result


@given(results())
def test_a_result_survives_its_json(result: reward_pb2.Result) -> None:
    said = codec.result_as_dict(result)
    assert said == kit_codec.as_dict(result), "the short road and the long one"
    assert json_format.ParseDict(json.loads(native.answer(result)), reward_pb2.Result()) == result


@given(st.lists(st.fixed_dictionaries(
    {"id": texts}, optional={name: texts | st.none() for name in
                  ("verifier", "task", "response", "groupId", "truncated")}
    | {"reference": st.fixed_dictionaries({}, optional={"text": texts, "anchor_response": texts})
       | st.none(),
       "labels": st.dictionaries(texts, texts, max_size=2) | st.none()},
), max_size=3))  # fmt: skip
def test_items_are_read_as_protobuf_reads_them(items: list[dict[str, Any]]) -> None:
    body = json.dumps({"items": items}).encode()
    try:
        wanted = json_format.ParseDict({"items": items}, reward_pb2.BatchScoreRequest())
    except json_format.ParseError:
        with pytest.raises(BadRequestError):
            codec.read_batch(body)
    else:
        assert codec.read_batch(body) == wanted


def test_a_reward_of_zero_is_written() -> None:
    assert json.loads(native.answer(judged(0.0)))["judgement"]["reward"] == 0.0


@given(st.binary(max_size=60) | st.recursive(
    st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["items", "id", "response", "reference", "timeout"]), inner),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_body_is_a_batch_or_refused(body: bytes) -> None:
    refused: list[CallError] = []
    try:
        codec.read_batch(body)
    except CallError as error:
        refused.append(error)
    assert all(error.reason == Reason.MALFORMED_REQUEST for error in refused)
    assert not any("\n" in str(error) for error in refused)


@pytest.mark.parametrize(
    "body",
    [b'{"items":[{"id":NaN}]}', b'{"items":1e999}', b'{"items":[{"response":"\\ud800"}]}',
     b"\xff", b"", b"[" * 100_000],
)  # fmt: skip
def test_what_json_cannot_hold_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError, match="body"):
        codec.read_batch(body)


# OpenRLHF


@given(st.lists(st.tuples(texts.filter(bool), texts, texts), min_size=1, max_size=4))
def test_a_query_is_split_where_its_prompt_ends(rows: list[tuple[str, str, str]]) -> None:
    body = {
        "query": [f"<s>{prompt}{response}</s>" for prompt, response, _ in rows],
        "prompts": [prompt for prompt, _, _ in rows],
        "labels": [label for _, _, label in rows],
    }
    items = openrlhf.read(body, MATH)
    assert [item.id for item in items] == [str(index) for index in range(len(rows))]
    assert [item.reference.text for item in items] == [label for _, _, label in rows]
    for item, query, prompt in zip(items, body["query"], body["prompts"], strict=True):
        assert query.partition(prompt)[2].removesuffix("</s>").startswith(item.response)


def test_a_response_is_what_follows_the_mark_without_end_tokens() -> None:
    query = "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n"
    body = {"query": [query], "prompts": ["2+2?"], "labels": [4]}
    (item,) = openrlhf.read(body, MATH, "<|im_start|>assistant\n")
    assert (item.response, item.reference.text) == ("4", "4")
    (bare,) = openrlhf.read({"query": ["4"], "prompts": [], "labels": []}, MATH)
    assert bare.response == "4"
    assert not bare.HasField("reference")


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        ({"query": ["x"], "prompts": ["y"]}, "does not hold its prompt"),
        ({"query": ["x"], "prompts": ["x", "x"]}, "prompts has 2 entries, query has 1"),
        ({"query": "x"}, "must be a list"),
        ({"query": []}, "at least one"),
        ({"query": [1]}, "lists of texts"),
    ],
)
def test_a_bad_request_of_openrlhf_is_refused(body: dict[str, Any], trouble: str) -> None:
    with pytest.raises(BadRequestError, match=trouble):
        openrlhf.read(body, MATH)


def test_openrlhf_gets_lists_of_equal_length() -> None:
    parts = [judged(1.0, match=1.0, form=0.5), judged(0.0, match=0.0)]
    assert openrlhf.answer([one.judgement for one in parts]) == {
        "rewards": [1.0, 0.0],
        "scores": [1.0, 0.0],
        "extra_logs": {"match": [1.0, 0.0]},
    }


# slime


def test_slime_sends_any_label_and_gets_a_number_or_an_object() -> None:
    labels: list[Any] = ["4", 4, ["4", "four"], {"a": [1, None]}, None]
    items = [slime.read({"prompt": "2+2", "response": "4", "label": one}, MATH) for one in labels]
    kinds = [item.reference.WhichOneof("kind") for item in items]
    assert kinds == ["text", "text", "texts", "data", None]
    chat = [{"role": "user", "content": [{"type": "text", "text": "2+"}, {"text": "2"}]}]
    assert slime.read({"prompt": chat, "response": ""}, MATH).prompt[0].content == "2+2"
    judgement = judged(0.5, match=0.5).judgement
    assert slime.answer(judgement, as_dict=False) == 0.5
    told = slime.answer(judgement, as_dict=True)
    assert isinstance(told, dict)
    assert (told["score"], told["components"]) == (0.5, {"match": 0.5})
    with pytest.raises(BadRequestError, match="response"):
        slime.read({"prompt": "x"}, MATH)


# NeMo Gym


def rollout(text: str = "4", **fields: Any) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    output = [
        {"type": "reasoning", "id": "r", "summary": [{"text": "hidden", "type": "summary_text"}]},
        {"type": "message", "role": "assistant", "content": parts},
    ]
    return {"responses_create_params": {"input": "2+2?"}, "response": {"output": output}, **fields}


@pytest.mark.parametrize(
    ("fields", "verifier", "kind"),
    [
        ({"expected_answer": "4"}, "math", "text"),
        ({"options": [{"A": "3"}, {"B": "4"}], "expected_answer": "B"}, "choice", "text"),
        ({"instruction_id_list": ["a"], "kwargs": [{}]}, "ifeval", "data"),
        ({"verifier_metadata": {"instruction_id_list": ["a"], "kwargs": [{}]}}, "ifeval", "data"),
        ({"verifier": {"type": "citation_if", "valid_id_set": ["a"]}}, "citations", "data"),
        ({"verifier": {"type": "other"}, "expected_answer": "4"}, "math", "text"),
        ({"schema_str": "{}", "schema_type": "json"}, "json-schema", "data"),
        ({"extraction_mode": [], "expected_answer": "4"}, "math", "text"),
        ({"extraction_mode": "boxed", "expected_answer": "4"}, "match", "text"),
        ({"question": "q", "answer": "a", "metadata": {"source_dataset": "x"}}, "reasoning-gym",
         "data"),
        ({"verifier_metadata": {"unit_tests": {"inputs": ["1"], "outputs": ["1"]}}}, "code",
         "tests"),
        ({"verifier_metadata": {"unit_tests": {"inputs": ["[1]\n2"], "outputs": ["3"],
                                               "fn_name": "f"}}}, "code", "tests"),
    ],
)  # fmt: skip
def test_the_fields_of_a_rollout_say_who_judges(
    fields: dict[str, Any], verifier: str, kind: str
) -> None:
    item = nemo_gym.read(rollout(**fields), ("", ""))
    assert (item.verifier, item.reference.WhichOneof("kind")) == (verifier, kind)
    assert (item.response, item.prompt[0].content) == ("4", "2+2?")
    assert nemo_gym.read(rollout(**fields), ("exact", "")).verifier == "exact"


def test_a_failed_row_is_masked_and_routed() -> None:
    body = rollout(expected_answer="4")
    row = nemo_gym.answer(body, faulted())
    assert row["reward"] == 0.0
    assert row["_ng_failure_class"] == "judge_failed"
    assert row["_ng_failure_judge_error"] == "WORKER_DIED: it died"
    assert row["mask_sample"] is row["instance_config"]["mask_sample"] is True
    assert "_ng_failure_terminal" not in row
    assert nemo_gym.answer(body, faulted("MISSING_REFERENCE"))["_ng_failure_terminal"] is True
    good = nemo_gym.answer(body, judged(1.0, match=1.0))
    assert good == {**body, "reward": 1.0, "reward_components": {"match": 1.0}, "verdict": "fine"}


def test_a_row_that_is_verified_again_is_a_judgement_or_a_fault() -> None:
    body = rollout(expected_answer="4", instance_config={"seed": 1})
    failed = nemo_gym.answer(body, faulted("MISSING_REFERENCE"))
    good = nemo_gym.answer(failed, judged(1.0, match=1.0))
    said = {"reward": 1.0, "reward_components": {"match": 1.0}, "verdict": "fine"}
    assert good == {**body, **said}
    again = nemo_gym.answer({**good, "extracted_answer": "4"}, faulted("MISSING_REFERENCE"))
    assert again == failed
    others = {**body, "_ng_failure_class": "agent_failed", "mask_sample": True}
    assert nemo_gym.answer(others, judged(1.0, match=1.0)) == {**others, **said}


def test_statistics_leave_failed_rows_out() -> None:
    rows = [
        {"_ng_task_index": 0, "reward": 1.0, "response": {"usage": {"tokens": 4}}},
        {"_ng_task_index": 0, "reward": 0.0},
        {"_ng_task_index": 1, "reward": 0.5},
        {"_ng_task_index": 1, "reward": 0.0, "_ng_failure_class": "judge_failed"},
    ]
    found = nemo_gym.aggregate(rows)
    assert found["key_metrics"] == {"mean/reward": 0.5, "mean/tokens": 4.0}
    assert [group["mean/reward"] for group in found["group_level_metrics"]] == [0.5, 0.5]
    assert nemo_gym.aggregate([])["agent_metrics"] == {}
    odd = {"reward": 1e308, "n": 10**400, "response": {"usage": "none"}, "x": [1], "ok": True}
    assert nemo_gym.aggregate([odd, odd])["key_metrics"] == {"mean/ok": 1.0}
    with pytest.raises(BadRequestError, match="whole number"):
        nemo_gym.aggregate([{"_ng_task_index": []}])


@pytest.mark.parametrize(
    "body",
    [{}, {"response": {}}, rollout() | {"responses_create_params": 1},
     rollout(schema_str="{", schema_type="json"), rollout(schema_str="x", schema_type="xml"),
     rollout(verifier_metadata={"unit_tests": {"inputs": ["1"], "outputs": []}}),
     rollout(verifier_metadata={"unit_tests": {"inputs": ["{"], "outputs": ["1"],
                                               "fn_name": "f"}})],
)  # fmt: skip
def test_a_bad_rollout_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        nemo_gym.read(body, ("", ""))


# Graders


@given(texts, texts)
def test_fuzzy_match_is_the_indel_similarity(a: str, b: str) -> None:
    row = [0] * (len(b) + 1)  # the textbook's table of longest common subsequences
    for x in a:
        last = row[:]
        for j, y in enumerate(b):
            row[j + 1] = last[j] + 1 if x == y else max(last[j + 1], row[j])
    wanted = 2 * row[-1] / (len(a) + len(b)) if a or b else 1.0
    assert grading.fuzzy_match(a, b) == pytest.approx(wanted)
    assert grading.fuzzy_match(a, a) == 1.0


def test_similarities_of_equal_and_of_foreign_texts() -> None:
    text = "the cat sat on the mat today"
    for compare in grading.SIMILARITIES.values():
        assert compare(text, text) > 0.99
        assert compare("xyz", "abc") < 0.1
        assert compare("", text) == 0.0


def test_templates_name_the_sample_and_the_item() -> None:
    values = grading.namespace('{"n": [1, 2]}', {"a": {"b": "c"}})
    told = "{{ sample.output_json.n[1] }} {{item.a.b}} {{ item.a }} {{sample.output_text}}"
    assert grading.render(told, values, 99) == '2 c {"b": "c"} {"n": [1, 2]}'
    for missing in ("{{ item.x }}", "{{ sample.output_json.n[7] }}", "{{ secret }}"):
        with pytest.raises(grading.VariableError):
            grading.render(missing, values, 99)


def test_what_a_samples_json_lacks_is_the_samples_doing() -> None:
    for sample in ('{"n": [1, 2]}', "", "null", "[" * 100_000, "9" * 5_000, '{"n": 1e999}'):
        values = grading.namespace(sample, {"a": 1})
        with pytest.raises(grading.SampleError):
            grading.render("{{ sample.output_json.n[7] }}", values, 99)
        for wrong in ("{{ sample.outputjson.n }}", "{{ item.n }}", "{{ sample }} {{ x }}"):
            with pytest.raises(grading.VariableError) as caught:
                grading.render(wrong, values, 10**6)
            assert not isinstance(caught.value, grading.SampleError)
    told = "a {{ sample.output_text }} {{item.a}} {{sample.output_json.b}} {{ sample }}"
    assert grading.without_sample(told) == "a  {{item.a}}  "


def test_half_a_surrogate_pair_of_a_sample_is_text_once_rendered() -> None:
    values = grading.namespace(r'{"a": "x\ud800", "b": "\ud83d\ude00"}', None)
    assert grading.render("{{ sample.output_json.a }}", values, 99) == "x\ufffd"
    assert grading.render("{{ sample.output_json.b }}", values, 99) == "\U0001f600"


def test_many_parts_are_refused_before_anything_is_made_of_them() -> None:
    many = b"{}," * 1024 + b"{}"
    inner = b'{"items": [{"prompt": [' + b"{}," * 500_000 + b"{}]}]}"
    for refused in (
        lambda: codec.read_batch(b'{"items": [' + many + b"]}"),
        lambda: codec.read_batch(b'{"x": 1, "items": [' + many + b"]}"),
        lambda: codec.read_batch(inner),
        lambda: openrlhf.read({"query": [""] * 1025}, MATH),
    ):
        with pytest.raises(BadRequestError) as caught:
            refused()
        assert caught.value.reason == "BATCH_TOO_LARGE"
    assert len(codec.read_batch(b'{"items": [' + many[3:] + b"]}").items) == 1024
    assert len(openrlhf.read({"query": [""] * 1024}, MATH)) == 1024


@given(st.lists(st.sampled_from(["{{ sample.output_text }}", "ab", "{{x"])), st.integers(0, 40))
def test_a_template_has_the_room_that_it_is_given(pieces: list[str], room: int) -> None:
    values, template = grading.namespace("12345", None), "".join(pieces)
    whole = template.replace("{{ sample.output_text }}", "12345")
    if len(whole) <= room:
        assert grading.render(template, values, room) == whole
    else:
        with pytest.raises(grading.TooLongError):
            grading.render(template, values, room)


@pytest.mark.parametrize("found", [[0, 10**400], [-(10**400), 0], [1, 1], [0, None], [0]])
def test_a_range_is_two_numbers_that_a_score_can_have(found: list[Any]) -> None:
    with pytest.raises(BadRequestError, match="range"):
        graders._range(found)
    assert graders._range([0, 10]) == (0.0, 10.0)


def test_checks_of_texts() -> None:
    holds = [("eq", "a", "a"), ("ne", "a", "b"), ("like", "abc", "b"), ("ilike", "aBc", "b")]
    fails = [("eq", "a", "A"), ("ne", "a", "a"), ("like", "abc", "B"), ("ilike", "abc", "x")]
    assert [grading.string_check(*told) for told in holds] == [1.0] * 4
    assert [grading.string_check(*told) for told in fails] == [0.0] * 4


trees = st.recursive(
    st.sampled_from(["a", "b", "2", "0.5"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda one: f"({one[0]} {one[1]} {one[2]})"
        )
        | inner.map(lambda one: f"min({one}, 3)")
    ),
    max_leaves=12,
)


@given(trees, st.floats(-10, 10), st.floats(-10, 10))
def test_a_formula_is_worth_what_python_makes_of_it(written: str, a: float, b: float) -> None:
    values = {"a": a, "b": b}
    wanted = eval(written, {"min": min}, values)
    assert formula.evaluate(written, values) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "written",
    ["", "a +", "__import__('os')", "a.real", "(lambda: 1)()", "[a]", "'x'", "a if a else b",
     "9**9**9", "1/0", "exp(10000)", "sqrt(-1)", "max()", "a" * 3000, "+".join("a" * 900),
     "(-8)**0.5", "True", "open('x')", "a := 3", "1e999"],
)  # fmt: skip
def test_a_formula_that_is_none_is_an_error(written: str) -> None:
    with pytest.raises(formula.FormulaError):
        formula.evaluate(written, {"a": 1.0, "b": 2.0})


def test_an_answer_has_every_flag_of_the_sdk() -> None:
    told = graders.answer({"type": "python", "name": "p"},
                          graders.failed("python_grader_runtime_error", "boom"), 0.1)  # fmt: skip
    errors = told["metadata"]["errors"]
    assert {name for name, value in errors.items() if value is True} == {
        "python_grader_runtime_error"
    }
    assert errors["python_grader_runtime_error_details"] == "boom"
    assert set(graders.FLAGS) < errors.keys()
    assert told["reward"] is None


# Any JSON

NAMES = [
    "query", "prompts", "labels", "prompt", "response", "label", "role", "content", "text",
    "output", "responses_create_params", "input", "verifier_metadata", "unit_tests", "inputs",
    "outputs", "fn_name", "instruction_id_list", "kwargs", "schema_str", "metadata",
    "source_dataset", "options", "expected_answer", "extraction_mode", "case_sensitive", "type",
    "usage", "reward", "_ng_task_index",
]  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)  # fmt: skip
bodies = st.dictionaries(st.sampled_from(NAMES), anything, max_size=8)


@given(bodies, st.dictionaries(st.sampled_from(NAMES), anything, max_size=8))
def test_any_json_is_read_or_refused(body: dict[str, Any], inner: dict[str, Any]) -> None:
    gym = {**body, "response": {"output": [inner]}, "responses_create_params": inner}
    for read in (
        lambda: openrlhf.read(body, MATH),
        lambda: slime.read(body, MATH),
        lambda: nemo_gym.read(gym, ("", "")),
        lambda: nemo_gym.aggregate([body, inner]),
        lambda: grading.render("{{ item.input.text }}", grading.namespace("x", body), 10**6),
    ):
        with contextlib.suppress(BadRequestError, grading.VariableError):
            json.dumps(read(), default=str, allow_nan=False)


# Problems


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_status(reason: Reason) -> None:
    error = refuse(reason, "trouble", retry_after_s=0.2 if reason == Reason.QUEUE_FULL else None)
    told = problems.problem(error, "r")
    assert told["title"] == LEXICON[reason].meaning
    assert 400 <= told["status"] <= 504
    assert told["retryable"] == (LEXICON[reason].code.name == "UNAVAILABLE"
                                 or reason == Reason.QUEUE_FULL)  # fmt: skip
    response = problems.problem_response(error, "r")
    assert json.loads(bytes(response.body)) == told
    assert ("retry-after" in response.headers) == (reason == Reason.QUEUE_FULL)


def test_a_reason_of_a_third_party_is_a_problem_too() -> None:
    told = problems.problem(CallError("MY_OWN", "trouble"), "r")
    assert (told["status"], told["reason"]) == (500, "MY_OWN")


def test_the_first_fault_of_several_speaks() -> None:
    assert fault_of([judged(), judged()]) is None
    error = fault_of([judged(), faulted("ITEM_TIMEOUT"), faulted()])
    assert error is not None
    assert (error.reason, error.metadata["faults"]) == ("ITEM_TIMEOUT", "2")
    assert fault_of([reward_pb2.Result(id="x")]) is not None, "neither is no judgement"


# The document


def reward_document() -> tuple[dict[str, Any], set[str]]:
    """What a server that has everything says of itself, and its paths."""
    admission: Any = SimpleNamespace(collectors=())
    front = RewardFront(cast("Any", None), admission, HttpConfig(), journal=Path("journal.db"))
    plugged = load_faces("reward")
    paths = {route.path for route in routes_of(front, [*SITE.own, *plugged])}
    return document_of(front, SITE, plugged), paths


def test_the_schemas_are_those_of_the_contract(repository: Path) -> None:
    script = runpy.run_path(str(repository / "scripts" / "openapi_doc.py"))
    assert shipped_schemas() == json.loads(script["render"]()), (
        "schemas.json differs from the contract: run `python scripts/openapi_doc.py write`"
    )


def test_the_document_has_every_path() -> None:
    document, served = reward_document()
    undescribed = {"/journal", "/journal/{below:path}"}
    assert served - undescribed | {"/healthz", "/readyz", "/metrics"} == set(document["paths"])


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document, _ = reward_document()
    schemas = document["components"]["schemas"]
    found = set(re.findall(r"#/components/schemas/([\w.]+)", json.dumps(document)))
    assert found <= schemas.keys()
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    said = schemas["reward.v1.Judgement"]["properties"]["reward"]["description"]
    assert "finite" in said, "the comments of the contract are in it"


def test_an_answer_is_valid_under_the_document() -> None:
    document, _ = reward_document()
    schema = {"$ref": "#/components/schemas/reward.v1.Result", **document}
    check = Draft202012Validator(schema)
    check.validate(json.loads(native.answer(judged(0.0, match=0.0))))
    check.validate(json.loads(native.answer(faulted())))
    with pytest.raises(ValidationError):
        check.validate({"id": 7})


def test_the_page_of_the_document_holds_every_path_and_no_script() -> None:
    document, _ = reward_document()
    page = pages.docs(document)
    assert all(f"{path}</code>" in page for path in document["paths"])
    assert "<script" not in page
    assert not re.search(r"(src|href)=['\"]?(https?:)?//", page)
