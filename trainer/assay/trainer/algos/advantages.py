"""Group-relative advantages, with faulted samples left out of everything.

    GRPO (arXiv 2402.03300, section 4.1.2, outcome supervision): A_i = (r_i - mean(r)) / (std(r) +
    eps), where mean and std go over the G samples of one prompt and std is the unbiased one.

Differences from the paper:
1. A sample without a judgement (NaN) is no sample of its group: it is in no mean and no std, and
   its advantage is 0.
2. eps is 1e-4 as in TRL, so that the case without faults gives TRL's own numbers.
3. `scale="batch"` divides by the std over all judged rewards (arXiv 2508.08221), `scale="none"` by
   nothing (Dr. GRPO, arXiv 2503.20783).
"""

from __future__ import annotations

from typing import Literal

import torch

Scale = Literal["group", "batch", "none"]
TRL_EPS = 1e-4


def group_advantages(
    rewards_PG: torch.Tensor, *, scale: Scale = "group", eps: float = TRL_EPS
) -> torch.Tensor:
    """Advantages of P groups of G samples.

    Args:
        rewards_PG: rewards, shape (P, G); NaN where there is no judgement.
        scale: what the centred reward is divided by: the std of its group, of the batch, or
            nothing.
        eps: added to the std.

    Returns:
        Advantages, shape (P, G) and dtype of the rewards, never NaN: 0 for a faulted sample, and 0
        for a group with fewer than two judged samples, in which there is nothing to compare.

    Raises:
        ValueError: the rewards have not two dimensions, or the scale is unknown.
    """
    if rewards_PG.dim() != 2:
        raise ValueError(f"rewards must have the shape (P, G), got {tuple(rewards_PG.shape)}")
    rewards = rewards_PG.double()
    judged_PG = ~torch.isnan(rewards)
    count_P1 = judged_PG.sum(dim=1, keepdim=True)
    mean_P1 = rewards.nansum(dim=1, keepdim=True) / count_P1.clamp(min=1)
    centred_PG = torch.where(judged_PG & (count_P1 >= 2), rewards - mean_P1, 0.0)
    match scale:
        case "group":
            variance = centred_PG.square().sum(dim=1, keepdim=True) / (count_P1 - 1).clamp(min=1)
            advantages = centred_PG / (variance.sqrt() + eps)
        case "batch":
            judged = rewards[judged_PG]
            deviation = judged.std() if judged.numel() > 1 else torch.zeros_like(mean_P1[0, 0])
            advantages = centred_PG / (deviation + eps)
        case "none":
            advantages = centred_PG
        case _:
            raise ValueError(f"unknown scale {scale!r}; known: group, batch, none")
    return advantages.to(rewards_PG.dtype)
