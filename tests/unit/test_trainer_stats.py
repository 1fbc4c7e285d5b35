"""Intervals and tests against published values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.runs.stats import mcnemar_exact, paired_change, wilson
from assay.trainer.evaluation import Answer, Evaluation
from assay.trainer.report import change_line, compare, markdown


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_nothing_judged_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert paired_change(0, 0, 0) == (0.0, -1.0, 1.0)
    assert mcnemar_exact(0, 0) == 1.0
    with pytest.raises(ValueError, match="no proportion"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="do not fit"):
        paired_change(2, 1, 2)


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(10, 0, 2 / 1024), (9, 1, 22 / 1024), (5, 5, 1.0), (1, 0, 1.0), (6, 1, 16 / 128)],
)
def test_mcnemar_is_the_binomial_test(gained: int, lost: int, p: float) -> None:
    assert mcnemar_exact(gained, lost) == mcnemar_exact(lost, gained) == pytest.approx(p)


@given(st.integers(0, 300), st.integers(0, 300))
def test_intervals_hold_their_estimate(a: int, b: int) -> None:
    low, high = wilson(a, a + b)
    assert 0 <= low <= high <= 1
    if a + b:
        assert low - 1e-12 <= a / (a + b) <= high + 1e-12
    change, down, up = paired_change(a, b, a + b + 5)
    assert -1 <= down <= up <= 1
    assert down <= change * (a + b + 5) / (a + b + 7) <= up


def answer(n: int, verdict: str | None, *, response: str = "1") -> Answer:
    fault = None if verdict else "WORKER_DIED"
    reward = None if verdict is None else float(verdict == "correct")
    return Answer(
        f"eval-{n}",
        f"q{n}",
        "1",
        response,
        2,
        truncated=False,
        verdict=verdict,
        reward=reward,
        fault=fault,
    )


def test_a_fault_is_not_a_wrong_answer() -> None:
    before = Evaluation(
        tuple(answer(n, v) for n, v in enumerate(["incorrect", "correct", None, "incorrect"]))
    )
    after = Evaluation(
        tuple(answer(n, v) for n, v in enumerate(["correct", None, "correct", "incorrect"]))
    )
    report = compare(before, after)
    assert (
        report["before"]["judged"],
        report["before"]["faults"],
        report["before"]["accuracy"],
    ) == (3, 1, 1 / 3)
    assert (report["change"]["pairs"], report["change"]["gained"], report["change"]["lost"]) == (
        2,
        1,
        0,
    )
    assert change_line(report).startswith("change on the same 2 prompts: +50.0 points [")
    assert Evaluation.from_json(before.to_json()) == before


def test_nothing_judged_is_no_accuracy() -> None:
    nothing = Evaluation((answer(0, None),))
    summary = nothing.summary()
    assert summary["accuracy"] is None
    assert summary["mean_reward"] is None
    compare(nothing, nothing)


def test_responses_cannot_break_the_report() -> None:
    before = Evaluation(
        (answer(0, "incorrect", response="a `b`\n\n# c | d"), answer(1, None, response=" "))
    )
    report = {
        **compare(before, before),
        "run": {"name": "n", "steps": 1, "samples_per_step": 2, "model": "m", "seed": 0},
    }
    text = markdown(report, before, before, show=2)
    assert "- before (incorrect): `` a `b` # c | d ``" in text
    assert "- after (fault: WORKER_DIED): (empty)" in text
