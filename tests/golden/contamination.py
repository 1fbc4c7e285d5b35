"""Scores of contamination, and coefficients by task (see functions.py)."""

from __future__ import annotations

from typing import Any

import torch

from assay.trainer.core.batch import kl_coefficients, task_number
from assay.trainer.recipes.contamination import scores
from assay.trainer.recipes.contamination.answering import moments_of
from assay.trainer.settings.objective import LossConfig
from golden.batches import Vector, tensor
from golden.registry import fixed, golden


@golden(scores.entropy_similarity)
def self_critique_similarity(first: Vector, second: Vector) -> Any:
    return scores.entropy_similarity(first, second)


@golden(scores.min_k)
def min_k_score(logprobs: Vector, share: float) -> Any:
    return scores.min_k(logprobs, share)


@golden(scores.min_k_plus, moments_of)
def min_k_plus_score(distributions: list[Vector], tokens: list[int], share: float) -> Any:
    """From the logits of the model to the score."""
    ids_T = torch.tensor(tokens)
    columns = [one.tolist() for one in moments_of(tensor(distributions).log(), ids_T)]
    return scores.min_k_plus(scores.Answered(tuple(tokens), *map(tuple, columns)), share)


@golden(scores.peak, scores.edit_distance)
def cdd_peak(greedy: list[int], samples: list[list[int]], alpha: float) -> Any:
    fixed("alpha", alpha, scores.PEAK_ALPHA)
    return scores.peak(greedy, samples)


@golden(kl_coefficients)
def kl_coefficients_by_task(tasks: list[str], common: float, by_task: dict[str, float]) -> Any:
    batch = {"task": torch.tensor([task_number(task) for task in tasks])}
    config = LossConfig(kl_coef=common, kl_coef_by_task=by_task)
    coefs = kl_coefficients(batch, config)
    return torch.as_tensor(coefs, dtype=torch.float64).flatten().tolist()
