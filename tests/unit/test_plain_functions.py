"""Plain functions as verifiers: their shapes, what they are called with, what they may return."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from assay.reward_server import border
from assay.reward_server.domain import Candidate, Fault, JsonValue, Message, VerifierItem
from assay.reward_server.functions import FunctionVerifier
from assay.reward_server.signatures import (
    MAX_REWARD,
    PlainFunction,
    ShapeError,
    read_signature,
    spec_of,
)


def plain(function: Callable[..., object]) -> FunctionVerifier:
    """A function as the workers make a verifier of it."""
    called, signature = read_signature("fn", function)
    spec = spec_of("fn", "1", signature, called)
    judging = PlainFunction("fn", signature, called)
    return FunctionVerifier(judging, spec, prepare=None, glance=None, rows=())


def item(
    response: str = "r", *references: str, data: JsonValue = None, prompt: str = "", **given: Any
) -> VerifierItem:
    told = (Message("user", prompt),) if prompt else ()
    parameters = given.pop("parameters", {})
    return VerifierItem(
        Candidate(response), references, prompt=told, data=data, parameters=parameters, **given
    )


def judged(function: Callable[..., object], one: VerifierItem | None = None) -> Any:
    return border.judge(plain(function), one or item())


def fault(function: Callable[..., object], one: VerifierItem | None = None) -> Fault:
    found = judged(function, one)
    assert isinstance(found, Fault), found
    return found


@pytest.mark.parametrize(
    ("function", "shape", "needs_reference"),
    [
        (lambda response: 1.0, "plain", False),
        (lambda response, reference: 1.0, "plain", True),
        (lambda response, reference="": 1.0, "plain", False),
        (lambda response, *, cut=3: 1.0, "plain", False),
        (lambda prompts, completions, **columns: [1.0], "trl", False),
        (lambda completions, answer, **kwargs: [1.0], "trl", False),
        (lambda completions, completion_ids=None: [1.0], "trl", False),
        (lambda data_source, solution_str, ground_truth, extra_info=None: 1.0, "verl", True),
        (lambda solution_str, ground_truth, method="strict", **kwargs: 1.0, "verl", True),
    ],
)
def test_the_parameters_names_tell_the_shape(
    function: Callable[..., object], shape: str, needs_reference: bool
) -> None:
    called, signature = read_signature("fn", function)
    assert signature.shape == shape
    assert spec_of("fn", "1", signature, called).needs_reference is needs_reference


async def _coroutine(response: str) -> float:
    return 1.0


@pytest.mark.parametrize(
    "thing",
    [
        lambda a, b: 1.0,
        lambda: 1.0,
        lambda response, other: 1.0,
        lambda response, /: 1.0,
        lambda solution_str, ground_truth, tokenizer: 1.0,
        dict,
        3.0,
    ],
)
def test_another_shape_is_one_line_that_lists_what_is_known(thing: object) -> None:
    with pytest.raises(ShapeError) as error:
        read_signature("fn", thing)
    for known in ("(response, reference)", "completions", "solution_str", "reward_server.verifier"):
        assert known in str(error.value)
    assert "\n" not in str(error.value)


def test_what_only_a_trainer_has_and_coroutines_are_refused() -> None:
    with pytest.raises(ShapeError, match="completion_ids"):
        read_signature("fn", lambda completions, completion_ids: [1.0])
    with pytest.raises(ShapeError, match="coroutine"):
        read_signature("fn", _coroutine)


def test_a_bool_is_a_verdict_and_a_number_is_scored() -> None:
    def right(response: str, reference: str) -> bool:
        """Equal.

        More.
        """
        return response == reference

    spec = plain(right).spec
    assert (spec.min_reward, spec.max_reward) == (0.0, 1.0)
    assert (spec.verdicts, spec.description) == (("correct", "incorrect"), "Equal.")
    assert judged(right, item("a", "b", "a")).verdict == "correct"  # any reference will do
    assert judged(right, item("c", "b", "a")).verdict == "incorrect"
    scored = judged(lambda response: -2)
    assert (scored.reward, scored.verdict) == (-2.0, "scored")
    assert judged(lambda response, reference: reference["n"], item(data={"n": 3})).reward == 3.0


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.float64(0.5), np.array(0.5), np.array([0.5])]
)
def test_numbers_of_arrays_are_numbers(value: object) -> None:
    assert judged(lambda response: value).reward == 0.5
    assert judged(lambda completions: [value]).reward == 0.5
    assert judged(lambda completions: np.array([0.5])).reward == 0.5


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "returned a NoneType, not a number"),
        ("1", "returned a str"),
        ([1.0], "returned a list"),
        (np.array([0.5, 1]), "returned a ndarray"),
        (math.nan, "returned nan"),
        (-math.inf, "returned -inf"),
        (10**400, "not finite"),
        (2 * MAX_REWARD, "outside its stated range"),
    ],
)
def test_what_is_no_reward_is_a_fault_with_the_functions_line(value: object, says: str) -> None:
    def function(response: str) -> object:
        return value

    found = fault(function)
    assert found.reason == "VERIFIER_FAILED"
    assert says in found.message
    if "range" not in says:
        assert f"test_plain_functions.py:{function.__code__.co_firstlineno}" in found.message


@pytest.mark.parametrize("raised", [KeyError("k"), SystemExit(0), RecursionError()])
def test_an_exception_is_a_fault_with_its_line(raised: BaseException) -> None:
    def function(response: str) -> float:
        raise raised

    line = function.__code__.co_firstlineno + 1
    found = fault(function)
    assert found.reason == "VERIFIER_FAILED"
    assert f"at test_plain_functions.py:{line};" in found.message


def test_trls_function_gets_lists_of_one() -> None:
    seen: list[dict[str, Any]] = []

    def function(
        prompts: list[str], completions: list[str], answer: list[str], **columns: Any
    ) -> list[float]:
        seen.append({"prompts": prompts, "completions": completions, "answer": answer, **columns})
        return [0.25]

    assert judged(function, item("r", "a", prompt="p")).reward == 0.25
    assert judged(function, item("r", "a", "b")).reward == 0.25
    assert judged(function, item("r", data={"answer": "a", "level": 3})).reward == 0.25
    chat = item("r", "a", prompt="p", parameters={"conversational": True})
    assert judged(function, chat).reward == 0.25
    told, said = {"role": "user", "content": "p"}, {"role": "assistant", "content": "r"}
    assert seen == [
        {"prompts": ["p"], "completions": ["r"], "answer": ["a"], "reference": ["a"]},
        {"prompts": [""], "completions": ["r"], "answer": [["a", "b"]], "reference": [["a", "b"]]},
        {"prompts": [""], "completions": ["r"], "answer": ["a"], "level": [3]},
        {"prompts": [[told]], "completions": [[said]], "answer": ["a"], "reference": ["a"]},
    ]


@pytest.mark.parametrize(
    ("value", "reason", "says"),
    [
        ([None], "UNSUPPORTED_INPUT", "gave None"),
        ([1.0, 1.0], "VERIFIER_FAILED", "returned 2 rewards for 1 completion"),
        ([], "VERIFIER_FAILED", "returned 0 rewards"),
        (1.0, "VERIFIER_FAILED", "returned a float, not a list"),
        ("1", "VERIFIER_FAILED", "returned a str, not a list"),
        (["1"], "VERIFIER_FAILED", "returned a str, not a number"),
    ],
)
def test_trls_function_returns_a_list_of_one(value: object, reason: str, says: str) -> None:
    found = fault(lambda prompts, completions: value)
    assert found.reason == reason
    assert says in found.message


def test_columns_that_the_reference_lacks_are_a_fault() -> None:
    found = fault(lambda completions, question, answer: [1.0], item("r", "a"))
    assert found.reason == "UNUSABLE_REFERENCE"
    assert "'question'" in found.message


def test_verls_function() -> None:
    seen: list[tuple[object, ...]] = []

    def compute_score(
        data_source: str, solution_str: str, ground_truth: object, extra_info: object = None
    ) -> dict[str, Any]:
        seen.append((data_source, solution_str, ground_truth, extra_info))
        return {"score": 0.5, "acc": True, "pred": "7", "n_steps": 3, "nan": math.nan}

    found = judged(compute_score, item("r", "a", parameters={"data_source": "gsm8k"}))
    assert (found.reward, found.verdict) == (0.5, "correct")
    assert [(one.name, one.score, one.weight) for one in found.components] == [
        ("score", 0.5, 1.0),
        ("acc", 1.0, 0.0),
        ("n-steps", 3.0, 0.0),
    ]
    whole: JsonValue = {"ground_truth": "a", "data_source": "d", "extra_info": {"index": 1}}
    judged(compute_score, item("r", data=whole))
    judged(compute_score, item("r", data={"target": 24}))
    assert seen == [
        ("gsm8k", "r", "a", None),
        ("d", "r", "a", {"index": 1}),
        ("", "r", {"target": 24}, None),
    ]
    lacking = fault(lambda solution_str, ground_truth: {"reward": 1}, item("r", "a"))
    assert "without the key 'score'" in lacking.message
