r"""`grade`, `grade_batch` and `extract`: what they return, what they refuse, what they load."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from assay.math import (
    Fault,
    FaultError,
    Judgement,
    Outcome,
    Policy,
    extract,
    grade,
    grade_batch,
)

SUM, CLOSED = r"\boxed{\sum_{k=1}^{n} k^3}", r"\frac{n^2(n+1)^2}{4}"  # for the symbolic tier


def verdict(outcome: Outcome) -> str:
    assert isinstance(outcome, Judgement), outcome
    return outcome.verdict


def test_one_line() -> None:
    assert grade(r"So it is $\boxed{\frac{1}{2}}$.", "0.5").reward == 1.0
    assert grade(r"So it is $\boxed{\frac{1}{3}}$.", "0.5").reward == 0.0


def test_a_judgement_says_what_was_found_and_why() -> None:
    said = grade(r"So it is $\boxed{\frac{1}{2}}$.", "0.5")
    assert isinstance(said, Judgement)
    assert (said.verdict, said.answer, said.how) == ("correct", r"\frac{1}{2}", "boxed")
    assert said.tier == "exact"
    assert said.explanation.startswith("equal to the reference (exact tier: ")
    assert said.correct
    assert grade("I do not know.", "3") == Judgement(
        "unparsed", None, "", "", "no answer was found (auto)"
    )


def test_any_of_several_references_will_do() -> None:
    assert verdict(grade(r"\boxed{3}", ["2", "3"])) == "correct"
    assert verdict(grade(r"\boxed{3}", ("2", "4"))) == "incorrect"


def test_the_symbolic_tier_is_asked_in_a_process_or_not_at_all() -> None:
    said = grade(SUM, CLOSED, timeout_s=60)
    assert isinstance(said, Judgement)
    assert (said.verdict, said.tier) == ("correct", "symbolic")
    without = grade(SUM, CLOSED, slow_tier=False)
    assert isinstance(without, Judgement)
    assert without.verdict == "incorrect"
    assert without.explanation.startswith("could not be shown to equal the reference")


def test_options_reach_the_judgement() -> None:
    assert verdict(grade("The answer is 3.", "3", extract="boxed")) == "unparsed"
    assert verdict(grade("It is 3", "3")) == "correct"
    assert verdict(grade("It is 3", "3", truncated=True)) == "unparsed"
    assert verdict(grade(r"\boxed{0.333}", "1/3")) == "incorrect"
    assert verdict(grade(r"\boxed{0.333}", "1/3", policy=Policy(decimals=3))) == "correct"
    assert verdict(grade(r"\boxed{4 \times 7}", "28")) == "incorrect"
    undone = grade(r"\boxed{4 \times 7}", "28", undone_work="accept")
    assert isinstance(undone, Judgement)
    assert (undone.verdict, undone.signs) == ("correct", ("undone-work",))


# --- A fault is not a zero ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "reference", "reason"),
    [
        ("3", " ", "UNUSABLE_REFERENCE"),
        ("3", ["3", "$$"], "UNUSABLE_REFERENCE"),
        ("3", "#### ", "UNUSABLE_REFERENCE"),
        ("3", None, "MISSING_REFERENCE"),
        ("3", [], "MISSING_REFERENCE"),
        ("3", 3, "UNSUPPORTED_INPUT"),
        ("3", ["3", 3.5], "UNSUPPORTED_INPUT"),
        ("3", {"answer": "3"}, "UNSUPPORTED_INPUT"),
        ("3", b"3", "UNSUPPORTED_INPUT"),
        (None, "3", "UNSUPPORTED_INPUT"),
        ([{"role": "assistant", "content": "3"}], "3", "UNSUPPORTED_INPUT"),
    ],
)
def test_what_cannot_be_judged_is_a_fault_that_says_why(
    response: object, reference: object, reason: str
) -> None:
    said = grade(response, reference)  # type: ignore[arg-type]  # what data may hold
    assert isinstance(said, Fault)
    assert said.reason == reason
    assert said.message


def test_a_fault_has_no_number() -> None:
    said = grade("3", " ")
    for ask in ("reward", "correct"):
        with pytest.raises(FaultError, match="a fault is not a zero: UNUSABLE_REFERENCE") as caught:
            getattr(said, ask)
        assert caught.value.fault == said
    assert said.reward_or(None) is None
    assert grade(r"\boxed{3}", "3").reward_or(None) == 1.0


def test_a_defect_of_ours_costs_one_response(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("3")

    monkeypatch.setattr("assay.math.extraction.look", broken)
    said = grade("3", "3")
    assert isinstance(said, Fault)
    assert said.reason == "VERIFIER_FAILED"
    assert "KeyError at test_math_grade.py:" in said.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"extract": "box"}, "extract is 'box'; it can be auto, strict, boxed"),
        ({"undone_work": "no"}, "undone_work is 'no'; it can be"),
        ({"timeout_s": 0}, "timeout_s is 0; it takes seconds, more than 0"),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
        ({"timeout_s": float("inf")}, "timeout_s is inf"),
    ],
)
def test_an_option_without_such_a_value_is_an_error(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        grade("3", "3", **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=said):
        grade_batch(["3"], ["3"], **options)  # type: ignore[arg-type]


# --- Batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_a_batch_says_in_order_what_each_alone_gets(workers: int) -> None:
    rows = [
        (r"\boxed{3}", "3"),
        (SUM, CLOSED),
        ("3", " "),
        (SUM, r"\frac{n^2(n+1)^2}{5}"),
        ("nothing", "3"),
        (SUM, [r"n", CLOSED]),
    ]
    responses, references = [a for a, _ in rows], [b for _, b in rows]
    batch = grade_batch(iter(responses), iter(references), timeout_s=60, workers=workers)
    assert batch == [grade(a, b, timeout_s=60) for a, b in rows]
    assert [outcome.reward_or(None) for outcome in batch] == [1.0, 1.0, None, 0.0, 0.0, 1.0]


def test_a_batch_takes_which_responses_were_cut() -> None:
    said = grade_batch(["It is 3"] * 2, ["3"] * 2, truncated=[True, False])
    assert list(map(verdict, said)) == ["unparsed", "correct"]


def test_a_batch_of_nothing_is_nothing_and_lengths_must_agree() -> None:
    assert grade_batch([], []) == []
    with pytest.raises(ValueError, match="2 responses, 1 references"):
        grade_batch(["3", "3"], ["3"])
    with pytest.raises(ValueError, match="at least one"):
        grade_batch(["3"], ["3"], workers=0)


# --- Extraction -----------------------------------------------------------------------------------


def test_extract_says_text_rule_and_place() -> None:
    response = r"so \boxed{4}."
    found = extract(response)
    assert found is not None
    assert (found.text, found.how, response[found.start : found.end]) == ("4", "boxed", "4")
    assert extract("nothing here") is None
    assert extract("It is 4.", "strict") is None
    with pytest.raises(ValueError, match="known: auto"):
        extract("4", "box")


# --- What it costs to import, and what stands beside it -------------------------------------------


def python(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_quick_tiers_load_no_sympy_no_grpc_and_nothing_of_assay(repository: Path) -> None:
    code = """
import sys
from assay.math import grade
assert grade(r"\\boxed{2/4}", "0.5").reward == 1.0
heavy = {"sympy", "mpmath", "grpc", "google", "subprocess", "multiprocessing", "numpy"}
print(sorted(name for name in sys.modules if name.split(".")[0] in heavy))
print(sorted({".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("assay")}))
"""
    assert python(code, repository) == "[]\n['assay', 'assay.math']\n"


@pytest.mark.parametrize("folder", [".", "math", "tests", "reward_server"])
def test_the_folder_named_math_hides_nothing(repository: Path, folder: str) -> None:
    """Not even where C's `math` is a file of the standard library and looked for on the path."""
    code = "import math, assay.math; print(math.gcd(4, 6), assay.math.grade('3', '3').reward)"
    assert python(code, repository / folder) == "2 1.0\n"
    assert not (repository / "math" / "__init__.py").exists()


def test_outcomes_can_be_pickled() -> None:
    for outcome in (grade(r"\boxed{3}", "3"), grade("3", " ")):
        assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert pickle.loads(pickle.dumps(grade)) is grade
