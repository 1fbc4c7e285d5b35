"""Corrections for tokens whose sampler computes other probabilities than the trainer.

Other kernels, precision or order of sums give one token two probabilities under the same weights.
The ratio of the trainer's to the sampler's corrects the expectation of the gradient; limits keep
its variance down.

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
    """Weights of tokens, and their origin; without gradient.

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
    """The weights of one micro-batch, (B, T) each; 1 and inside for tokens outside of the mask.

    Log-ratios of a token and of a response are kept within [-20, 20], so that all is finite.

    Args:
        trainer_BT: log-probabilities by the trainer, under the policy that the ratio starts from.
        sampler_BT: by the sampler; NaN, unknown, counts as no difference.
        mask_BT: tokens in the loss, and in a response's ratio.
        sequence: one ratio for a response; else one for each token.
        mask: weight 0 outside the limits; else the limit.
        low: at least 0.
        high: above `low`.
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
