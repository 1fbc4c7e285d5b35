"""Ratios between the policy and those that sampled: what a policy loss weighs a token by.

All are logarithms, so that the losses exponentiate once.

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

    Args:
        logps_BT: under the policy being trained, shape (B, T).
        old_BT: under the policy that the ratio starts from.
        clamp: above 0.
    """
    return (logps_BT - old_BT).clamp(-clamp, clamp)


def pre_clip_log_ratio(log_ratio_BT: torch.Tensor, *, low: float, high: float) -> torch.Tensor:
    """The log-ratio clamped to [log low, log high] before it is exponentiated.

    StableReinforce's Pre-CLIP (arXiv 2505.02835), which has 1e-3 and 1e3.

    Args:
        log_ratio_BT: shape (B, T).
        low: in (0, 1).
        high: above 1.
    """
    return log_ratio_BT.clamp(math.log(low), math.log(high))


def sequence_log_ratio(log_ratio_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """GSPO's sequence ratio in its token form (arXiv 2507.18071, GSPO-token).

        log s_{i,t} = sg[ mean_t (log pi_t - log pi_old,t) ] + log pi_t - sg[log pi_t]

    Every token of a row has the same value, the mean of the row's log-ratios, so that clipping
    takes or leaves whole responses. The gradient of a token's ratio is s_i times that of its own
    log-probability, so that each token can have an advantage of its own; where a row has one
    advantage, the gradient of the row's loss is that of the plain form s_i * A_i.

    Args:
        log_ratio_BT: shape (B, T).
        mask_BT: of bool or 0 and 1, shape (B, T): the tokens of the mean.

    Returns:
        Shape (B, T).
    """
    keep_BT = mask_BT.bool()
    fixed_BT = torch.where(keep_BT, log_ratio_BT.detach(), 0.0)
    mean_B1 = fixed_BT.sum(dim=1, keepdim=True) / keep_BT.sum(dim=1, keepdim=True).clamp(min=1)
    return mean_B1 + (log_ratio_BT - log_ratio_BT.detach())


def truncated_importance_weights(
    trainer_BT: torch.Tensor, sampler_BT: torch.Tensor, *, cap: float
) -> torch.Tensor:
    """The weights min(pi_trainer / pi_sampler, cap).

    For tokens whose sampler computes other probabilities than the trainer does for the same
    weights. Times the loss of a token it corrects the expectation, up to the truncation.
    [derivation: truncated importance sampling, as TRL 1.16 has it]

    Args:
        trainer_BT: log-probabilities under the policy that the ratio starts from, by the trainer.
        sampler_BT: those that the token was drawn with.
        cap: above 0.

    Returns:
        Shape (B, T), in [0, cap], without gradient.
    """
    return log_ratio(trainer_BT, sampler_BT).exp().clamp(max=cap).detach()
