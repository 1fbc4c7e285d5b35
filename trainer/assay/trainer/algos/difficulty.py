"""Weights for the difficulty of prompts: TMN-Reweight of GoLongRL (arXiv 2605.19577).

    s = alpha * (mean of the prompt) + (1 - alpha) * (mean over its task's prompts of their means)

    exp     q = share of the prompt's rewards above s; a reward above its prompt's own mean is
            weighed by exp(gamma (1/2 - q)), any other by exp(gamma (q - 1/2))
    linear  1 + (1 - p), where p is s of correctness, 0 or 1, in place of the reward

"exp" is the authors' repository (compute_tmn_grpo_outcome_advantage). "linear" is a derivation from
their README alone, which gives s and that harder prompts count more.

Differences:
1. A sample without a judgement (NaN) is in no mean and no share. A prompt without judgements has
   the weight 1 and is not in its task's mean.
2. Means of tasks are those of the batch, as in the repository.
3. The repository takes the task's mean for a prompt of one sample; its advantage is 0 here anyway.
"""

from __future__ import annotations

from typing import Literal

import torch

Form = Literal["exp", "linear"]


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
    """The factor of each advantage: GoLongRL's reweighting (arXiv 2605.19577).

    Rewards are NaN where there is no judgement. `gamma` is the strength of "exp", at least 0, which
    weighs all alike.

    Returns:
        Above 0, shape (P, G) and dtype of the rewards: within exp(+-gamma / 2), or from 1 to 2.
    """
    rewards = rewards_PG.double()
    judged_PG = ~rewards.isnan()
    if form == "linear":
        right_PG = torch.where(judged_PG, correct_PG.double(), torch.nan)
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
