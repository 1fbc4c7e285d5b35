"""Advantages of a dialogue, whose masked tokens lie between the policy's turns.

independent   each turn by itself, a turn-level discount of 0       PAG (arXiv 2506.10406)
joined        as if the turns stood side by side, a discount of 1   [derivation: plain GAE]

Where a dialogue goes on in the next step, V(s_l) := V(s_{l-1}) behind each token whose later reward
is unknown: the boundary of T-PPO's EGAE (arXiv 2506.15050), which has it at the end of a response
of one turn. [derivation]
"""

from __future__ import annotations

import functools

import torch

from assay.trainer.algos import gae


def turn_gae(
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    independent: bool,
    gamma: float = 1.0,
    lam_actor: gae.Lambda = 1.0,
    lam_critic: gae.Lambda = 1.0,
    open_BT: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The policy's advantages and the critic's targets, by turns or over them (arXiv 2506.10406).

    Args:
        rewards_BT: reward of each token.
        values_BT: V of the state before each token.
        mask_BT: the policy's tokens; at least one other stands between two turns.
        independent: a turn's credit ends with it; else later turns' rewards reach earlier ones,
            discounted by `gamma` and lambda of the policy's own tokens alone.
        gamma: discount, in (0, 1].
        lam_actor: a number or shape (B,).
        lam_critic: a number or shape (B,).
        open_BT: bool, last tokens of turns after which the value before them is the bootstrap,
            beside their reward; None for nowhere.

    Returns:
        Advantages and targets, each of shape (B, T); 0 at masked tokens.

    Raises:
        ValueError: the shapes do not agree.
    """
    estimate = functools.partial(
        gae.decoupled_gae, gamma=gamma, lam_actor=lam_actor, lam_critic=lam_critic
    )
    if open_BT is not None:  # nothing else stands behind: as a reward it is the same
        rewards_BT = rewards_BT + gamma * torch.where(open_BT, values_BT, 0.0)
    if independent:
        return estimate(rewards_BT, values_BT, mask_BT)
    # the policy's tokens to the front, in their order: then nothing lies between turns
    order_BT = (~mask_BT.bool()).long().argsort(dim=1, stable=True)
    joined = estimate(*(x.gather(1, order_BT) for x in (rewards_BT, values_BT, mask_BT)))
    advantages_BT, targets_BT = (torch.zeros_like(x).scatter(1, order_BT, x) for x in joined)
    return advantages_BT, targets_BT
