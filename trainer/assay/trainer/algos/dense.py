"""Rewards and advantages of the steps within a response.

    process supervision   A_t = sum of normalised step rewards at or after t
                          GRPO (arXiv 2402.03300, section 4.1.3)
    Tango                 (1 - alpha) A_outcome + alpha A_steps      arXiv 2505.15034
    lines of code         R_UT at the end + lam * score / lines      arXiv 2410.17621

Differences from the papers:
1. Step rewards are normalised over all steps of a group with the unbiased std, plus eps.
2. Dividing the lines' scores by the number of lines is our reading of the third's length
   normalisation. [derivation]
"""

from __future__ import annotations

import torch

from assay.trainer.algos.advantages import group_advantages
from assay.trainer.algos.moments import keyed_moments

PAPER_EPS = 1e-6


def dense_group_advantages(
    step_rewards_BT: torch.Tensor,
    steps_BT: torch.Tensor,
    groups_B: torch.Tensor,
    mask_BT: torch.Tensor | None = None,
    *,
    eps: float = PAPER_EPS,
) -> torch.Tensor:
    """GRPO's process supervision (arXiv 2402.03300, section 4.1.3).

    Args:
        step_rewards_BT: the reward of each step at its last token, shape (B, T).
        steps_BT: of bool or 0 and 1, shape (B, T): where steps end; nowhere in a faulted row.
        groups_B: whole numbers, shape (B,): rows of one prompt share one.
        mask_BT: the policy's tokens; by default all.
        eps: added to the std.

    Returns:
        Shape (B, T) and dtype of the rewards: at each token the sum of its row's normalised rewards
        at or after it; 0 at masked tokens, and in a group with fewer than two steps.
    """
    keep_BT = steps_BT.bool()
    keys_B = groups_B.unique(return_inverse=True)[1]
    count = int(keys_B.max()) + 1
    moments = keyed_moments(step_rewards_BT, keep_BT, keys_B.unsqueeze(1), count)
    centred_BT = step_rewards_BT.double() - moments.means[keys_B].unsqueeze(1)
    scaled_BT = centred_BT / (moments.variances.sqrt()[keys_B].unsqueeze(1) + eps)
    used_BT = keep_BT & (moments.counts >= 2)[keys_B].unsqueeze(1)
    normal_BT = torch.where(used_BT, scaled_BT, 0.0)
    to_go_BT = normal_BT.flip(1).cumsum(1).flip(1)
    if mask_BT is not None:
        to_go_BT = torch.where(mask_BT.bool(), to_go_BT, 0.0)
    return to_go_BT.to(step_rewards_BT.dtype)


def tango_step_advantages(
    outcome_rewards_G: torch.Tensor,
    step_rewards_GT: torch.Tensor,
    steps_GT: torch.Tensor,
    *,
    alpha: float,
    eps: float = PAPER_EPS,
) -> torch.Tensor:
    """(1 - alpha) A_outcome + alpha A_steps of one group: RL Tango (arXiv 2505.15034).

    Args:
        outcome_rewards_G: shape (G,); NaN for a fault.
        step_rewards_GT: y_k / K at the end of each of a row's K steps, shape (G, T); y_k is 1 or
            -1, the generative verifier's opinion.
        steps_GT: where steps end, shape (G, T).
        alpha: in [0, 1]; the paper lets it decay from 0.1 to 1e-3.
        eps: added to each std.

    Returns:
        Shape (G, T).
    """
    group_G = torch.zeros(len(outcome_rewards_G), dtype=torch.long, device=steps_GT.device)
    outcome_G = group_advantages(outcome_rewards_G.unsqueeze(0), eps=eps)[0]
    step_GT = dense_group_advantages(step_rewards_GT, steps_GT, group_G, eps=eps)
    return (1 - alpha) * outcome_G.unsqueeze(1) + alpha * step_GT


def prm_dense_line_rewards(
    line_scores_L: torch.Tensor, *, passed: bool, lam_fail: float = 0.25, lam_pass: float = 0.025
) -> torch.Tensor:
    """A reward for each of L lines: lam * score / L, and 1 more at the last one for passing.

    Equation 3 of arXiv 2410.17621 with its length normalisation.

    Args:
        line_scores_L: the process reward model's, shape (L,), L of at least 1.
        passed: whether the program passes its tests.
        lam_fail: weight of the scores where it does not.
        lam_pass: weight of the scores where it does.

    Returns:
        Shape (L,).
    """
    rewards_L = (lam_pass if passed else lam_fail) * line_scores_L / len(line_scores_L)
    rewards_L[-1] += float(passed)
    return rewards_L
