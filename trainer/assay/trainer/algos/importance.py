"""Corrections for tokens whose sampler computes other probabilities than the trainer.

An engine and the trainer give one token two probabilities under the same weights: other kernels,
another precision, another order of sums. The ratio of the trainer's to the sampler's corrects the
expectation of the gradient; limits keep its variance down.

    token     w_t = f(pi_trainer(t) / pi_sampler(t))
    sequence  w   = f(prod_t pi_trainer(t) / pi_sampler(t)), one for all tokens of a response
    truncate  f(r) = min(max(r, low), high)
    mask      f(r) = r where low <= r <= high, else 0

Sources: truncated importance sampling (TIS, F. Yao and others, fengyao.notion.site/off-policy-rl);
masked on both sides by tokens: IcePop (Ring-1T, arXiv 2510.18855, ringtech.notion.site/icepop); by
sequences: "When Speed Kills Stability" (J. Liu and others, yingru.notion.site). The forms are those
of TRL 1.16's `vllm_importance_sampling_mode`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.trainer.algos.ratios import MAX_LOG_RATIO


@dataclass(frozen=True, slots=True)
class ImportanceWeights:
    """What tokens are weighed by, and how that came about; without gradient.

    Attributes:
        weights_BT: of each token.
        ratios_BT: before the limits; of the whole response, where the ratio is one of sequences.
        outside_BT: bool, tokens in the mask whose ratio is beyond a limit.
    """

    weights_BT: torch.Tensor
    ratios_BT: torch.Tensor
    outside_BT: torch.Tensor


@torch.no_grad()
def importance_weights(
    trainer_BT: torch.Tensor,
    sampler_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    sequence: bool,
    mask: bool,
    low: float = 0.0,
    high: float = float("inf"),
) -> ImportanceWeights:
    """The weights of one micro-batch.

    Log-ratios are kept within [-20, 20], of a token and of a response, so that all is finite.

    Args:
        trainer_BT: log-probabilities under the policy that the ratio starts from, by the trainer.
        sampler_BT: those that the token was drawn with; NaN where unknown, which is no difference.
        mask_BT: bool, tokens in the loss; those of a response's ratio.
        sequence: one ratio for a response, in place of one for each token.
        mask: 0 outside of the limits, in place of the limit.
        low: at least 0.
        high: above `low`.

    Returns:
        Shape (B, T) each; 1 and inside for what is not in the mask.
    """
    counted_BT = mask_BT.bool() & ~sampler_BT.isnan()
    log_BT = torch.where(counted_BT, trainer_BT - sampler_BT, 0.0)
    if sequence:
        log_BT = log_BT.sum(dim=1, keepdim=True).expand_as(log_BT)
    ratios_BT = log_BT.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    ratios_BT = torch.where(mask_BT.bool(), ratios_BT, 1.0)
    outside_BT = mask_BT.bool() & ((ratios_BT < low) | (ratios_BT > high))
    limited_BT = torch.zeros_like(ratios_BT) if mask else ratios_BT.clamp(low, high)
    return ImportanceWeights(torch.where(outside_BT, limited_BT, ratios_BT), ratios_BT, outside_BT)
