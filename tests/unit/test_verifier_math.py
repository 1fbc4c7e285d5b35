r"""`math`: what its judgement says, its parameters, its tiers, and each contested convention."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.math.extraction import MODES
from assay.math.judging import TIERS_DISAGREE, UNDONE_WORK
from assay.reward_server.domain import (
    Candidate,
    Judgement,
    ParameterValue,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.verifiers.math import MathVerifier

MATH = MathVerifier()


def item(
    response: str, *references: str, truncated: bool = False, **given: ParameterValue
) -> VerifierItem:
    parameters = MATH.spec.complete(given)
    return VerifierItem(
        Candidate(response), references=references, parameters=parameters, truncated=truncated
    )


def judge(response: str, *references: str, **given: ParameterValue) -> Judgement:
    return MATH.judge(item(response, *references, **given))


def equal(answer: str, reference: str, **given: ParameterValue) -> bool:
    return judge(rf"\boxed{{{answer}}}", reference, **given).verdict == "correct"


@pytest.mark.parametrize("example", MATH.examples, ids=lambda e: str(e.item.candidate.text)[:30])
def test_every_example_gets_its_verdict_at_a_glance_and_in_a_worker(example: object) -> None:
    assert MATH.judge(example.item).verdict == example.verdict  # type: ignore[attr-defined]
    glanced = MATH.glance(example.item)  # type: ignore[attr-defined]
    assert glanced is None or glanced.verdict == example.verdict  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "reference", "tier"),
    [
        ("x+1", "$x+1$", "text"),
        (r"\frac{1}{2}", "0.5", "exact"),
        ("(1, 0.5)", r"(1, \frac12)", "structural"),
        (r"\sin(x)\cos(x)", r"\frac{\sin 2x}{2}", "numeric"),
        (r"\sum_{k=1}^{n} k^3", r"\frac{n^2(n+1)^2}{4}", "symbolic"),
    ],
)
def test_the_explanation_names_the_tier_that_decided(
    answer: str, reference: str, tier: str
) -> None:
    judgement = judge(rf"\boxed{{{answer}}}", reference)
    assert judgement.verdict == "correct"
    assert judgement.explanation.startswith(f"equal to the reference ({tier} tier: ")


def test_the_explanation_says_what_was_not_equal_and_to_how_many() -> None:
    assert judge(r"\boxed{3}", "4").explanation.startswith("differs from the reference (exact")
    assert "each of 2 references" in judge(r"\boxed{3}", "4", "5").explanation


def test_any_of_several_references_will_do() -> None:
    assert judge(r"\boxed{3}", "2", "3").verdict == "correct"
    assert judge(r"\boxed{B}", "2", "B").verdict == "correct"


@pytest.mark.parametrize("reference", ["", "  ", "#### ", "$$", r"\boxed{}"])
def test_a_reference_without_an_answer_is_a_fault(reference: str) -> None:
    for ask in (MATH.judge, MATH.glance):
        with pytest.raises(Unjudgeable) as caught:
            ask(item(r"\boxed{3}", reference))
        assert caught.value.reason == "UNUSABLE_REFERENCE"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("$42$", "42"),
        (r"\[ 42 \]", "42"),
        ("so 6 * 7 = <<6*7=42>>42\n#### 42", "42"),
        (r"first \boxed{1}, then \boxed{\frac{1}{2}}.", "1, 1/2"),
        (r"\boxed{\frac{25}{13}}, which is \boxed{1\frac{12}{13}}", "25/13"),
    ],
)
def test_a_reference_may_be_a_solution(reference: str, answer: str) -> None:
    assert equal(answer, reference)
    assert not equal("7", reference)


def test_a_broken_box_is_unparsed_and_said_so() -> None:
    judgement = judge(r"The answer is 3, so \boxed{3", "3")
    assert (judgement.verdict, judgement.extracted_answer) == ("unparsed", None)
    assert "not closed" in judgement.explanation


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_extraction_is_served(mode: str) -> None:
    response = "The answer is 7.\n#### 7\n<answer>7</answer> $7$\n\\boxed{7}\n7"
    expected = {"whole": "incorrect", "choice": "unparsed"}.get(mode, "correct")
    assert judge(response, "7", extract=mode).verdict == expected


def test_strict_pays_only_for_a_marked_answer() -> None:
    assert judge("it is 7", "7").verdict == "correct"
    assert judge("it is 7", "7", extract="strict").verdict == "unparsed"


def test_unfinished_work_gets_no_credit_for_its_last_number() -> None:
    assert MATH.judge(item("so far we have 7", "7", truncated=True)).verdict == "unparsed"
    assert MATH.judge(item(r"so \boxed{7}. Let me", "7", truncated=True)).verdict == "correct"
    lenient = item("we have 7", "7", truncated=True, extract="last-number")
    assert MATH.judge(lenient).verdict == "correct"


@pytest.mark.parametrize(
    ("response", "reference", "verdict"),
    [
        ("#### B", "B", "correct"),
        ("所以答案是A", "A", "correct"),
        ("so option B is right", "B", "correct"),
        ("The answer is (C)", "C", "correct"),
        (r"\boxed{\text{D) } 5}", "D", "correct"),
        ("The answer is (C)", "A", "incorrect"),
        (r"\boxed{A, B, C, D, E}", "A", "incorrect"),
        (r"\boxed{A \text{ or } C}", "A", "incorrect"),
    ],
)
def test_letters(response: str, reference: str, verdict: str) -> None:
    assert judge(response, reference).verdict == verdict


@pytest.mark.parametrize(
    ("response", "reference", "verdict"),
    [
        ("The answer is: Kelly has 50 shells now.", "50", "correct"),
        ("The answer is 80 + 150 = 230 miles.", "230", "correct"),
        ("The answer is 3 or 5.", "5", "incorrect"),
        ("The answer is $3$ or $5$.", "5", "incorrect"),
        ("The answer is Tuesday.", "Tuesday", "correct"),
        ("The answer is Tuesday.", "Monday", "incorrect"),
    ],
)
def test_sentences(response: str, reference: str, verdict: str) -> None:
    assert judge(response, reference).verdict == verdict


def test_suspicions_are_shown_beside_the_verdict() -> None:
    hedged = judge(r"\boxed{3 \text{ or } 5}", "3")
    assert hedged.verdict == "incorrect"
    assert "hedged-answer" in hedged.suspicions
    assert judge(r"\boxed{4 \times 7}", "28").suspicions == (UNDONE_WORK,)


# --- The slow tier --------------------------------------------------------------------------------


def test_a_glance_leaves_to_a_worker_what_only_the_slow_tier_decides() -> None:
    slow = (r"\boxed{\sum_{k=1}^{n} k^3}", r"\frac{n^2(n+1)^2}{4}")
    assert MATH.glance(item(*slow)) is None
    assert judge(*slow).verdict == "correct"
    without = MATH.glance(item(*slow, slow_tier=False))
    assert without is not None
    assert without.verdict == "incorrect"
    assert without.explanation.startswith("could not be shown to equal the reference")
    assert judge(*slow, slow_tier=False) == without


def test_a_glance_agrees_with_the_worker() -> None:
    for response, reference in ((r"\boxed{1/2}", "0.5"), ("no", "5"), (r"\boxed{x}", "y")):
        assert MATH.glance(item(response, reference)) == judge(response, reference)


def test_a_cross_check_goes_to_a_worker_and_keeps_the_verdict() -> None:
    checked = item(r"\boxed{0.5}", r"\frac12", cross_check=True)
    assert MATH.glance(checked) is None
    assert MATH.judge(checked) == judge(r"\boxed{0.5}", r"\frac12")


def test_tiers_that_disagree_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.math import Equivalence, symbolic

    monkeypatch.setattr(
        symbolic, "compare", lambda *_: Equivalence(False, symbolic.TIER, "forged for the test")
    )
    judgement = judge(r"\boxed{0.5}", r"\frac12", cross_check=True)
    assert judgement.verdict == "correct"
    assert judgement.suspicions == (TIERS_DISAGREE,)
    assert "the symbolic tier says that it differs" in judgement.explanation


@pytest.mark.parametrize(
    ("answer", "reference", "same"),
    [
        (r"\sum_{k=1}^{n} k", r"\frac{n(n+1)}{2}", True),
        (r"\sum_{k=1}^{n} k", r"\frac{n(n-1)}{2}", False),
        (r"\sum_{k=1}^{\infty} \frac{1}{k^2}", r"\frac{\pi^2}{6}", True),
        (r"\sum_{k=1}^{\infty} \frac{1}{k^2}", r"\frac{\pi^2}{7}", False),
        (r"\int_0^1 x^2 \, dx", r"\frac{1}{3}", True),
        (r"\int_0^1 x^2 \, dx", r"\frac{1}{4}", False),
        (r"\lim_{x \to 0} \frac{\sin x}{x}", "1", True),
        (r"\lim_{x \to 0} \frac{\sin x}{x}", "2", False),
        (r"\frac{1}{2006!}", r"\frac{1}{2004!}", False),
        (r"2^{-98}", r"2^{-99}", False),
        (r"\sqrt{x^2}", "x", False),
    ],
)
def test_what_needs_more_than_points_in_floating_point(
    answer: str, reference: str, same: bool
) -> None:
    assert equal(answer, reference, undone_work="accept") is same


@pytest.mark.parametrize(
    "answer",
    [
        "9^{9^{9^9}}",
        "((9!)!)!",
        r"\sum_{k=1}^{10000000} \frac{1}{k}",
        r"\binom{1000000}{500000}",
        "(a+b+c+d)^{30000}",
        "1" * 1_900,
        "{" * 300 + "1" + "}" * 300,
        "(" * 500 + "1" + ")" * 500,
        r"\sqrt" * 300 + "2",
    ],
)
def test_a_hostile_answer_is_wrong_and_nothing_worse(answer: str) -> None:
    assert not equal(answer, "42")
    assert not equal(answer, "x^2+1")


@pytest.mark.parametrize(
    "payload",
    [
        "__import__('os').system('true')",
        "open('/tmp/assay-was-here','w')",
        "exec(1)",
        "[].__class__.__base__",
        "lambda: 3",
    ],
)
def test_code_is_only_text(payload: str) -> None:
    assert not equal(payload, "3")
    assert not Path("/tmp/assay-was-here").exists()


# --- Contested conventions: docs/use/math.md names each kind, its default and its knob ------------

_CONTESTED: list[tuple[str, str, str, bool, str, ParameterValue, bool]] = [
    # kind, answer, reference, default, knob, value, with the knob
    ("approx", "0.333", r"\frac{1}{3}", False, "relative_tolerance", 0.01, True),
    ("approx", "1.414", r"\sqrt{2}", False, "approximation_digits", 3, True),
    ("approx", "1.41421356", r"\sqrt{2}", True, "approximation_digits", 0, False),
    ("approx", "3.99999", "4", False, "relative_tolerance", 0.001, True),
    ("rounding", "0.4166", "0.42", False, "decimals", 2, True),
    ("rounding", r"\frac{5}{12}", "0.42", False, "decimals", 2, True),
    ("interval_rounding", "(0.2251, 0.2749)", "(0.225, 0.275)", False, "decimals", 3, True),
    ("percent", "28", r"28\%", True, "percent", "strict", False),
    ("percent", "75", "0.75", False, "percent", "strict", False),
    ("order", "10, 4, -2", "4, 10, -2", True, "ordered_lists", True, False),
    ("case", "X", "x", False, "symbol_case", False, True),
    ("expr_vs_equation", "5", "x=5", True, "strip_name", False, False),
    ("base_subscript", "664", "664_7", True, "missing_base", False, False),
    (
        "form_unreduced",
        r"\frac{2}{4}",
        r"\frac{1}{2}",
        True,
        "allow_rational_unreduced",
        False,
        False,
    ),
]


@pytest.mark.parametrize("case", _CONTESTED, ids=lambda case: f"{case[0]}-{case[4]}")
def test_each_contested_kind_has_its_default_and_its_knob(
    case: tuple[str, str, str, bool, str, ParameterValue, bool],
) -> None:
    _, answer, reference, default, knob, value, turned = case
    assert equal(answer, reference, undone_work="accept") is default
    assert equal(answer, reference, undone_work="accept", **{knob: value}) is turned


# Kinds that have no knob: what is asked in each is one decision, the same for every row.
_DECIDED = {
    "form_equation": False,
    "matrix_vs_list": True,
    "ratio": True,
    "real_root": True,
    "set_vs_tuple": True,
    "solution_set": False,
}


@pytest.mark.data
def test_every_contested_kind_of_the_data_is_decided(shared_data: Path) -> None:
    lines = (shared_data / "math_equiv_contested.jsonl").read_text(encoding="utf-8").splitlines()
    kinds: dict[str, list[bool]] = {}
    for line in lines:
        row = json.loads(line)
        verdict = judge(row["response"], row["gold"], undone_work="accept").verdict
        kinds.setdefault(row["contested"], []).append(verdict == "correct")
    assert set(kinds) == {kind for kind, *_ in _CONTESTED} | set(_DECIDED)
    for kind, decision in _DECIDED.items():
        assert set(kinds[kind]) == {decision}, kind
