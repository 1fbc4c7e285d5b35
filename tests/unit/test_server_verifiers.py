r"""The verifiers `exact` and `math` as pure functions, against tables."""

from __future__ import annotations

import dataclasses

import pytest

from assay.reward_server.domain import (
    Candidate,
    Judgement,
    Message,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.reward_server.verifiers.exact import exact
from assay.reward_server.verifiers.math import MathVerifier

MATH = MathVerifier()
EXACT = exact


def judge(
    verifier: Verifier, response: str, *references: str, **given: ParameterValue
) -> Judgement:
    parameters = verifier.spec.complete(given)
    return verifier.judge(
        VerifierItem(Candidate(response), references=references, parameters=parameters)
    )


@pytest.mark.parametrize(
    ("response", "reference", "given", "verdict"),
    [
        ("Paris", "Paris", {}, "correct"),
        (" Paris\n", "Paris", {}, "correct"),
        (" Paris\n", "Paris", {"strip": False}, "incorrect"),
        ("paris", "Paris", {}, "incorrect"),
        ("STRASSE", "straße", {"case_sensitive": False}, "correct"),
        ("e\u0301", "é", {}, "correct"),
        ("", "Paris", {}, "incorrect"),
        ("think\n\nParis\n \n", "Paris", {"extract": "last-line"}, "correct"),
        ("Paris\nLyon", "Paris", {"extract": "last-line"}, "incorrect"),
        ("", "Paris", {"extract": "last-line"}, "incorrect"),
        ("7\n#### 8\n#### 42", "42", {"extract": "after-marker"}, "correct"),
        ("42", "42", {"extract": "after-marker"}, "unparsed"),
        ("Answer: 42", "42", {"extract": "after-marker", "marker": "Answer:"}, "correct"),
        ("0.5", "1/2", {}, "incorrect"),
    ],
)
def test_exact(
    response: str, reference: str, given: dict[str, ParameterValue], verdict: str
) -> None:
    judgement = judge(EXACT, response, reference, **given)
    assert judgement.verdict == verdict
    assert judgement.reward == float(verdict == "correct")


def test_exact_takes_any_of_several_references() -> None:
    assert judge(EXACT, "b", "a", "b").verdict == "correct"
    assert judge(EXACT, "c", "a", "b").verdict == "incorrect"


def test_exact_refuses_a_blank_reference_and_an_empty_marker() -> None:
    with pytest.raises(Unjudgeable, match="blank"):
        judge(EXACT, "", "  ")
    with pytest.raises(Unjudgeable, match="marker"):
        judge(EXACT, "x", "y", extract="after-marker", marker="")


@pytest.mark.parametrize(
    ("response", "reference", "verdict"),
    [
        (r"Thus $\boxed{\frac{1}{2}}$.", "0.5", "correct"),
        (r"\boxed{1{,}000}", "1000", "correct"),
        ("... #### 1,450", "1450", "correct"),
        ("She has 48 + 24 = 72 clips.\n#### 72\nI hope 5 this helps.", "a\n#### 72", "correct"),
        ("The answer is 72.", "#### 71", "incorrect"),
        (r"\boxed{x^2+2x+1}", "$(x+1)^2$", "correct"),
        (r"\boxed{12\pi}", r"12\pi", "correct"),
        (r"<think>\boxed{1}</think> It is \boxed{2}.", "2", "correct"),
        (r"<think>\boxed{2}</think>", "2", "unparsed"),
        ("", "2", "unparsed"),
        ("no idea", "2", "unparsed"),
        # What other graders accept (hedging, scraped references, tolerance): must not be correct.
        (r"\boxed{12}", r"12\pi", "incorrect"),
        (r"\boxed{3}", r"3\sqrt{2}", "incorrect"),
        (r"\boxed{0}", "2x+3y=0", "incorrect"),
        (r"\boxed{3 \text{ or } 5}", "3", "incorrect"),
        (r"\boxed{7, 8, 9}", "7", "incorrect"),
        (r"\boxed{\sqrt[3]{2}}", r"\sqrt{2}", "incorrect"),
        (r"\boxed{8}", "800", "incorrect"),
        (r"\boxed{9999}", "10,000", "incorrect"),
        (r"\boxed{(0,1)}", "[0,1)", "incorrect"),
        (r"\boxed{\frac{11}{1}}", r"\frac{1}{11}", "incorrect"),
        (r"\boxed{__import__('os').getpid()}", "3", "incorrect"),
    ],
)
def test_math(response: str, reference: str, verdict: str) -> None:
    assert judge(MATH, response, reference).verdict == verdict


def test_math_takes_any_of_several_references() -> None:
    assert judge(MATH, r"\boxed{3}", "2", "3").verdict == "correct"


@pytest.mark.parametrize("reference", ["", "  ", "#### ", "$$", r"\boxed{}"])
def test_math_says_when_a_reference_holds_no_answer(reference: str) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(MATH, r"\boxed{3}", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_an_anchor_is_no_reference_for_these_verifiers() -> None:
    for verifier in (MATH, EXACT):
        item = VerifierItem(Candidate("42"), anchor="42", parameters=verifier.spec.complete({}))
        with pytest.raises(Unjudgeable) as caught:
            verifier.judge(item)
        assert caught.value.reason == "UNSUPPORTED_INPUT"


def test_a_dialogue_is_not_for_these_verifiers() -> None:
    candidate = Candidate(turns=(Message("assistant", "42", from_policy=True),))
    for verifier in (MATH, EXACT):
        item = VerifierItem(candidate, references=("42",), parameters=verifier.spec.complete({}))
        with pytest.raises(Unjudgeable) as caught:
            verifier.judge(item)
        assert caught.value.reason == "UNSUPPORTED_INPUT"


@pytest.mark.parametrize(
    ("response", "reward", "names"),
    [
        (r"\boxed{3}", 1.25, ["correctness", "unparsed", "answer-format"]),
        ("it is 3", 1.0, ["correctness", "unparsed", "answer-format"]),
        (r"\boxed{4}", 0.25, ["correctness", "unparsed", "answer-format"]),
        ("no idea", -0.5, ["correctness", "unparsed", "answer-format"]),
    ],
)
def test_the_reward_is_the_weighted_sum_of_its_components(
    response: str, reward: float, names: list[str]
) -> None:
    judgement = judge(MATH, response, "3", unparsed_reward=-0.5, format_weight=0.25)
    assert judgement.reward == reward
    assert [component.name for component in judgement.components] == names
    assert judgement.reward == sum(c.weight * c.score for c in judgement.components)


def test_two_different_boxes_are_a_suspicion_and_no_more() -> None:
    apart = r"At first \boxed{3}." + " This forgets that the number of apples is even." * 2
    judgement = judge(MATH, apart + r" So \boxed{4}.", "4")
    assert judgement.verdict == "correct"
    assert judgement.suspicions == ("several-boxed-answers",)
    assert judge(MATH, r"\boxed{4}, so \boxed{4}", "4").suspicions == ()


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("The answer is 4 * 1.", "4"),
        ("Answer: 0 - 4", "-4"),
        (r"\boxed{2+3}", "5"),
        (r"$x = 2 \cdot 3$", "6"),
        (r"\boxed{4 \times 7}", "28"),
        (r"\boxed{(1+1)(3)}", "6"),
        ("#### 48 / 16", "3"),
        (r"\boxed{\frac{48}{16}}", "3"),
        (r"\boxed{4 \cdot 7}", "$28$"),
    ],
)
def test_math_does_not_pay_for_repeating_the_question(response: str, reference: str) -> None:
    judgement = judge(MATH, response, reference)
    assert (judgement.verdict, judgement.reward) == ("incorrect", 0.0)
    assert "undone-work" in judgement.suspicions
    assert "left to do" in judgement.explanation
    lenient = judge(MATH, response, reference, undone_work="accept")
    assert (lenient.verdict, lenient.suspicions) == ("correct", judgement.suspicions)


