"""Intervals and tests against published values."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.clients.types import Reliability, VerifierInfo
from assay.kit.reliability import error_rate
from assay.kit.runs.stats import mcnemar_exact, paired_change, wilson
from assay.trainer.core.evaluation import Answer, Evaluation
from assay.trainer.records.report import (
    accuracies,
    change_line,
    compare,
    faults_by_reason,
    markdown,
    table,
    told_verifier,
    write,
)


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


def some_run(report: dict[str, Any], **more: Any) -> dict[str, Any]:
    run = {"name": "n", "steps": 1, "samples_per_step": 2, "model": "m", "seed": 0}
    return {**report, "run": run, **more}


def test_responses_cannot_break_the_report() -> None:
    before = Evaluation(
        (answer(0, "incorrect", response="a `b`\n\n# c | d"), answer(1, None, response=" "))
    )
    report = some_run(compare(before, before))
    text = markdown(report, before, before, show=2)
    assert "- before (incorrect): `` a `b` # c | d ``" in text
    assert "- after (fault: WORKER_DIED): (empty)" in text
    assert "```` ``` ````" in markdown(
        report, before, Evaluation((answer(0, "correct", response="```"),)), show=1
    )


def several(verdicts: Sequence[str]) -> Evaluation:
    """Problems by their verdicts: "++-" is right, right, wrong; "?" is a fault."""
    names = {"+": "correct", "-": "incorrect", "?": None}
    return Evaluation(
        tuple(
            dataclasses.replace(answer(n, names[sign]), sample=index, answer=sign)
            for n, signs in enumerate(verdicts)
            for index, sign in enumerate(signs)
        )
    )


def test_samples_are_compared_by_problem() -> None:
    before = several(["+---", "----", "+-+-", "??--"])
    after = several(["++--", "+---", "+-+-", "++??"])
    report = compare(before, after)
    change = report["change"]
    assert (change["pairs"], change["gained"], change["lost"]) == (4, 3, 0)
    assert change["accuracy"] == pytest.approx((0.25 + 0.25 + 0 + 1) / 4)
    assert change["test"] == "sign flips"
    assert change["p"] == pytest.approx(2 / 8)
    assert list(change["pass_at"]) == ["2", "4"]
    assert change["pass_at"]["4"] == {
        "pairs": 3, "value": pytest.approx(1 / 3), "low": ANY, "high": ANY,
    }  # fmt: skip
    said = change_line(report)
    assert said.startswith("change of avg@4 on the same 4 prompts: +37.5 points [")
    assert said.endswith("3 gained, 0 lost, sign flips p = 0.250")

    out = io.StringIO()
    narrow = io.StringIO()
    Console(file=narrow, width=80).print(table(report))
    assert "\u2026" not in narrow.getvalue(), "a log has 80 columns, and loses no number"
    Console(file=out, width=110).print(table(report))
    shown = out.getvalue()
    assert "4 held-out prompts, 4 samples each" in shown
    for name in ("avg@4", "pass@2", "pass@4", "maj@4", "faults, left out"):
        assert name in shown
    assert "pass@1 " not in shown
    text = markdown(some_run(report), before, after, show=0)
    assert "| pass@4 | 66.7%" in text
    assert "Prompts left out after, for too few judgements: pass@4 1." in text
    assert "## Responses" not in text


def test_the_report_says_how_it_was_trained_and_what_went_unjudged(tmp_path: Path) -> None:
    rows = [
        {"faults": {"ITEM_TIMEOUT": 1}},
        {"faults": None},
        {"faults": {"X": 3, "ITEM_TIMEOUT": 1}},
    ]
    faults = faults_by_reason(rows)
    assert list(faults.items()) == [("X", 3), ("ITEM_TIMEOUT", 2)]
    both = several(["+", "-"])
    report = some_run(compare(both, both), faults=faults)
    write(tmp_path, report, markdown(report, both, both, show=1, method="grpo, ```fences```\n"))
    text = (tmp_path / "report.md").read_text()
    assert "````text\ngrpo, ```fences```\n````" in text
    assert "| `X` | 3 |\n| `ITEM_TIMEOUT` | 2 |" in text
    assert "![curves](curves.png)" in text
    assert json.loads((tmp_path / "report.json").read_text()) == report


def test_without_an_evaluation_there_is_a_report_all_the_same() -> None:
    text = markdown(some_run({}, faults={}), None, None, show=3, method="grpo")
    assert "Every rollout of the training was judged." in text
    assert "## Before and after" not in text
    assert "## Responses" not in text


def test_an_evaluation_of_faults_only_is_reported() -> None:
    nothing = several(["??", "??"])
    report = some_run(compare(nothing, nothing))
    assert report["change"]["p"] == 1.0
    assert accuracies(report) == "- -> -"
    assert "| avg@2 | - | - |" in markdown(report, nothing, nothing, show=1)


def test_a_run_reports_what_is_known_of_its_verifier() -> None:
    measured = Reliability("gsm8k", error_rate(0, 50), None, "5", "ab" * 32, "labels")
    verifier = VerifierInfo(
        "math", "5", "Judges.", (), 0, 1, True, True, True, False, (), ("correct",), False,
        (measured,),
    )  # fmt: skip
    told = told_verifier(verifier)
    assert json.loads(json.dumps(told)) == told
    run = {"name": "r", "model": "m", "steps": 1, "samples_per_step": 1, "seed": 0}
    text = markdown({"run": run, "judged_by": told}, None, None, show=0)
    assert "`math`, version `5`" in text
    assert "- gsm8k: wrong accepted 0 % (0 to 7.1; 50 responses)" in text
    told = told_verifier(dataclasses.replace(verifier, reliability=()))
    text = markdown({"run": run, "judged_by": told}, None, None, show=0)
    assert "has not been measured" in text
