"""Methods of a formula or two, through the code that trains (see functions.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from assay.trainer.core.batch import Scored, group_advantages
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.methods.shaping.shape import progress_of, shape
from assay.trainer.settings.objective import AdvantageConfig
from golden.batches import Vector, batch_of, judged, plain_rows, response, tensor
from golden.registry import golden


@golden(group_advantages)
def medium_difficulty(correct: Sequence[int | None]) -> Any:
    """The advantages of a prompt with the weight, over those without; its rewards just differ."""
    rewards_B = tensor([math.nan if one is None else n for n, one in enumerate(correct)])
    columns = {"rewards": rewards_B, "correct": torch.tensor([one == 1 for one in correct])}
    batch = batch_of(plain_rows(len(correct), 1), **columns)
    plain = group_advantages(batch, AdvantageConfig(scale="none"), len(correct))
    weighed = AdvantageConfig(scale="none", difficulty="medium")
    found = group_advantages(batch, weighed, len(correct)).sum(dim=1)
    place = int(plain.sum(dim=1).abs().argmax())
    return found[place] / plain[place, 0]


@golden(shape)
def concise_bonus(length: int, correct: bool, below: int, bonus: float) -> Any:
    config = ShapingConfig(concise_bonus=bonus, concise_below=below)
    return shape(response((0,) * length, judged(correct)), 0.0, config, length).reward


@golden(shape)
def calibrated_length_penalty(
    length: int, pass_rate: float, least: int, most: int, factor: float
) -> Any:
    config = ShapingConfig(budget_penalty=factor, budget_least=least, budget_most=most)
    return shape(response((0,) * length), 0.0, config, length, pass_rate=pass_rate).reward


@golden(progress_of)
def self_reference(
    responses: Sequence[Sequence[int]],
    rewards: Vector,
    correct: Sequence[bool],
    share: float,
    cuts: int,
) -> Any:
    group = [
        Scored(response(ids, judged(yes)), reward)
        for ids, reward, yes in zip(responses, rewards, correct, strict=True)
    ]
    return progress_of(group, ShapingConfig(progress=share, progress_cuts=cuts))
