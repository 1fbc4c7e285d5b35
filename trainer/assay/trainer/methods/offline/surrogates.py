"""The losses and advantages of stored responses, from a batch's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from assay.trainer.algos import offline
from assay.trainer.algos.packing import TOGETHER
from assay.trainer.algos.policy_losses import TokenLosses
from assay.trainer.core.objective import Surrogate

BETTER, BASELINE, STEPS = "better", "baseline", "step_number"
"""Columns: the better response of its pair, (B,) bool; the mean reward of the prompt's stored
responses, (B,); the number of a token's step, (B, T) long."""


def sft(given: Surrogate) -> TokenLosses:
    """The negative log-likelihood."""
    return _plain(given, -given.logps_BT)


def dpo(given: Surrogate) -> TokenLosses:
    """A pair's loss, on each token of both responses."""
    better_N, worse_N, _ = _pairs(given)
    return _of_pairs(given, offline.dpo_losses(better_N, worse_N, beta=given.own.beta))


def prdp(given: Surrogate) -> TokenLosses:
    """A pair's loss, on each token of both responses."""
    better_N, worse_N, rewards_N = _pairs(given)
    losses_N = offline.prdp_losses(better_N - worse_N, rewards_N, beta=given.own.beta)
    return _of_pairs(given, losses_N)


def a_lol(given: Surrogate) -> TokenLosses:
    """The weighted likelihood; clipped where the ratio is outside."""
    own = given.own
    losses_BT, ratio_BT = offline.a_lol_token_losses(
        given.logps_BT,
        given.log_ratio_BT,
        given.advantages_BT,
        given.mask_BT,
        clip=own.clip,
        by_token=own.ratio == "token",
    )
    found = _plain(given, losses_BT)
    low_BT, high_BT = ratio_BT < 1 - own.clip, ratio_BT > 1 + own.clip
    return TokenLosses(found.losses_BT, low_BT, high_BT, found.dual_clipped_BT)


def direct_advantage(given: Surrogate) -> TokenLosses:
    """The regression of steps."""
    losses_BT = offline.direct_advantage_losses(
        given.log_ratio_BT,
        given.advantages_BT,
        given.columns[STEPS],
        given.mask_BT,
        beta=given.own.beta,
    )
    return _plain(given, losses_BT)


def stored_advantages(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """R - baseline for each token of a response, (B, T)."""
    ahead_B = (batch["rewards"] - batch[BASELINE]).nan_to_num(0.0)
    return ahead_B.unsqueeze(1) * batch["completion_mask"]


def _pairs(given: Surrogate) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-ratios of better and worse responses, and how much more the better ones earned; (N,)."""
    columns = given.columns
    sums_B = offline.response_log_ratio(given.log_ratio_BT, given.mask_BT)
    better_N = columns[BETTER].nonzero().squeeze(1)
    worse_N = offline.partners(columns[TOGETHER])[better_N]
    rewards_B = columns["rewards"]
    return sums_B[better_N], sums_B[worse_N], rewards_B[better_N] - rewards_B[worse_N]


def _of_pairs(given: Surrogate, losses_N: torch.Tensor) -> TokenLosses:
    columns = given.columns
    better_N, worse_N, _ = _pairs(given)
    rows_N = columns[BETTER].nonzero().squeeze(1)
    losses_B = torch.zeros_like(columns["rewards"], dtype=losses_N.dtype)
    losses_B = losses_B.index_put((rows_N,), losses_N)
    losses_B = losses_B.index_put((offline.partners(columns[TOGETHER])[rows_N],), losses_N)
    margin_N = (better_N - worse_N).detach()
    count = margin_N.new_tensor(len(margin_N))
    found = _plain(given, losses_B.unsqueeze(1).expand_as(given.logps_BT))
    seen = {"pair_accuracy": ((margin_N > 0).float().sum(), count)}
    seen["pair_margin"] = (margin_N.sum(), count)
    return replace(found, seen=seen)


def _plain(given: Surrogate, losses_BT: torch.Tensor) -> TokenLosses:
    nowhere_BT = torch.zeros_like(given.mask_BT)
    return TokenLosses(losses_BT, nowhere_BT, nowhere_BT, nowhere_BT)
