"""A step in numbers: what is counted, what is null, and that every number is documented."""

from __future__ import annotations

import json
import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Component, Judgement, Result
from assay.trainer.records.metric_table import COUNTS, GROUPS, METRICS
from assay.trainer.records.metrics import reported, reported_evaluation, rollout_metrics, step_row
from assay.trainer.rollouts.types import Collected
from trainer_records_support import bad, good, rollout


def test_faults_are_counted_apart() -> None:
    results = [good(1.0), good(0.0, "incorrect"), bad(), bad("ITEM_TIMEOUT")]
    row = rollout_metrics([rollout(result, truncated=n == 0) for n, result in enumerate(results)])
    assert row["reward"] == 0.5
    assert row["correct"] == 0.5
    assert row["fault_ratio"] == 0.5
    assert row["faults"] == {"WORKER_DIED": 1, "ITEM_TIMEOUT": 1}
    assert row["verdicts"] == {"correct": 1, "incorrect": 1}
    assert row["response_length"] == 4
    assert (row["responses"], row["generated_tokens"]) == (4, 16)
    assert row["truncated"] == 0.25
    silent = rollout_metrics([rollout(bad())])
    assert [silent[key] for key in ("reward", "reward_std", "correct")] == [None] * 3
    assert silent["fault_ratio"] == 1.0


def test_the_gap_between_two_orders_is_told_where_a_judge_has_two() -> None:
    seen = [
        Result("", Judgement(0.5, "better", (Component("order-gap", gap, 0.0),)))
        for gap in (0.25, 0.75)
    ]
    assert rollout_metrics([rollout(result) for result in [*seen, bad()]])["order_gap"] == 0.5
    row = step_row(1, {}, Collected([], [rollout(good())]), step_s=1.0)
    assert row["order_gap"] is None


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60))
def test_95_percent_are_no_longer(lengths: list[int]) -> None:
    row = rollout_metrics([rollout(good(), tokens=length) for length in lengths])
    limit = row["response_length_p95"]
    assert limit in lengths
    assert sum(length <= limit for length in lengths) >= 0.95 * len(lengths)
    shorter = [length for length in lengths if length < limit]
    assert len(shorter) < 0.95 * len(lengths)


@given(st.lists(st.sampled_from([good(1.0), good(0.0, "incorrect"), good(0.5, "partial")])))
def test_faults_move_no_mean(results: list[Any]) -> None:
    judged = [rollout(result) for result in results]
    alone, beside = rollout_metrics(judged), rollout_metrics([*judged, rollout(bad())])
    for key in ("reward", "reward_std", "correct", "verdicts"):
        assert alone[key] == beside[key]


def collected(**metrics: float) -> Collected:
    judged = [rollout(good()), rollout(good(0.0, "incorrect"))]
    return Collected([], judged, metrics, generate_s=2.0, wait_s=0.5)


def test_what_is_not_measured_is_null() -> None:
    row = step_row(1, {"loss": 0.0}, Collected([], []), step_s=1.0)
    assert row["loss"] == 0.0
    assert row["responses"] == 0
    zero = {"step", "loss", "responses", "generated_tokens", "step_s", "train_s", "generate_s",
            "score_wait_s", "faults", "verdicts", "tasks"}  # fmt: skip
    assert {key for key, value in row.items() if value is not None} == zero


def test_numbers_come_from_where_they_are_known() -> None:
    logs = {"kl": 0.25, "drift_mean": 1e-4, "entropy": math.nan, "grad_norm": math.inf,
            "completions/mean_length": 7.0, "reward": 99.0, "lm_loss": None}  # fmt: skip
    row = step_row(7, logs, collected(keep_rate=0.5, rounds=3.0), step_s=4.0)
    assert (row["step"], row["kl"], row["drift_mean"]) == (7, 0.25, 1e-4)
    assert (row["keep_rate"], row["rounds"]) == (0.5, 3.0)
    assert row["reward"] == 0.5  # over all judged rollouts, whatever TRL makes of it
    assert [row[key] for key in ("entropy", "grad_norm", "lm_loss")] == [None] * 3
    assert "completions/mean_length" not in row
    assert (row["generate_s"], row["score_wait_s"], row["train_s"]) == (2.0, 0.5, 1.5)
    assert row["tokens_per_s"] == 4.0
    json.dumps(row, allow_nan=False)


