"""Generalised advantage estimation, and its forms in VC-PPO, VAPO, T-PPO and PAG.

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t)
    A_t     = sum_k (gamma lam)^k delta_{t+k}                 GAE (arXiv 1506.02438, equation 16)
    R_t     = A_t(lam_critic) + V(s_t)                        decoupled: VC-PPO (arXiv 2503.01491)
    lam     = 1 - 1 / (alpha * length)                        VAPO (arXiv 2504.05118)
    V(s_l) := V(s_{l-1})  for a response cut after l tokens   EGAE: T-PPO (arXiv 2506.15050)

Here s_t is the prompt with the first t tokens of the response, so V(s_t) is read before token t.

Differences from the papers:
1. A masked token ends a turn: it cuts both the bootstrap and the trace, which is PAG's turn-level
   discount of 0 (arXiv 2506.10406). A response without masked tokens inside is unaffected.
2. VAPO's lambda is negative for responses shorter than 1 / alpha tokens; it is clamped to
   [floor, 1]. [derivation]
3. EGAE's sum is a [derivation] from the boundary assumption, and is one case of a bootstrap value.
4. Everything is computed in float64.
"""

from __future__ import annotations

import math

import torch

Lambda = float | torch.Tensor
"""One for all rows, or one for each: shape (B,)."""


def gae(
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    gamma: float = 1.0,
    lam: Lambda = 0.95,
    bootstrap_B: torch.Tensor | None = None,
) -> torch.Tensor:
    """Advantages by GAE (arXiv 1506.02438, equation 16), each turn by itself (arXiv 2506.10406).

    Args:
        rewards_BT: reward of each token; masked ones are ignored.
        values_BT: V of the state before each token; masked ones are ignored.
        mask_BT: the policy's own tokens.
        gamma: discount, in (0, 1].
        lam: in [0, 1], a number or shape (B,).
        bootstrap_B: V of the state after a row's last token; by default 0, which is right for a
            finished response.

    Returns:
        Shape (B, T) and dtype of the values; 0 at masked tokens.

    Raises:
        ValueError: the shapes do not agree.
    """
    _check_shapes(rewards_BT, values_BT, mask_BT)
    keep_BT = mask_BT.bool()
    rewards = torch.where(keep_BT, rewards_BT.double(), 0.0)
    values = torch.where(keep_BT, values_BT.double(), 0.0)
    next_values_BT = _shifted(values)
    if bootstrap_B is not None:
        next_values_BT = next_values_BT + _last(keep_BT) * bootstrap_B.double().unsqueeze(1)
    delta_BT = torch.where(keep_BT, rewards + gamma * next_values_BT - values, 0.0)
    decay_BT = gamma * _column(lam, values) * _shifted(keep_BT.double())
    advantages_BT = _reverse_scan(delta_BT, decay_BT)
    return torch.where(keep_BT, advantages_BT, 0.0).to(values_BT.dtype)


