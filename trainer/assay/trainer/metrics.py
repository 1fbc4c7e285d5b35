"""One row per step, of TRL's logs and the judgements, for metrics.jsonl and TensorBoard.

`metrics.jsonl` holds one JSON object per line, flushed at once. A number that was not measured is
null, never 0 (the KL without a reference model; rollout figures in a step that reuses the last
rollout).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from assay.clients.runs.records import Row
from assay.trainer.rewards import Rollout

_FROM_TRL = {
    "loss": "loss",
    "kl": "kl",
    "entropy": "entropy",
    "clip_ratio": "clip_ratio/region_mean",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
}


def rollout_metrics(rollouts: Sequence[Rollout]) -> Row:
    """A step in numbers: rewards and verdicts over judged samples, lengths over all."""
    judgements = [r.result.judgement for r in rollouts if r.result.judgement is not None]
    faults = Counter(r.result.fault.reason for r in rollouts if r.result.fault is not None)
    verdicts = Counter(judgement.verdict for judgement in judgements)
    rewards = [judgement.reward for judgement in judgements]
    lengths = [r.sample.token_count for r in rollouts if r.sample.token_count is not None]
    return {
        "reward": statistics.fmean(rewards) if rewards else None,
        "reward_std": statistics.stdev(rewards) if len(rewards) > 1 else None,
        "correct": verdicts["correct"] / len(judgements) if judgements else None,
        "fault_ratio": faults.total() / len(rollouts) if rollouts else None,
        "faults": dict(faults),
        "verdicts": dict(verdicts),
        "response_length": statistics.fmean(lengths) if lengths else None,
        "truncated": statistics.fmean(r.sample.truncated for r in rollouts) if rollouts else None,
    }


def trl_metrics(logs: Mapping[str, Any]) -> Row:
    """TRL's numbers of a step under our names."""
    return {ours: _finite(logs.get(theirs)) for ours, theirs in _FROM_TRL.items()}


def _finite(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


class TensorBoard:
    """Writes the numbers of each row as scalars, grouped for reading."""

    def __init__(self, folder: Path, *, first_step: int) -> None:
        self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def write(self, row: Mapping[str, Any]) -> None:
        """Adds one row."""
        for key, value in _scalars(row):
            self._writer.add_scalar(key, value, row["step"])
        self._writer.flush()

    def close(self) -> None:
        """Ends the files."""
        self._writer.close()


def _scalars(row: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for key, value in row.items():
        if isinstance(value, dict):
            yield from ((f"{key}/{name}", count) for name, count in value.items())
        elif isinstance(value, int | float) and key != "step":
            yield f"time/{key}" if key.endswith("_s") else f"train/{key}", value


def sample_rows(step: int, rollouts: Sequence[Rollout]) -> Iterable[Row]:
    """Rollouts with their judgements, for samples.jsonl."""
    for rollout in rollouts:
        judgement, fault = rollout.result.judgement, rollout.result.fault
        yield {
            "step": step,
            "problem": rollout.sample.group,
            "question": rollout.sample.question,
            "reference": rollout.sample.reference,
            "response": rollout.sample.response,
            "reward": judgement.reward if judgement else None,
            "verdict": judgement.verdict if judgement else None,
            "answer": judgement.extracted_answer if judgement else None,
            "explanation": judgement.explanation if judgement else None,
            "fault": fault.reason if fault else None,
        }
