"""Rows of JSON Lines: items, tests in their shapes, parameters as a command line writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.cli.parameters import read_parameters, split_spec
from assay.cli.scoring.rows import OUTPUT_KEYS, RowSource, output_row, read_rows, survey
from assay.cli.validation import Gold, Validation, gold_response, spells_response
from assay.clients import Anchor, Data, Item, ParameterInfo, VerifierInfo
from assay.clients.rows.items import Defaults, Keys, RowError, id_of, item_of
from assay.clients.rows.tests import read_tests
from assay.clients.types import Judgement, Result
from assay.kit.errors import ConfigError
from assay.kit.runs.stats import wilson

EXACT = Defaults("exact")
DEFAULT_KEYS = Keys()


def item(data: dict[str, Any], keys: Keys = DEFAULT_KEYS) -> Any:
    return item_of(keys, EXACT, {"response": "r", **data}, "1")


@pytest.mark.parametrize(
    ("reference", "becomes"),
    [
        ("4", "4"),
        (["4", "5"], ["4", "5"]),
        ({"boxes": [[1, 2, 3, 4]]}, Data({"boxes": [[1, 2, 3, 4]]})),
        ([1, 2], Data([1, 2])),
        ([["a"]], Data([["a"]])),
        (None, None),
    ],
)
def test_references_of_rows(reference: Any, becomes: Any) -> None:
    assert item({"reference": reference}).reference == becomes


def test_an_anchor_and_tests_have_keys_of_their_own() -> None:
    assert item({"anchor": "beat me"}).reference == Anchor("beat me")
    suite = item({"tests": [{"stdin": "1", "stdout": "2"}]}).reference
    assert isinstance(suite, execution_pb2.TestSuite)
    assert suite.tests[0].stdio.expected_stdout == b"2"
    other = item({"checks": ["assert f()"]}, Keys(tests="checks")).reference
    assert other.tests[0].assertions.code == "assert f()"
    assert item({"tests": 3, "reference": "4"}, Keys(tests="")).reference == "4"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"reference": "4", "tests": ["assert f()"]}, "'reference' and 'tests'.*--tests-key"),
        ({"anchor": "4", "reference": "5"}, "'reference' and 'anchor'"),
        ({"reference": 4}, "'reference' is a number; .* such as \"4\""),
        ({"reference": []}, "'reference' is an empty list"),
        ({"anchor": 4}, "'anchor' is a number"),
        ({"tests": 4}, "'tests': tests are written as"),
        ({"tests": []}, "'tests': 'tests' is empty"),
        ({"response": None}, "'response' is null"),
    ],
)
def test_errors_name_the_key_and_what_to_write(data: dict[str, Any], says: str) -> None:
    with pytest.raises(RowError, match=says):
        item(data)


def test_what_a_row_says_goes_before_defaults() -> None:
    defaults = Defaults("math", "t", {"a": 1, "b": 2})
    own = item_of(Keys(), defaults, {"response": "", "params": {"b": 3}}, "1")
    assert (own.verifier, own.parameters) == ("math", {"a": 1, "b": 3})
    other = item_of(Keys(), defaults, {"response": "", "verifier": "exact"}, "1")
    assert (other.verifier, other.parameters) == ("exact", {})
    by_task = Defaults("", "t", {"a": 1})
    assert item_of(Keys(), by_task, {"response": "", "task": "u"}, "1").parameters == {}
    assert item_of(Keys(), by_task, {"response": ""}, "1").parameters == {"a": 1}


@pytest.mark.parametrize("row_id", [[], True, "", 1.5, "x" * 257, "é" * 129])
def test_ids_that_are_none(row_id: Any) -> None:
    with pytest.raises(RowError, match="'id'"):
        id_of(Keys(), {"id": row_id}, 7)
    assert id_of(Keys(), {}, 7) == 7


TESTS: dict[str, tuple[Any, list[str]]] = {
    "stdio": ([{"stdin": "1\n", "stdout": "2\n", "name": "n"}], ["stdio"]),
    "no stdin": ({"tests": [{"stdout": "2"}], "stop_at_first_failure": True}, ["stdio"]),
    "calls": ({"tests": [{"args": [1], "expected": 2}], "fn_name": "f"}, ["call"]),
    "a call": ([{"function": "f", "args": [[1]], "kwargs": {"k": None}, "expected": {}}], ["call"]),
    "asserts": ({"asserts": ["assert f(1)", "f(2)"], "setup": "import x"}, ["assertions"] * 2),
    "one text": ("assert f(1)", ["assertions"]),
    "check": ({"code": "def check(c): ...", "entry_point": "f"}, ["assertions"]),
    "columns": ({"inputs": ["1", "2"], "outputs": ["1", "2"]}, ["stdio"] * 2),
    "call columns": ({"inputs": [[1]], "outputs": [2], "fn_name": "f"}, ["call"]),
    "mixed": ([{"stdout": "1"}, "assert f()", {"code": "x", "entry_point": "f"}],
              ["stdio", "assertions", "assertions"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_tests_in_every_shape(name: str) -> None:
    value, kinds = TESTS[name]
    assert [test.WhichOneof("kind") for test in read_tests(value).tests] == kinds


def test_what_stands_beside_tests_is_kept() -> None:
    suite = read_tests(
        {
            "asserts": ["assert add(1, 2) == 3"],
            "setup": "import math",
            "entry_point": "add",
            "limits": {"wall_time_s": 2.5, "memory_bytes": 1e9},
            "stop_at_first_failure": True,
        }
    )
    assert suite.tests[0].assertions.code == "import math\nassert add(1, 2) == 3"
    assert suite.tests[0].assertions.entry_point == "add"
    assert suite.limits.wall_time.ToMilliseconds() == 2500
    assert suite.limits.memory_bytes == 10**9
    assert suite.stop_at_first_failure
    suite = read_tests(
        {
            "tests": [{"stdout": "1", "comparison": "exact"}, {"stdout": "1"}],
            "comparison": {"kind": "numeric", "absolute_tolerance": 0.5},
        }
    )
    first, second = (test.stdio.comparison for test in suite.tests)
    assert first.kind == execution_pb2.COMPARISON_KIND_EXACT
    assert second.absolute_tolerance == 0.5


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "tests are written as"),
        ({}, "none of the shapes"),
        ({"tests": {}}, "'tests' is not a list"),
        ({"asserts": []}, "'asserts' is empty"),
        ({"tests": [4]}, r"tests\[0\] is not an object"),
        ({"tests": [{"stdin": "1"}]}, r"tests\[0\] has no 'stdout'"),
        ({"tests": [{"stdin": 1, "stdout": ""}]}, r"tests\[0\]: 'stdin' is not a text"),
        ({"tests": [{"stdout": "", "expected": 1}]}, "has the key 'expected'"),
        ({"tests": [{"args": [], "expected": 1}]}, "and a 'function'"),
        ({"tests": [{"function": "f", "args": {}, "expected": 1}]}, "'args' is a list"),
        ({"tests": ["x"], "entry_point": "f"}, "have no key 'entry_point'"),
        ({"inputs": ["1"], "outputs": []}, "1 'inputs' and 0 'outputs'"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}, r"inputs\[0\] is no list"),
        ({"code": "x", "limits": {"wall_time": 1}}, "'limits' is an object of"),
        ({"code": "x", "limits": {"wall_time_s": "1"}}, "limit 'wall_time_s' is not a number"),
        ({"code": "x", "limits": {"wall_time_s": 0}}, "pass a positive number"),
        ({"tests": ["x"], "comparison": "same"}, "no comparison is named 'same'"),
        ({"tests": ["x"], "stop_at_first_failure": 1}, "neither true nor false"),
    ],
)
def test_tests_that_are_none(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_tests(value)


def source(tmp_path: Path, *rows: dict[str, Any]) -> RowSource:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RowSource(path, "in.jsonl", defaults=EXACT)


def test_a_survey_says_whether_programs_will_run(tmp_path: Path) -> None:
    plain = {"response": "", "reference": "4"}
    assert not survey(source(tmp_path, plain)).tested
    assert survey(source(tmp_path, plain, {"response": "", "tests": ["assert f()"]})).tested
    with pytest.raises(ConfigError, match=r"in\.jsonl:2: 'tests': tests\[0\] is not an object"):
        survey(source(tmp_path, plain, {"response": "", "tests": [4]}))


def test_output_keys_of_the_input_are_kept_aside(tmp_path: Path) -> None:
    row = {"response": "r", "reference": "r", **dict.fromkeys(OUTPUT_KEYS, "mine")}
    (read,) = read_rows(source(tmp_path, row))
    judgement = Judgement(1.0, "correct", explanation="why", suspicions=("odd",))
    out = output_row(read, Result("1", judgement))
    assert [out[f"input_{key}"] for key in OUTPUT_KEYS] == ["mine"] * len(OUTPUT_KEYS)
    assert (out["reward"], out["explanation"], out["suspicions"]) == (1.0, "why", ["odd"])


INFO = VerifierInfo(
    "v", "1", "", (), 0.0, 1.0, True, True, True, False,
    parameters=(
        ParameterInfo("flag", "bool", False, ""),
        ParameterInfo("count", "int", 1, ""),
        ParameterInfo("share", "float", 0.5, ""),
        ParameterInfo("mode", "string", "a", "", allowed_values=("a", "b")),
        ParameterInfo("free", "string", "", ""),
        ParameterInfo("names", "string_list", (), ""),
    ),
    verdicts=("correct",),
    is_profile=False,
)  # fmt: skip


def test_parameters_take_the_types_that_the_verifier_states() -> None:
    pairs = ["flag=True", "count=-3", "share=2", "mode=b", "free=a=b, c", "names=x, y"]
    assert read_parameters(INFO, pairs) == {
        "flag": True,
        "count": -3,
        "share": 2.0,
        "mode": "b",
        "free": "a=b, c",
        "names": ["x", "y"],
    }
    assert read_parameters(INFO, ['names=["a,b"]'])["names"] == ["a,b"]
    assert read_parameters(INFO, ["names="])["names"] == []


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("flag", "has no '='"),
        ("flag=1", "write true or false"),
        ("count=1.5", "write a whole number"),
        ("share=much", "write a number"),
        ("mode=c", "choose one of a, b"),
        ("names=[1]", "write texts with commas"),
        ("nothing=1", "'v' has no parameter 'nothing'; it has: flag, count"),
    ],
)
def test_parameters_that_are_none(pair: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_parameters(INFO, [pair])
    with pytest.raises(ConfigError, match="given twice"):
        read_parameters(INFO, ["count=1", "count=2"])


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("math", ("math", [])),
        ("math:", ("math", [])),
        ("math:a=1", ("math", ["a=1"])),
        ("math:a=1,b=x", ("math", ["a=1", "b=x"])),
        ("math:a=x,y,b=z", ("math", ["a=x,y", "b=z"])),
        ('math:a=["x","y"],b=z', ("math", ['a=["x","y"]', "b=z"])),
    ],
)
def test_specs_of_contenders(spec: str, parts: tuple[str, list[str]]) -> None:
    assert split_spec(spec) == parts


@given(st.integers(0, 500), st.integers(0, 500))
def test_wilsons_interval_holds_the_rate(successes: int, more: int) -> None:
    total = successes + more
    low, high = wilson(successes, total)
    assert 0.0 <= low <= high <= 1.0
    if total:
        assert low - 1e-12 <= successes / total <= high + 1e-12
        mirrored = wilson(more, total)
        assert mirrored == pytest.approx((1 - high, 1 - low))


def test_wilsons_interval_of_a_known_case() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 and 0 of 20 by Wilson's method.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_gold_answers_as_responses() -> None:
    assert gold_response("4", "boxed") == r"\boxed{4}"
    assert gold_response(["4", "5"], "plain") == "4"
    assert gold_response(Data({"a": 1}), "plain") == ""
    assert spells_response("4", "boxed")
    assert not spells_response("4", "none")
    assert not spells_response(Data(["a"]), "plain")


def test_a_failure_shows_no_long_text() -> None:
    tally = Validation(keep=1)
    long = Result("a", Judgement(0.0, "incorrect", explanation="x" * 500))
    for name in ("a", "b"):
        tally.add(Gold(name, Item("x", "4"), spelt=True), long, INFO)
    (failure,) = tally.failures
    assert len(failure.why) == 60
    assert (tally.done, tally.wrong, tally.rate) == (2, 2, 0.0)