@pytest.mark.parametrize(
    ("response", "reference", "known"),
    [
        (r"\boxed{1.2^2}", "1.44", "correct"),
        (r"\boxed{\sqrt{3^2+4^2}}", "5", "correct"),
        (r"\boxed{2.5*4}", "10", "correct"),
        (r"\boxed{2+2}", "4", "incorrect"),
        (r"\boxed{\frac{48}{2}}", "24", "incorrect"),
    ],
)
def test_without_a_prompt_only_whole_arithmetic_is_refused(
    response: str, reference: str, known: str
) -> None:
    plain = VerifierItem(
        Candidate(response), references=(reference,), parameters=MATH.spec.complete({})
    )
    asked = dataclasses.replace(plain, prompt=(Message("user", "What is it?"),))
    assert MATH.judge(plain).verdict == known
    assert MATH.judge(asked).verdict == "incorrect"
    assert "undone-work" in MATH.judge(plain).suspicions


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("4 - 7 = -3", "-3"),
        ("12 * 12 = 144", "144"),
        (r"\boxed{3 \times 10^5}", "300000"),
        (r"\boxed{10^{3}}", "1000"),
        (r"\boxed{90^\circ}", "90"),
        (r"\boxed{\frac{10}{20}}", "1/2"),
        (r"\boxed{3/4}", "0.75"),
        (r"\boxed{-3}", "-3"),
        (r"\boxed{2x+3}", "3+2x"),
        (r"\boxed{1+\sqrt{2}}", r"\sqrt{2}+1"),
        (r"\boxed{2^{100}-1}", "2^{100}-1"),
    ],
)
def test_math_takes_an_answer_in_any_finished_form(response: str, reference: str) -> None:
    judgement = judge(MATH, response, reference)
    assert (judgement.verdict, judgement.suspicions) == ("correct", ())


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("To calculate 4 * 7, we need to perform the arithmetic", "28"),
        ("Calculate 0 - 4.", "-4"),
    ],
)
def test_a_question_repeated_without_a_mark_holds_no_right_answer(
    response: str, reference: str
) -> None:
    assert judge(MATH, response, reference).verdict != "correct"
    assert judge(MATH, response, reference, undone_work="accept").verdict != "correct"


def test_a_bare_line_is_the_answer_and_its_work_is_undone() -> None:
    assert judge(MATH, "48 / 16", "3").verdict != "correct"
    assert judge(MATH, "48 / 16", "3", undone_work="accept").suspicions == ("undone-work",)
