"""Advantages without a critic, and filters for advantages of any origin.

    group     A_i = (r_i - mean(r)) / (std(r) + eps)      GRPO (arXiv 2402.03300, section 4.1.2)
    none      A_i = r_i - mean(r)                         Dr. GRPO (arXiv 2503.20783)
    rloo      A_i = r_i - mean of the others' r           RLOO (arXiv 2402.14740)
    symmetric A_i = mean over j of w_ij - 1/2             Pairwise-RL (arXiv 2504.04950)
    plain     A_i = r_i                                   REINFORCE (Williams 1992)
    task      divided by sqrt(mean over the task's prompts of var)   GoLongRL (arXiv 2605.19577)
    keyed     whitening for each role or task by itself   PAG's RoleAdvNorm (arXiv 2506.10406)
    sigmas    0 where |A - mean| > 3 std                  StableReinforce (arXiv 2505.02835)
    success   A < 0 times base + slope * mean(r)          GUI-Libra (arXiv 2602.22190)

where mean and the unbiased std go over the G samples of one prompt.

Differences from the papers:
1. A sample without a judgement (NaN) is in no mean and no std, and its advantage is 0. A group with
   fewer than two judged samples has advantages of 0.
2. eps is 1e-4 as in TRL, so that the case without faults gives TRL's numbers; DAPO's authors have
   1e-6.
3. `scale="batch"` divides by the std over all judged rewards (arXiv 2508.08221).
4. RLOO can be scaled; the paper does not scale.
5. StableReinforce normalises before it filters; here the two are separate parts.
6. The symmetric form is a derivation: the text of Pairwise-RL was not at hand. It can be scaled.
7. GoLongRL's scale is that of the authors' repository (tmn_grpo), which gives a prompt of one
   sample the variance 1; here it has none, and its advantage is 0. Their eps is 1e-6.
"""

from __future__ import annotations

from typing import Literal

import torch

from assay.trainer.algos.moments import keyed_moments

Scale = Literal["group", "batch", "task", "none"]
TRL_EPS = 1e-4


def group_advantages(
    rewards_PG: torch.Tensor,
    *,
    scale: Scale = "group",
    tasks_P: torch.Tensor | None = None,
) -> torch.Tensor:
    """Advantages of P groups of G samples: GRPO (arXiv 2402.03300, section 4.1.2).

    With scale "none" they are Dr. GRPO's (arXiv 2503.20783). Rewards are NaN where there is no
    judgement. `tasks_P` are task numbers, for the scale "task"; by default all are of one task.

    Returns:
        Shape (P, G) and dtype of the rewards, never NaN: 0 for a faulted sample, and for a group
        with fewer than two judged samples.

    Raises:
        ValueError: the rewards have not two dimensions, or the scale is unknown.
    """
    rewards, judged_PG, count_P1 = _judged(rewards_PG)
    centred_PG = _centred(rewards, judged_PG, count_P1)
    return _scaled(centred_PG, rewards, judged_PG, scale, tasks_P).to(rewards_PG.dtype)


def rloo_advantages(
    rewards_PG: torch.Tensor,
    *,
    scale: Scale = "none",
    tasks_P: torch.Tensor | None = None,
) -> torch.Tensor:
    """A_i = R_i - mean over j != i of R_j: RLOO (arXiv 2402.14740).

    With n judged samples this is n / (n - 1) times the reward less the mean of its group. The paper
    has scale "none". Arguments, result and errors are those of `group_advantages`.
    """
    rewards, judged_PG, count_P1 = _judged(rewards_PG)
    centred_PG = _centred(rewards, judged_PG, count_P1)
    scaled_PG = _scaled(centred_PG, rewards, judged_PG, scale, tasks_P)
    return (scaled_PG * (count_P1 / (count_P1 - 1).clamp(min=1))).to(rewards_PG.dtype)


def symmetric_advantages(
    wins_PG: torch.Tensor,
    *,
    scale: Scale = "none",
    tasks_P: torch.Tensor | None = None,
) -> torch.Tensor:
    """A_i = mean over j != i of w_ij - 1/2, a derivation from Pairwise-RL (arXiv 2504.04950).

    w_ij is the chance that sample i beats sample j, and w_ji = 1 - w_ij: where every pair of a
    group is judged the advantages sum to 0 without a mean or a critic. A pair without a judgement
    is in neither mean; then the sum is 0 with each sample weighed by its pairs.

    `wins_PG` is a sample's mean chance over its judged pairs, in [0, 1], with what shaping adds;
    NaN where no pair was judged. The rest is as for `group_advantages`, but a sample that alone was
    judged keeps its advantage: its reward is a comparison already.

    Raises:
        ValueError: the wins have not two dimensions, or the scale is unknown.
    """
    wins, judged_PG, _ = _judged(wins_PG)
    centred_PG = torch.where(judged_PG, wins - 0.5, 0.0)
    return _scaled(centred_PG, wins, judged_PG, scale, tasks_P).to(wins_PG.dtype)


def plain_advantages(
    rewards_PG: torch.Tensor,
    *,
    scale: Scale = "none",
    tasks_P: torch.Tensor | None = None,
) -> torch.Tensor:
    """A_i = R_i, without a baseline: REINFORCE (Williams 1992).

    A scale of the group or the task divides by the deviation from 0. A sample that alone was judged
    keeps its reward. The rest is as for `group_advantages`.
    """
    rewards, judged_PG, _ = _judged(rewards_PG)
    whole_PG = torch.where(judged_PG, rewards, 0.0)
    return _scaled(whole_PG, rewards, judged_PG, scale, tasks_P).to(rewards_PG.dtype)


