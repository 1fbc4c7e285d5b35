"""How far a policy is from another, estimated on the tokens it drew.

    k1 = log(pi / ref)    k2 = k1^2 / 2    k3 = exp(-k1) - 1 + k1

after J. Schulman's note, http://joschu.net/blog/kl-approx.html. On tokens of pi, the mean of k1 and
that of k3 are KL(pi, ref), k3's with less variance and never negative; that of k2 is close to it.

In a loss the gradient counts (arXiv 2506.09477; arXiv 2510.01555). On tokens of pi, in expectation,

    k1 in a loss has no gradient; in the reward it has the right one (PPO's place for it);
    k2 in a loss has the gradient of KL(pi, ref);
    k3 in a loss has the gradient of KL(ref, pi), another divergence with the same minimum (GRPO,
    arXiv 2402.03300, equation 4).

These are the `plain` gradients of method.loss.kl_gradient. The `weighted` ones multiply by the
ratio of the policy to the one that drew the tokens; all three then have the gradient of
KL(pi, ref), on anyone's tokens: k1 and k3 where the gradient goes through the weight too (as in TRL
1.16), k2 where the weight is fixed. [derivation]

Difference: the exponent of k3 is clamped at 20, as that of ratios is.
"""

from __future__ import annotations

from typing import Literal

import torch

from assay.trainer.algos.ratios import MAX_LOG_RATIO

Estimator = Literal["k1", "k2", "k3"]


def kl_k1(logps_BT: torch.Tensor, ref_BT: torch.Tensor) -> torch.Tensor:
    """The log-ratio log pi - log ref: unbiased, of either sign."""
    return logps_BT - ref_BT


def kl_k2(logps_BT: torch.Tensor, ref_BT: torch.Tensor) -> torch.Tensor:
    """(log pi - log ref)^2 / 2: biased, never negative."""
    return (logps_BT - ref_BT).square() / 2


def kl_k3(logps_BT: torch.Tensor, ref_BT: torch.Tensor) -> torch.Tensor:
    """(ref / pi) - 1 - log(ref / pi): unbiased, never negative.

    GRPO (arXiv 2402.03300, equation 4).
    """
    inverse_BT = (ref_BT - logps_BT).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return torch.expm1(inverse_BT) - inverse_BT


def kl_token_losses(
    logps_BT: torch.Tensor,
    ref_BT: torch.Tensor,
    estimator: Estimator,
    *,
    log_ratio_BT: torch.Tensor | None = None,
) -> torch.Tensor:
    """An estimate for each token, for a loss or a metric.

    Args:
        logps_BT: under the policy.
        ref_BT: under the other one.
        estimator: k1, k2 or k3; see the module for their gradients.
        log_ratio_BT: of the policy to the one that drew the tokens, with gradient; weighs each
            estimate so that the loss descends KL(pi, ref).

    Raises:
        ValueError: the estimator is unknown.
    """
    known = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}
    if estimator not in known:
        raise ValueError(f"unknown estimator {estimator!r}; known: {', '.join(known)}")
    losses_BT = known[estimator](logps_BT, ref_BT)
    if log_ratio_BT is None:
        return losses_BT
    weight_BT = log_ratio_BT.detach() if estimator == "k2" else log_ratio_BT
    return weight_BT.exp() * losses_BT