def decoupled_gae(
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    gamma: float = 1.0,
    lam_actor: Lambda = 0.95,
    lam_critic: Lambda = 1.0,
    bootstrap_B: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The policy's advantages with one lambda and the critic's targets with another.

    VC-PPO (arXiv 2503.01491), VAPO (arXiv 2504.05118, section 4.1). With lam_critic = gamma = 1 the
    targets are the rewards to go, whatever the values are. Both lambdas are numbers or of shape
    (B,); the other arguments are those of `gae`.

    Returns:
        Advantages and the critic's targets, each of shape (B, T); 0 at masked tokens.

    Raises:
        ValueError: the shapes do not agree.
    """
    values = torch.where(mask_BT.bool(), values_BT.double(), 0.0)
    actor_BT, critic_BT = (
        gae(rewards_BT, values, mask_BT, gamma=gamma, lam=lam, bootstrap_B=bootstrap_B)
        for lam in (lam_actor, lam_critic)
    )
    return actor_BT.to(values_BT.dtype), (critic_BT + values).to(values_BT.dtype)


def boundary_values(
    values_BT: torch.Tensor, mask_BT: torch.Tensor, truncated_B: torch.Tensor
) -> torch.Tensor:
    """V(s_l) := V(s_{l-1}) of rows that are not finished: T-PPO's EGAE (arXiv 2506.15050).

    With gamma = 1 the advantage of such a row's last token is its reward alone. [derivation]
    `truncated_B` is true for unfinished rows.

    Returns:
        Shape (B,), float64, the `bootstrap_B` of `gae`; 0 for finished rows.
    """
    last_BT = _last(mask_BT.bool())
    last_values_B = torch.where(last_BT.bool(), values_BT.double(), 0.0).sum(dim=1)
    return torch.where(truncated_B.bool(), last_values_B, 0.0)


def length_adaptive_lambda(
    length_B: torch.Tensor, alpha: float, *, floor: float = 0.0
) -> torch.Tensor:
    """1 - 1 / (alpha * length), clamped to [floor, 1]: VAPO (arXiv 2504.05118).

    It makes the sum of the weights lam^t, which is 1 / (1 - lam), proportional to the length.
    `length_B` counts the policy's tokens in each row; `alpha` is above 0, 0.05 in VAPO. The result
    is float64, of the lengths' shape.
    """
    return (1 - 1 / (alpha * length_B.double())).clamp(min=floor, max=1.0)


def explained_variance(
    values_BT: torch.Tensor, returns_BT: torch.Tensor, mask_BT: torch.Tensor
) -> torch.Tensor:
    """1 - Var(R - V) / Var(R) over the unmasked tokens.

    [derivation: the usual definition]

    Returns:
        0-dim float64: 1 for a perfect critic, 0 for one that knows the mean only, negative for a
        worse one; NaN where the returns do not vary.
    """
    keep_BT = mask_BT.bool()
    values_N, returns_N = values_BT[keep_BT].double(), returns_BT[keep_BT].double()
    if returns_N.numel() < 2 or bool((returns_N == returns_N[0]).all()):
        return torch.full((), math.nan, dtype=torch.float64, device=values_BT.device)
    return 1 - (returns_N - values_N).var() / returns_N.var()


def _check_shapes(rewards_BT: torch.Tensor, values_BT: torch.Tensor, mask_BT: torch.Tensor) -> None:
    shapes = [tuple(x.shape) for x in (rewards_BT, values_BT, mask_BT)]
    if len(set(shapes)) != 1 or len(shapes[0]) != 2:
        raise ValueError(f"rewards, values and mask must have one shape (B, T), got {shapes}")


def _column(lam: Lambda, like: torch.Tensor) -> torch.Tensor:
    lam_B = torch.as_tensor(lam, dtype=like.dtype, device=like.device)
    return lam_B.reshape(-1, 1)


def _shifted(x_BT: torch.Tensor) -> torch.Tensor:
    """x_{t+1} at t; 0 at the end."""
    return torch.nn.functional.pad(x_BT[:, 1:], (0, 1))


def _last(keep_BT: torch.Tensor) -> torch.Tensor:
    after_BT = keep_BT.long().flip(1).cumsum(1).flip(1)
    return (keep_BT & (after_BT == 1)).double()


def _reverse_scan(delta_BT: torch.Tensor, decay_BT: torch.Tensor) -> torch.Tensor:
    """x_t = delta_t + decay_t * x_{t+1}, with x_T = 0, in 2 sqrt(T) sequential steps.

    Chunks of about sqrt(T) are scanned at once, each with its factor for a value that comes in from
    its right; then a scan goes from chunk to chunk.
    """
    rows, length = delta_BT.shape
    size = max(1, math.isqrt(length))
    chunks = -(-length // size)
    pad = (0, chunks * size - length)
    delta_CBK, decay_CBK = (
        torch.nn.functional.pad(x, pad).reshape(rows, chunks, size).permute(2, 0, 1).contiguous()
        for x in (delta_BT, decay_BT)
    )
    for step in range(size - 2, -1, -1):
        delta_CBK[step].addcmul_(decay_CBK[step], delta_CBK[step + 1])
        decay_CBK[step].mul_(decay_CBK[step + 1])
    carry_BK = torch.zeros_like(delta_CBK[0])
    for chunk in range(chunks - 2, -1, -1):
        right = chunk + 1
        carry_BK[:, chunk] = delta_CBK[0, :, right] + decay_CBK[0, :, right] * carry_BK[:, right]
    delta_CBK.addcmul_(decay_CBK, carry_BK)
    return delta_CBK.permute(1, 2, 0).reshape(rows, chunks * size)[:, :length]
