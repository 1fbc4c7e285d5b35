"""Weights for the difficulty of prompts: GoLongRL's TMN-Reweight, and Observe-R1's medium.

    s = alpha * (mean of the prompt) + (1 - alpha) * (mean over its task's prompts of their means)

    exp     q = share of the prompt's rewards above s; a reward above its prompt's own mean is
            weighed by exp(gamma (1/2 - q)), any other by exp(gamma (q - 1/2))
    linear  1 + (1 - p), where p is s of correctness, 0 or 1, in place of the reward
    medium  4 p (1 - p), where p is the prompt's share of correct samples: largest at one half

"exp" is GoLongRL's code (arXiv 2605.19577, compute_tmn_grpo_outcome_advantage); "linear" follows
its README, which gives s and that harder prompts count more; "medium" the abstract of
Observe-R1 (arXiv 2505.12432), which prefers uncertain problems. [derivation]

Differences:
1. A sample without a judgement (NaN) is in no mean and no share. A prompt without judgements has
   the weight 1 and is not in its task's mean.
2. Means of tasks are those of the batch, as in the repository.
3. The repository takes the task's mean for a prompt of one sample; its advantage is 0 here anyway.
"""

from __future__ import annotations

from typing import Literal

import torch

Form = Literal["exp", "linear", "medium"]


def smoothed(values_PG: torch.Tensor, tasks_P: torch.Tensor, alpha: float) -> torch.Tensor:
    """Alpha * mean of the prompt + (1 - alpha) * mean of its task (arXiv 2605.19577).

    NaN in `values_PG` is left out; `tasks_P` are task numbers; `alpha` is in [0, 1] (0.8 in the
    authors' script). The result has shape (P,), NaN for a prompt without a value.
    """
    means_P = values_PG.nanmean(dim=1)
    known_P = ~means_P.isnan()
    keys_P = tasks_P.unique(return_inverse=True)[1]
    none_K = torch.zeros(int(keys_P.max()) + 1, dtype=means_P.dtype, device=means_P.device)
    sums_K = none_K.index_add(0, keys_P, means_P.nan_to_num(0.0))
    counts_K = none_K.index_add(0, keys_P, known_P.to(means_P.dtype))
    return alpha * means_P + (1 - alpha) * (sums_K / counts_K.clamp(min=1))[keys_P]


def weights(
    rewards_PG: torch.Tensor,
    correct_PG: torch.Tensor,
    tasks_P: torch.Tensor,
    *,
    form: Form,
    alpha: float = 0.8,
    gamma: float = 1.0,
) -> torch.Tensor:
    """The factor of each advantage (arXiv 2605.19577, arXiv 2505.12432).

    Rewards are NaN where there is no judgement. `gamma` is the strength of "exp", at least 0, which
    weighs all alike.

    Returns:
        Shape (P, G) and dtype of the rewards: exp within exp(+-gamma / 2), linear from 1 to 2,
        medium from 0 to 1; 1 for a prompt without a judgement.
    """
    rewards = rewards_PG.double()
    judged_PG = ~rewards.isnan()
    if form != "exp":
        right_PG = torch.where(judged_PG, correct_PG.double(), torch.nan)
    if form == "medium":
        rate_P1 = right_PG.nanmean(dim=1, keepdim=True)
        weight_P1 = (4 * rate_P1 * (1 - rate_P1)).nan_to_num(1.0)
        return weight_P1.expand_as(rewards).to(rewards_PG.dtype)
    if form == "linear":
        weight_P = 2 - smoothed(right_PG, tasks_P, alpha)
        return weight_P.nan_to_num(1.0).unsqueeze(1).expand_as(rewards).to(rewards_PG.dtype)
    above_PG = rewards > smoothed(rewards, tasks_P, alpha).unsqueeze(1)
    share_P1 = above_PG.double().sum(dim=1, keepdim=True) / judged_PG.double().sum(
        dim=1, keepdim=True
    ).clamp(min=1)
    hardness_P1 = gamma * (0.5 - share_P1)
    better_PG = rewards > rewards.nanmean(dim=1, keepdim=True)
    weights_PG = torch.where(better_PG, hardness_P1, -hardness_P1).exp()
    return torch.where(judged_PG, weights_PG, 1.0).to(rewards_PG.dtype)
