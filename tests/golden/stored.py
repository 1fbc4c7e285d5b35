"""The losses of stored responses, whose columns a method marks (see functions.py)."""

from __future__ import annotations

from typing import Any

import torch

from assay.trainer.algos.offline import a_lol_token_losses as a_lol_kernel
from assay.trainer.algos.offline import direct_advantage_losses as direct_advantage_kernel
from assay.trainer.algos.offline import dpo_losses as dpo_kernel
from assay.trainer.algos.offline import prdp_losses as prdp_kernel
from assay.trainer.algos.offline import step_numbers
from assay.trainer.algos.packing import TOGETHER
from assay.trainer.methods.offline.losses import (
    ALolConfig,
    DirectAdvantageConfig,
    DpoConfig,
    PrdpConfig,
)
from assay.trainer.methods.offline.surrogates import BETTER, STEPS
from assay.trainer.settings.objective import LossConfig
from golden.batches import Matrix, Vector, row, tensor
from golden.losses import loss, policy_loss
from golden.registry import golden

PAIR = {TOGETHER: torch.tensor([0, 0]), BETTER: torch.tensor([True, False])}


def of_pairs(objective: str, own: Any, *, first: Any, second: Any, **columns: Any) -> list[float]:
    """The loss of each pair of a batch, alone in its mini-batch."""
    config = LossConfig(objective=objective, aggregation="seq-mean-token-mean")
    found = []
    for one, other in zip(first, second, strict=True):
        (logps, old, on, reward), (logps_2, old_2, on_2, reward_2) = one, other
        found.append(
            loss(
                [logps, logps_2],
                config,
                own=own,
                mask=[on, on_2],
                old_logps=tensor([old, old_2]),
                rewards=tensor([reward, reward_2]),
                **columns,
            )
        )
    return found


@golden(policy_loss, dpo_kernel)
def dpo_losses(
    *,
    chosen: Matrix,
    rejected: Matrix,
    ref_chosen: Matrix,
    ref_rejected: Matrix,
    chosen_mask: Matrix,
    rejected_mask: Matrix,
    beta: float,
) -> Any:
    none = [0.0] * len(chosen)
    return of_pairs(
        "dpo",
        DpoConfig(beta=beta),
        first=zip(chosen, ref_chosen, chosen_mask, none, strict=True),
        second=zip(rejected, ref_rejected, rejected_mask, none, strict=True),
        **PAIR,
    )


@golden(policy_loss, prdp_kernel)
def prdp_losses(
    *,
    first: Matrix,
    second: Matrix,
    ref_first: Matrix,
    ref_second: Matrix,
    rewards_first: Vector,
    rewards_second: Vector,
    beta: float,
) -> Any:
    ones = [[1.0] * len(row) for row in first]
    return of_pairs(
        "prdp",
        PrdpConfig(beta=beta),
        first=zip(first, ref_first, ones, rewards_first, strict=True),
        second=zip(second, ref_second, ones, rewards_second, strict=True),
        **PAIR,
    )


@golden(policy_loss, a_lol_kernel)
def a_lol_losses(
    *,
    logprobs: Matrix,
    ref_logprobs: Matrix,
    advantages: Vector,
    mask: Matrix,
    clip_range: float,
    by_token: bool = False,
) -> Any:
    config = LossConfig(objective="a-lol", aggregation="seq-mean-token-sum")
    own = ALolConfig(clip=clip_range, ratio="token" if by_token else "response")
    return [
        loss(
            [new],
            config,
            own=own,
            advantages=torch.full((1, len(new)), a, dtype=torch.float64),
            mask=[on],
            old_logps=row(old),
        )
        for new, old, a, on in zip(logprobs, ref_logprobs, advantages, mask, strict=True)
    ]


@golden(policy_loss, direct_advantage_kernel)
def direct_advantage_po(
    logprobs: Vector, ref_logprobs: Vector, advantages: Vector, step_ends: Vector, beta: float
) -> Any:
    return loss(
        [logprobs],
        LossConfig(objective="direct-advantage", aggregation="seq-mean-token-sum"),
        own=DirectAdvantageConfig(beta=beta),
        advantages=row(advantages),
        old_logps=row(ref_logprobs),
        **{STEPS: step_numbers(torch.tensor([step_ends]))},
    )
