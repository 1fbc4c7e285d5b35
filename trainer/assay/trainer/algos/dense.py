"""Advantages of the steps within a response.

    process supervision   A_t = sum of normalised step rewards at or after t
                          GRPO (arXiv 2402.03300, section 4.1.3)

Difference from the paper: step rewards are normalised over all steps of a group with the unbiased
std, plus an eps of 1e-6.
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
