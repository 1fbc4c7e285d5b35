"""A step in numbers: one row of metrics.jsonl, and the same for TensorBoard and its like. Pure.

Each row has a column for every metric of `metric_table`. What was not measured is null, never 0:
the KL without a reference model, a mean of rewards where nothing was judged.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from assay.kit.runs.records import Row
from assay.trainer.records.metric_table import METRICS
from assay.trainer.rollouts.pairs import order_gap
from assay.trainer.rollouts.types import Collected, Known


def rollout_metrics(rollouts: Sequence[Known]) -> Row:
    """Rewards and verdicts over judged rollouts, lengths over all.

    Of a step's rollouts over all processes, those of dropped groups included.
    """
    judgements = [r.result.judgement for r in rollouts if r.result.judgement is not None]
    faults = Counter(r.result.fault.reason for r in rollouts if r.result.fault is not None)
    verdicts = Counter(judgement.verdict for judgement in judgements)
    rewards = [judgement.reward for judgement in judgements]
    tasks = (r.request.draw.problem.task for r in rollouts if r.request.draw.problem.task)
    lengths = sorted(r.length for r in rollouts)
    gaps = [gap for judgement in judgements if (gap := order_gap(judgement)) is not None]
    return {
        "reward": _mean(rewards),
        "reward_std": statistics.stdev(rewards) if len(rewards) > 1 else None,
        "correct": verdicts["correct"] / len(judgements) if judgements else None,
        "verdicts": dict(verdicts),
        **({"order_gap": _mean(gaps)} if gaps else {}),
        "fault_ratio": faults.total() / len(rollouts) if rollouts else None,
        "faults": dict(faults),
        "tasks": dict(sorted(Counter(tasks).items())),
        "responses": len(rollouts),
        "generated_tokens": sum(lengths),
        "response_length": _mean(lengths),
        "response_length_p95": lengths[math.ceil(0.95 * len(lengths)) - 1] if lengths else None,
        "truncated": _mean([float(r.truncated) for r in rollouts]),
    }


def step_row(step: int, logs: Mapping[str, Any], collected: Collected, *, step_s: float) -> Row:
    """One row of metrics.jsonl: `step`, from 1, and every key of METRICS.

    `logs` are the trainer's means over the step's updates and over processes; names outside of
    `metric_table` are left out. `step_s` are the seconds since the log before.
    """
    seen = rollout_metrics(collected.judged)
    if collected.slot_rows is not None:  # what ended in this step was drawn over several
        seen["generated_tokens"] = int(collected.metrics["generated_tokens"])
    tokens, generate_s = seen["generated_tokens"], collected.generate_s
    blocked_s = generate_s if collected.blocked_s is None else collected.blocked_s
    times = {
        "step_s": round(step_s, 4),
        "generate_s": round(generate_s, 4),
        "generate_wait_s": None if collected.blocked_s is None else round(blocked_s, 4),
        "score_wait_s": round(collected.wait_s, 4),
        "train_s": round(max(0.0, step_s - blocked_s - collected.wait_s), 4),
        "tokens_per_s": round(tokens / generate_s, 2) if generate_s > 0 else None,
    }
    row: Row = {"step": step}
    for key in METRICS:
        row[key] = _finite(logs.get(key, collected.metrics.get(key)))
    return {**row, **seen, **times}


def _finite(value: object) -> float | int | None:
    """The number; None for what is none, and for NaN and infinity, which JSON lacks."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def reported(row: Mapping[str, Any]) -> dict[str, float]:
    """A row of metrics.jsonl for reporters, by grouped names.

    "reward" becomes "reward/mean", "faults" one "faults/<reason>" for each. What was not measured
    is left out.
    """
    named: dict[str, float] = {}
    for key, metric in METRICS.items():
        value = row.get(key)
        if isinstance(value, Mapping):
            named |= {f"{metric.shown}/{name}": count for name, count in value.items()}
        elif value is not None:
            named[f"{metric.group}/{metric.shown}"] = value
    return named


def reported_evaluation(row: Mapping[str, Any]) -> dict[str, float]:
    """A row of evals.jsonl for reporters, as "eval/accuracy" and so on."""
    return {
        f"eval/{key}": value
        for key, value in row.items()
        if key != "step" and value is not None and not isinstance(value, str)
    }
