"""Losses over stored responses: of single ones, of their steps, and of pairs; values of actions.

    dpo               -log sigmoid( beta (s_w - s_l) )               DPO (arXiv 2305.18290, eq. 7)
    prdp              ( (s_1 - s_2) - (R_1 - R_2) / beta )^2         PRDP (arXiv 2402.08714)
    a-lol             -A clip(r, 1 - c, 1 + c) log pi, where A > 0   A-LoL (arXiv 2305.14718)
    direct-advantage  ( sum over a step of beta log r - A )^2 / 2    DAPO (arXiv 2412.18279)
    td_targets        r + gamma V(s')                                Digi-Q (arXiv 2502.15760)
    best_actions      argmax of Q(s, a_n), where Q > V(s)            Digi-Q (arXiv 2502.15760)

with s = log pi(y | x) / pi_ref(y | x) of a whole response and r = pi / pi_ref.

Differences from the papers:
1. PRDP's objective is a derivation from its abstract and its relation to DPO's; its online part,
   proximal updates that clip the ratio, is not built: rows are stored.
2. A-LoL is after the authors' code (abaheti95/LoL-RL): r is of the response, or of each token
   (A-LoL seq.), clipped by 0.9 and without gradient. Theirs sets negative advantages to 0; here
   such rows leave the loss, and every mean. Their V is a head on the reference; here it is the mean
   reward of the prompt's stored responses, or what the run's estimator says. [derivation]
3. The form of Direct Advantage Policy Optimization's quadratic loss is a derivation from its
   summary, which says that it aligns scaled advantages with log-ratios. A step's advantage is the
   sum of its tokens', which with lambda 0 and gamma 1 is V behind it less V before it.
4. Digi-Q is after its abstract and a summary: V is the mean of Q over the logged actions. Its
   phase before, which makes features of actions, is not built. [derivation]
"""

from __future__ import annotations

import torch
from torch.nn.functional import logsigmoid


def response_log_ratio(log_ratio_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """Log pi(y | x) / pi_ref(y | x), (B,): the sum over tokens in the mask (arXiv 2305.18290)."""
    return torch.where(mask_BT.bool(), log_ratio_BT, 0.0).sum(dim=1)


def partners(numbers_B: torch.Tensor) -> torch.Tensor:
    """The row that shares each row's number, (B,) long.

    It is a layout of rows, no method of a paper.

    Raises:
        ValueError: a number is not there twice.
    """
    same_BB = numbers_B.unsqueeze(0) == numbers_B.unsqueeze(1)
    if not bool((same_BB.sum(dim=1) == 2).all()):
        raise ValueError("each row of a pair needs the other one in its micro-batch")
    same_BB.fill_diagonal_(False)
    return same_BB.long().argmax(dim=1)


def dpo_losses(better_N: torch.Tensor, worse_N: torch.Tensor, *, beta: float) -> torch.Tensor:
    """Direct preference optimisation (arXiv 2305.18290, equation 7), (N,).

    `better_N` and `worse_N` are log-ratios of policy to reference, of whole responses.
    """
    return -logsigmoid(beta * (better_N - worse_N))


def prdp_losses(
    log_ratio_difference_N: torch.Tensor, reward_difference_N: torch.Tensor, *, beta: float
) -> torch.Tensor:
    """Reward difference prediction (PRDP, arXiv 2402.08714), (N,); see difference 1.

    0 where beta * log-ratio difference is the reward difference, as in the optimum of the reward
    with a KL of weight `beta`.
    """
    return (log_ratio_difference_N - reward_difference_N / beta).square()


def a_lol_token_losses(
    logps_BT: torch.Tensor,
    log_ratio_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    clip: float,
    by_token: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantage-leftover-lunch (A-LoL, arXiv 2305.14718): the losses of tokens, and the ratios.

    Their sum over a response is the authors' loss. The weight is the ratio of policy to reference,
    of the response, or of each token where `by_token`, within [1 - clip, 1 + clip] and without
    gradient. Negative advantages count as 0. Both results are (B, T).
    """
    fixed_BT = log_ratio_BT.detach()
    if not by_token:
        fixed_BT = response_log_ratio(fixed_BT, mask_BT).unsqueeze(1).expand_as(log_ratio_BT)
    ratio_BT = fixed_BT.exp()
    weight_BT = ratio_BT.clamp(1 - clip, 1 + clip)
    return -advantages_BT.clamp(min=0) * weight_BT * logps_BT, ratio_BT


def direct_advantage_losses(
    log_ratio_BT: torch.Tensor,
    advantages_BT: torch.Tensor,
    steps_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    beta: float,
) -> torch.Tensor:
    """Direct Advantage Policy Optimization (arXiv 2412.18279), (B, T); see difference 3.

    `steps_BT` are the numbers of the tokens' steps, from 0. The loss of a step is divided among its
    tokens: a row's sum over the mask is the sum over its steps.
    """
    keep_BT = mask_BT.bool()
    count = int(steps_BT.max()) + 1
    empty_BS = log_ratio_BT.new_zeros(len(log_ratio_BT), count)

    def by_step(values_BT: torch.Tensor) -> torch.Tensor:
        return empty_BS.scatter_add(1, steps_BT, torch.where(keep_BT, values_BT, 0.0))

    tokens_BS = by_step(torch.ones_like(log_ratio_BT))
    missed_BS = beta * by_step(log_ratio_BT) - by_step(advantages_BT)
    shares_BS = missed_BS.square() / 2 / tokens_BS.clamp(min=1)
    return torch.where(keep_BT, shares_BS.gather(1, steps_BT), 0.0)


def step_numbers(ends_BT: torch.Tensor) -> torch.Tensor:
    """The number of each token's step, from 0, where `ends_BT` are last tokens; (B, T) long.

    A step goes on to its last token, inclusive; what follows the last is one more. [derivation]
    """
    ends_BT = ends_BT.long()
    return ends_BT.cumsum(dim=1) - ends_BT


def td_targets(
    rewards_N: torch.Tensor, following_N: torch.Tensor, ends_N: torch.Tensor, *, gamma: float
) -> torch.Tensor:
    """What Q(s, a) of a logged step learns, (N,): r + gamma V(s') (Digi-Q, arXiv 2502.15760).

    `following_N` are values of the states behind the steps; where `ends_N`, which is bool, there is
    none, and it may be anything.
    """
    return rewards_N + torch.where(ends_N, torch.zeros_like(following_N), gamma * following_N)


def best_actions(q_SN: torch.Tensor, values_S: torch.Tensor) -> torch.Tensor:
    """The place of each state's best of N actions, (S,) long; -1 where it has no Q above V(s).

    Of equal ones it is the first; NaN stands for no action (Digi-Q, arXiv 2502.15760).
    """
    known_SN = torch.where(q_SN.isnan(), -torch.inf, q_SN)
    best_S = known_SN.argmax(dim=1)
    top_S = known_SN.gather(1, best_S.unsqueeze(1)).squeeze(1)
    return torch.where(top_S > values_S, best_S, -1)