@pytest.mark.parametrize("logs", [{}, dict.fromkeys(METRICS, 1.0)])
def test_every_row_has_every_key(logs: dict[str, float]) -> None:
    row = step_row(1, logs, collected(), step_s=1.0)
    assert list(row) == ["step", *METRICS]
    assert {key for key, value in row.items() if isinstance(value, dict)} == COUNTS


def test_a_step_that_waited_for_its_responses_trained_for_the_rest() -> None:
    beside = collected()
    beside.generate_s, beside.wait_s, beside.blocked_s = 5.0, 0.5, 1.5
    row = step_row(1, {}, beside, step_s=4.0)
    assert (row["generate_s"], row["generate_wait_s"], row["train_s"]) == (5.0, 1.5, 2.0)
    beside.blocked_s = None
    assert step_row(1, {}, beside, step_s=9.0)["train_s"] == 3.5


def test_what_is_reported_is_grouped_and_flat() -> None:
    row = step_row(
        3, {"loss": 0.5, "explained_variance": None}, collected(keep_rate=1.0), step_s=4.0
    )
    row["faults"] = {"WORKER_DIED": 2}
    values = reported(row)
    assert values["reward/mean"] == 0.5
    assert values["policy/loss"] == 0.5
    assert values["faults/WORKER_DIED"] == 2
    assert values["verdicts/incorrect"] == 1
    assert values["time/tokens_per_s"] == 2.0 * 2
    assert not [name for name in values if "explained_variance" in name]
    assert all(isinstance(value, int | float) for value in values.values())
    assert {name.split("/")[0] for name in values} <= {*GROUPS, "verdicts"}
    whole = collected(**dict.fromkeys(METRICS, 1.0))
    whole.blocked_s = 1.0
    everything = step_row(1, dict.fromkeys(METRICS, 1.0), whole, step_s=9.0)
    assert len(reported(everything)) == len(METRICS) - len(COUNTS) + 2  # two verdicts, no faults


def test_evaluations_are_reported_under_their_own_name() -> None:
    row = {"step": 3, "accuracy": 0.5, "pass@4": 0.75, "mean_reward": None}
    assert reported_evaluation(row) == {"eval/accuracy": 0.5, "eval/pass@4": 0.75}


@pytest.fixture(scope="module")
def script(repository: Path) -> dict[str, Any]:
    return runpy.run_path(str(repository / "scripts" / "metrics_doc.py"))


def test_every_number_is_documented_and_nothing_else(
    repository: Path, script: dict[str, Any]
) -> None:
    document = (repository / "docs" / "train" / "metrics.md").read_text(encoding="utf-8")
    assert script["with_tables"](document, script["render_tables"]()) == document, (
        "docs/train/metrics.md differs from the table: run `python scripts/metrics_doc.py write`"
    )
    between = document.split(script["BEGIN"])[1].split(script["END"])[0]
    documented = [line.split("`")[1] for line in between.splitlines() if line.startswith("| `")]
    documented = [key for key in documented if key != "metrics.jsonl"]  # the head of each table
    written = step_row(1, {}, collected(), step_s=1.0)
    assert sorted(documented) == sorted(set(written) - {"step"})
    assert {metric.group for metric in METRICS.values()} == set(GROUPS)


def test_a_document_without_marks_is_left_alone(script: dict[str, Any]) -> None:
    begin, end = script["BEGIN"], script["END"]
    for document in ("", begin, end + begin, begin + begin + end, begin + end + end):
        with pytest.raises(ValueError, match="marks once"):
            script["with_tables"](document, "tables\n")


@pytest.mark.parametrize(("verb", "code"), [("check", 0), ("no such verb", 2)])
def test_the_command(repository: Path, verb: str, code: int) -> None:
    command = [sys.executable, str(repository / "scripts" / "metrics_doc.py"), verb]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
