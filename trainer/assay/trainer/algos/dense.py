"""Rewards and advantages of the steps within a response.

    process supervision   A_t = sum of normalised step rewards at or after t
                          GRPO (arXiv 2402.03300, section 4.1.3)
    progress              c_t = estimate of the step + an equal part of what they lack to R
                          SPA-RL (arXiv 2505.20732); the second term is a derivation

Difference from GRPO's paper: step rewards are normalised over all steps of a group with the
unbiased std, plus an eps of 1e-6.
"""

from __future__ import annotations

import torch

from assay.trainer.algos.moments import keyed_moments

PAPER_EPS = 1e-6


def dense_group_advantages(
    step_rewards_BT: torch.Tensor, steps_BT: torch.Tensor, groups_B: torch.Tensor
) -> torch.Tensor:
    """GRPO's process supervision (arXiv 2402.03300, section 4.1.3).

    Args:
        step_rewards_BT: the reward of each step at its last token.
        steps_BT: mask of the last tokens of steps; empty in a faulted row.
        groups_B: whole numbers: rows of one prompt share one.

    Returns:
        Shape (B, T) and dtype of the rewards: at each token the sum of its row's normalised rewards
        at or after it; 0 in a group with fewer than two steps.
    """
    keep_BT = steps_BT.bool()
    keys_B = groups_B.unique(return_inverse=True)[1]
    count = int(keys_B.max()) + 1
    moments = keyed_moments(step_rewards_BT, keep_BT, keys_B.unsqueeze(1), count)
    centred_BT = step_rewards_BT.double() - moments.means[keys_B].unsqueeze(1)
    scaled_BT = centred_BT / (moments.variances.sqrt()[keys_B].unsqueeze(1) + PAPER_EPS)
    used_BT = keep_BT & (moments.counts >= 2)[keys_B].unsqueeze(1)
    normal_BT = torch.where(used_BT, scaled_BT, 0.0)
    to_go_BT = normal_BT.flip(1).cumsum(1).flip(1)
    return to_go_BT.to(step_rewards_BT.dtype)


def contributions(
    estimates_BT: torch.Tensor, steps_BT: torch.Tensor, rewards_B: torch.Tensor
) -> torch.Tensor:
    """What each step earns of its response's reward (SPA-RL, arXiv 2505.20732), (B, T).

    The estimate at a step's last token (`steps_BT`) and an equal part of what the row's estimates
    lack to its reward, so that a row sums to it; a row without a step is 0.
    """
    steps_BT = steps_BT.bool()
    kept_BT = torch.where(steps_BT, estimates_BT, 0.0)
    lacking_B = (rewards_B - kept_BT.sum(dim=1)) / steps_BT.sum(dim=1).clamp(min=1)
    return torch.where(steps_BT, kept_BT + lacking_B.unsqueeze(1), 0.0)


def ridge(features_MX: torch.Tensor, targets_M: torch.Tensor, strength: float) -> torch.Tensor:
    """Argmin over w of |targets - features w|^2 + strength |w|^2, (X,) float64.

    The regression of SPA-RL's progress (arXiv 2505.20732), a derivation: the authors descend the
    first term. It solves M equations for M rows, however wide they are. `strength` is above 0.
    """
    features, targets = features_MX.double(), targets_M.double()
    gram_MM = features @ features.T + strength * torch.eye(len(targets), dtype=torch.float64)
    weights_X: torch.Tensor = features.T @ torch.linalg.solve(gram_MM, targets)
    return weights_X