def standardise(
    advantages_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    keys_BT: torch.Tensor | None = None,
    eps: float = 1e-8,
) -> torch.Tensor:
    """(A - mean) / sqrt(var + eps) over the tokens of each key.

    With roles as keys this is PAG's RoleAdvNorm (arXiv 2506.10406). `keys_BT` are whole numbers,
    shape (B, T) or (B, 1): tokens of one key are normalised together, by default all. The variance
    is unbiased.

    Returns:
        Shape (B, T) and dtype of the advantages; 0 at masked tokens and where a key has fewer than
        two tokens.
    """
    keep_BT = mask_BT.bool()
    if keys_BT is None:
        keys_BT = torch.zeros_like(keep_BT, dtype=torch.long)
    keys_BT = keys_BT.expand(keep_BT.shape).unique(return_inverse=True)[1]
    moments = keyed_moments(advantages_BT, keep_BT, keys_BT, int(keys_BT.max()) + 1)
    centred_BT = advantages_BT.double() - moments.means[keys_BT]
    scaled_BT = centred_BT * (moments.variances + eps).rsqrt()[keys_BT]
    used_BT = keep_BT & (moments.counts >= 2)[keys_BT]
    return torch.where(used_BT, scaled_BT, 0.0).to(advantages_BT.dtype)


def within_sigmas(
    advantages_BT: torch.Tensor, mask_BT: torch.Tensor, sigmas: float
) -> torch.Tensor:
    """The advantages, 0 at masked tokens and those more than `sigmas` deviations from their mean.

    StableReinforce's advantage filter (arXiv 2505.02835), whose `sigmas` is 3.
    """
    keep_BT = mask_BT.bool()
    keys_BT = torch.zeros_like(keep_BT, dtype=torch.long)
    moments = keyed_moments(advantages_BT, keep_BT, keys_BT, 1)
    distance_BT = (advantages_BT.double() - moments.means).abs()
    # Equal advantages differ from their mean by rounding; none of them is far.
    slack = 1e-12 * (1 + moments.means.abs())
    near_BT = distance_BT <= sigmas * moments.variances.sqrt() + slack
    return torch.where(keep_BT & near_BT, advantages_BT, 0.0)


def success_scaled(
    advantages_PG: torch.Tensor, rewards_PG: torch.Tensor, *, base: float, slope: float
) -> torch.Tensor:
    """Negative advantages times base + slope * the group's mean reward, cut to [0, 1].

    GUI-Libra (arXiv 2602.22190), whose code has a base of 0.5 and a slope of 1.5: where hardly any
    sample succeeds, a failure may be a success that was not recognised. Rewards are in [0, 1], NaN
    where there is no judgement, which is in no mean.

    Returns:
        Shape (P, G) and dtype of the advantages.
    """
    rewards, _, count_P1 = _judged(rewards_PG)
    mean_P1 = rewards.nansum(dim=1, keepdim=True) / count_P1.clamp(min=1)
    factor_P1 = (base + slope * mean_P1).clamp(0.0, 1.0)
    scaled_PG = advantages_PG.double() * factor_P1
    return torch.where(advantages_PG < 0, scaled_PG.to(advantages_PG.dtype), advantages_PG)


def _judged(rewards_PG: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if rewards_PG.dim() != 2:
        raise ValueError(f"rewards must have the shape (P, G), got {tuple(rewards_PG.shape)}")
    rewards = rewards_PG.double()
    judged_PG = ~torch.isnan(rewards)
    return rewards, judged_PG, judged_PG.double().sum(dim=1, keepdim=True)


def _centred(
    rewards: torch.Tensor, judged_PG: torch.Tensor, count_P1: torch.Tensor
) -> torch.Tensor:
    mean_P1 = rewards.nansum(dim=1, keepdim=True) / count_P1.clamp(min=1)
    return torch.where(judged_PG & (count_P1 >= 2), rewards - mean_P1, 0.0)


def _scaled(
    centred_PG: torch.Tensor,
    rewards: torch.Tensor,
    judged_PG: torch.Tensor,
    scale: Scale,
    tasks_P: torch.Tensor | None,
) -> torch.Tensor:
    count_P1 = judged_PG.sum(dim=1, keepdim=True)
    variance_P1 = centred_PG.square().sum(dim=1, keepdim=True) / (count_P1 - 1).clamp(min=1)
    match scale:
        case "group":
            return centred_PG / (variance_P1.sqrt() + TRL_EPS)
        case "task":
            keys_P = torch.zeros_like(count_P1[:, 0]) if tasks_P is None else tasks_P
            keys_P = keys_P.unique(return_inverse=True)[1]
            size = int(keys_P.max()) + 1
            counted_P = (count_P1[:, 0] >= 2).to(centred_PG.dtype)
            prompts_K = torch.zeros(size, dtype=centred_PG.dtype, device=centred_PG.device)
            sums_K = prompts_K.index_add(0, keys_P, variance_P1[:, 0] * counted_P)
            prompts_K = prompts_K.index_add(0, keys_P, counted_P)
            deviations_K = (sums_K / prompts_K.clamp(min=1)).sqrt()
            return centred_PG / (deviations_K[keys_P].unsqueeze(1) + TRL_EPS)
        case "batch":
            judged = rewards[judged_PG]
            deviation = judged.std() if judged.numel() > 1 else judged.new_zeros(())
            return centred_PG / (deviation + TRL_EPS)
        case "none":
            return centred_PG
        case _:
            raise ValueError(f"unknown scale {scale!r}; known: group, batch, task, none")
