"""Logarithms of ratios between the policy and those that sampled.

Sources: PPO's ratio (arXiv 1707.06347, section 3); GSPO's sequence ratio (arXiv 2507.18071);
StableReinforce's Pre-CLIP (arXiv 2505.02835); the weight of the decoupled objective (AReaL, arXiv
2505.24298).
"""

from __future__ import annotations

import math

import torch

MAX_LOG_RATIO = 20.0


def log_ratio(
    logps_BT: torch.Tensor, old_BT: torch.Tensor, *, clamp: float = MAX_LOG_RATIO
) -> torch.Tensor:
    """The log-ratio of each token, within [-clamp, clamp] so that its exponential is finite.

    The bound of 20 is DAPO's authors' (arXiv 2503.14476, their code). A token beyond it has no
    gradient.
    """
    return (logps_BT - old_BT).clamp(-clamp, clamp)


def pre_clip_log_ratio(log_ratio_BT: torch.Tensor, *, low: float, high: float) -> torch.Tensor:
    """The log-ratio clamped to [log low, log high], with low in (0, 1) and high above 1.

    StableReinforce's Pre-CLIP (arXiv 2505.02835), which has 1e-3 and 1e3.
    """
    return log_ratio_BT.clamp(math.log(low), math.log(high))


def sequence_log_ratio(log_ratio_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """GSPO's sequence ratio in its token form (arXiv 2507.18071, GSPO-token).

        log s_{i,t} = sg[ mean_t (log pi_t - log pi_old,t) ] + log pi_t - sg[log pi_t]

    Every token of a row has the mean of the row's log-ratios over the mask, so that clipping takes
    or leaves whole responses. The gradient of a token's ratio is s_i times that of its own
    log-probability, so that each token can have its own advantage; with one advantage for the row,
    the gradient is that of the plain form s_i * A_i.
    """
    keep_BT = mask_BT.bool()
    fixed_BT = torch.where(keep_BT, log_ratio_BT.detach(), 0.0)
    mean_B1 = fixed_BT.sum(dim=1, keepdim=True) / keep_BT.sum(dim=1, keepdim=True).clamp(min=1)
    return mean_B1 + (log_ratio_BT - log_ratio_BT.detach())


def truncated_importance_weights(
    trainer_BT: torch.Tensor, sampler_BT: torch.Tensor, *, cap: float
) -> torch.Tensor:
    """The weights min(pi_trainer / pi_sampler, cap), without gradient.

    They correct the expectation, up to the truncation, for tokens to which sampler and trainer give
    different probabilities under the same weights. [derivation: truncated importance sampling, as
    TRL 1.16 has it] `trainer_BT` is under the policy that the ratio starts from; `cap` is above 0.
    """
    return log_ratio(trainer_BT, sampler_BT).exp().clamp(max=cap).detach()
