"""The policy's loss of each token.

    ppo        max( -r A, -clip(r, 1 - low, 1 + high) A )     PPO (arXiv 1707.06347, equation 7)
    high > low                                                clip-higher: DAPO (arXiv 2503.14476)
    dual clip  at most -c A, where A < 0                      arXiv 1912.09729, equation 5
    cispo      -sg[clip(r, 1 - low, 1 + high)] A log pi       MiniMax-M1 (arXiv 2506.13585)
    decoupled  (pi_prox / pi_behav) * ppo with r = pi / pi_prox    AReaL (arXiv 2505.24298)

with r = exp(log-ratio), of a token or, for GSPO, of a sequence (see ratios.py). Advantages are of
shape (B, T) or (B, 1).

Differences from the papers:
1. Losses are of tokens; aggregation.py takes their mean.
2. CISPO's upper bound is 1 + high; TRL 1.16 calls the bound itself epsilon_high. Its authors have
   no lower bound; clip_low of 1 or more is none.
3. The weight of the decoupled loss can be capped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from assay.trainer.algos.ratios import log_ratio, truncated_importance_weights


@dataclass(frozen=True, slots=True)
class TokenLosses:
    """Losses of tokens, and where clipping decided them; each of shape (B, T).

    Attributes:
        losses_BT: to be minimised.
        clipped_low_BT: bool: A < 0 and the ratio below its range.
        clipped_high_BT: bool: A > 0 and the ratio above its range.
        dual_clipped_BT: bool: A < 0 and the ratio above the dual clip.
        seen: numbers of its own by the names of metrics: a sum, and what it is a sum over; both
            0-dimensional.
    """

    losses_BT: torch.Tensor
    clipped_low_BT: torch.Tensor
    clipped_high_BT: torch.Tensor
    dual_clipped_BT: torch.Tensor
    seen: Mapping[str, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)


def ppo_token_losses(
    log_ratio_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> TokenLosses:
    """PPO's clipped surrogate (arXiv 1707.06347, equation 7).

    The ratio's range is [1 - clip_low, 1 + clip_high]; unequal bounds are DAPO's clip-higher (arXiv
    2503.14476). `dual_clip`, above 1, bounds the loss at -dual_clip * A where A < 0 (arXiv
    1912.09729, equation 5).
    """
    ratio_BT = log_ratio_BT.exp()
    clipped_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    losses_BT = torch.maximum(-ratio_BT * advantages_BT, -clipped_BT * advantages_BT)
    negative_BT = advantages_BT < 0
    dual_BT = torch.zeros_like(ratio_BT, dtype=torch.bool)
    if dual_clip is not None:
        bound_BT = -dual_clip * advantages_BT
        dual_BT = negative_BT & (losses_BT > bound_BT)
        losses_BT = torch.where(dual_BT, bound_BT, losses_BT)
    return TokenLosses(
        losses_BT,
        negative_BT & (ratio_BT < 1 - clip_low),
        (advantages_BT > 0) & (ratio_BT > 1 + clip_high),
        dual_BT,
    )


def cispo_token_losses(
    logps_BT: torch.Tensor,
    log_ratio_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
) -> TokenLosses:
    """CISPO (MiniMax-M1, arXiv 2506.13585).

    The importance weight is clipped to [1 - clip_low, 1 + clip_high] and fixed; every token keeps
    its gradient through `logps_BT`.
    """
    ratio_BT = log_ratio_BT.detach().exp()
    weight_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    return TokenLosses(
        -weight_BT * advantages_BT * logps_BT,
        (advantages_BT < 0) & (ratio_BT < 1 - clip_low),
        (advantages_BT > 0) & (ratio_BT > 1 + clip_high),
        torch.zeros_like(ratio_BT, dtype=torch.bool),
    )


def decoupled_ppo_token_losses(
    logps_BT: torch.Tensor,
    proximal_BT: torch.Tensor,
    behaviour_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
    cap: float | None = None,
    dual_clip: float | None = None,
) -> TokenLosses:
    """The decoupled objective for tokens of older policies: AReaL (arXiv 2505.24298).

    (pi_prox / pi_behav) * max( -u A, -clip(u, 1 - low, 1 + high) A ) with u = pi / pi_prox. Where
    the tokens were drawn by the proximal policy this is PPO.

    `proximal_BT` are log-probabilities under the policy just before the update, recomputed;
    `behaviour_BT` those under the policy that drew the token. `cap` is the upper limit of
    pi_prox / pi_behav; None for none.
    """
    ppo = ppo_token_losses(
        log_ratio(logps_BT, proximal_BT),
        advantages_BT,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
    )
    most = math.inf if cap is None else cap
    weight_BT = truncated_importance_weights(proximal_BT, behaviour_BT, cap=most)
    return TokenLosses(
        weight_BT * ppo.losses_BT, ppo.clipped_low_BT, ppo.clipped_high_BT, ppo.dual_clipped_BT
    )
