"""The policy's loss on a micro-batch, composed of the configured parts. Pure.

    L = agg( policy token losses * importance weights + kl_coef * KL ) - entropy_coef * H
        + positive_lm_coef * NLL(correct responses)

`kl_gradient` weighs a token's KL, or not, by its ratio of policy to sampler; see algos/kl.

Every mean is over the whole mini-batch of all processes, by the counts given: the losses of its
micro-batches add up to its loss however it was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from assay.trainer.algos import aggregation, auxiliary, importance, kl, policy_losses, ratios
from assay.trainer.core.batch import kl_coefficients
from assay.trainer.settings.objective import CORRECTIONS, LossConfig
from assay.trainer.settings.registry import loss_of, resolved

if TYPE_CHECKING:
    from assay.trainer.core.hooks import Hooks

Batch = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a mini-batch holds over all its micro-batches and processes; 0-dimensional tensors.

    Attributes:
        tokens: in the loss.
        rows: responses with such tokens.
        positive_tokens: those of correct responses.
    """

    tokens: torch.Tensor
    rows: torch.Tensor
    positive_tokens: torch.Tensor


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The input of a loss function.

    Attributes:
        logps_BT: log pi of each token under the weights that learn, with gradient.
        log_ratio_BT: log(pi / pi_old), clamped and averaged over the response as configured; with
            gradient.
        mask_BT: bool, tokens in the loss.
        config: `method.loss`.
        own: the loss's own table; None without one.
        columns: of the micro-batch, such as `rewards` (B,) and what methods mark.
    """

    logps_BT: torch.Tensor
    log_ratio_BT: torch.Tensor
    advantages_BT: torch.Tensor
    mask_BT: torch.Tensor
    config: LossConfig
    own: Any = None
    columns: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The loss of a micro-batch, and its metrics.

    Attributes:
        loss: 0-dimensional, with gradient.
        sums: for each metric the sum over tokens and the number of tokens; both add up.
        peaks: for each metric the largest value.
    """

    loss: torch.Tensor
    sums: dict[str, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    peaks: dict[str, torch.Tensor] = field(default_factory=dict)


def count(batch: Batch) -> Counts:
    """The counts of one micro-batch."""
    mask_BT = batch["loss_mask"]
    return Counts(
        aggregation.token_count(mask_BT),
        aggregation.row_count(mask_BT),
        auxiliary.positive_mask(mask_BT, batch["correct"]).sum(),
    )


def window(mini_batch: Batch) -> Batch:
    """What a mini-batch holds on this process, as columns of its micro-batches.

    0-dimensional float tensors: those of `Counts`, tokens whose value is trained, and rows.
    """
    counts, rewards_B = count(mini_batch), mini_batch["rewards"]
    values = mini_batch["value_mask"].sum() if "value_mask" in mini_batch else None
    held = {
        "window_tokens": counts.tokens,
        "window_rows": counts.rows,
        "window_positive": counts.positive_tokens,
        "window_value_tokens": rewards_B.new_zeros(()) if values is None else values,
        "window_samples": rewards_B.new_tensor(len(rewards_B)),
    }
    return {name: number.float() for name, number in held.items()}


def policy_loss(
    logps_BT: torch.Tensor,
    entropies_BT: torch.Tensor,
    batch: Batch,
    config: LossConfig,
    counts: Counts,
    *,
    max_length: int,
    own: Any = None,
    hooks: Sequence[Hooks] = (),
) -> Outcome:
    """The loss of a micro-batch.

    Args:
        logps_BT: log pi of each response token under the weights that learn, with gradient.
        entropies_BT: of the distributions that the tokens were drawn from, in nats.
        batch: `loss_mask` (B, T) bool, `advantages` (B, T), `correct` (B,) bool, `old_logps` (B, T)
            where the ratio starts from, NaN for "these very weights"; `ref_logps` (B, T) where a KL
            is taken; `task` (B,) for KL coefficients by task; `sampler_logps` (B, T), NaN where
            unknown.
        config: the parts.
        counts: of the whole mini-batch.
        max_length: most tokens of a response, for the constant aggregation.
        own: the loss's own table, if it has one.
        hooks: of active methods.
    """
    mask_BT = batch["loss_mask"]
    detached_BT = logps_BT.detach()
    old_BT = torch.where(batch["old_logps"].isnan(), detached_BT, batch["old_logps"])
    token = _token_losses(logps_BT, old_BT, batch, config, own)
    losses_BT = token.losses_BT
    outcome = Outcome(losses_BT.sum())
    if config.importance_correction in CORRECTIONS:
        losses_BT = losses_BT * _importance_weights(outcome, old_BT, batch, config)
    for hook in hooks:
        weighed = hook.token_weights(batch, old_BT)
        if weighed is not None:
            name, weights_BT, over = weighed
            losses_BT = losses_BT * weights_BT
            _add(outcome, name, weights_BT[:, over], mask_BT[:, over])

    def aggregated(values_BT: torch.Tensor) -> torch.Tensor:
        return aggregation.aggregate(
            values_BT,
            mask_BT,
            config.aggregation,
            tokens=counts.tokens,
            rows=counts.rows,
            max_length=max_length,
        )

    _add(outcome, "policy_loss", losses_BT, mask_BT)
    if "ref_logps" in batch:
        kl_BT = kl.kl_token_losses(
            logps_BT,
            batch["ref_logps"],
            config.kl_estimator,
            log_ratio_BT=ratios.log_ratio(logps_BT, old_BT)
            if config.kl_gradient == "weighted"
            else None,
        )
        _add(outcome, "kl", kl_BT, mask_BT)
        if "kl_mask" in batch:
            kl_BT = torch.where(batch["kl_mask"], kl_BT, 0.0)
        if config.kl_place == "loss":
            losses_BT = losses_BT + kl_coefficients(batch, config) * kl_BT
    loss = aggregated(losses_BT)
    if config.entropy_coef:
        loss = loss - config.entropy_coef * aggregated(entropies_BT)
    if config.positive_lm_coef:
        lm = auxiliary.positive_lm_loss(
            logps_BT, mask_BT, batch["correct"], tokens=counts.positive_tokens
        )
        loss = loss + config.positive_lm_coef * lm
        positive_BT = auxiliary.positive_mask(mask_BT, batch["correct"]).bool()
        _add(outcome, "lm_loss", -logps_BT, positive_BT)
        _add(outcome, "lm_share", positive_BT.to(logps_BT.dtype), mask_BT)
    outcome.loss = loss
    _add(outcome, "entropy", entropies_BT, mask_BT)
    _observe(outcome, ratios.log_ratio(detached_BT, old_BT), token, mask_BT)
    return outcome


def _token_losses(
    logps_BT: torch.Tensor, old_BT: torch.Tensor, batch: Batch, config: LossConfig, own: Any
) -> policy_losses.TokenLosses:
    advantages_BT, mask_BT = batch["advantages"], batch["loss_mask"]
    if config.importance_correction == "decoupled":
        sampler_BT = batch["sampler_logps"]
        behaviour_BT = torch.where(sampler_BT.isnan(), old_BT, sampler_BT)
        return policy_losses.decoupled_ppo_token_losses(
            logps_BT,
            old_BT,
            behaviour_BT,
            advantages_BT,
            clip_low=config.clip_low,
            clip_high=config.clip_high,
            cap=config.importance_limits[1],
            dual_clip=config.dual_clip or None,
        )
    log_ratio_BT = ratios.log_ratio(logps_BT, old_BT)
    if config.pre_clip:
        log_ratio_BT = ratios.pre_clip_log_ratio(
            log_ratio_BT, low=1 / config.pre_clip, high=config.pre_clip
        )
    if config.ratio == "sequence":
        log_ratio_BT = ratios.sequence_log_ratio(log_ratio_BT, mask_BT)
    surrogate: Callable[[Surrogate], policy_losses.TokenLosses] = resolved(loss_of(config).function)
    given = Surrogate(logps_BT, log_ratio_BT, advantages_BT, mask_BT, config, own, batch)
    return surrogate(given)


def ppo(given: Surrogate) -> policy_losses.TokenLosses:
    """The clipped surrogate (PPO, arXiv 1707.06347, equation 7), dual-clipped where asked."""
    loss = given.config
    return policy_losses.ppo_token_losses(
        given.log_ratio_BT,
        given.advantages_BT,
        clip_low=loss.clip_low,
        clip_high=loss.clip_high,
        dual_clip=loss.dual_clip or None,
    )


def cispo(given: Surrogate) -> policy_losses.TokenLosses:
    """Clipped ratios that weigh the log-likelihood (MiniMax-M1, arXiv 2506.13585)."""
    loss = given.config
    return policy_losses.cispo_token_losses(
        given.logps_BT,
        given.log_ratio_BT,
        given.advantages_BT,
        clip_low=loss.clip_low,
        clip_high=loss.clip_high,
    )


def _importance_weights(
    outcome: Outcome, old_BT: torch.Tensor, batch: Batch, config: LossConfig
) -> torch.Tensor:
    """Weights that correct the sampler's probabilities; 1 where these are unknown."""
    way, mask_BT = CORRECTIONS[config.importance_correction], batch["loss_mask"]
    low, high = config.importance_limits
    found = importance.importance_weights(
        old_BT,
        batch["sampler_logps"],
        mask_BT,
        sequence=way.sequence,
        mask=way.mask,
        low=low,
        high=high,
    )
    _add(outcome, "importance_weight", found.weights_BT, mask_BT)
    _add(outcome, "importance_ratio", found.ratios_BT, mask_BT)
    _add(outcome, "importance_outside", found.outside_BT.to(old_BT.dtype), mask_BT)
    if way.sequence:
        rows_B = found.outside_BT.any(dim=1).to(old_BT.dtype)
        outcome.sums["importance_outside_rows"] = (rows_B.sum(), aggregation.row_count(mask_BT))
    return found.weights_BT


def _observe(
    outcome: Outcome,
    log_ratio_BT: torch.Tensor,
    token: policy_losses.TokenLosses,
    mask_BT: torch.Tensor,
) -> None:
    _add(outcome, "clip_low", token.clipped_low_BT.to(log_ratio_BT.dtype), mask_BT)
    _add(outcome, "clip_high", token.clipped_high_BT.to(log_ratio_BT.dtype), mask_BT)
    _add(outcome, "dual_clip", token.dual_clipped_BT.to(log_ratio_BT.dtype), mask_BT)
    _add(outcome, "approx_kl", log_ratio_BT.exp() - 1 - log_ratio_BT, mask_BT)
    outcome.sums.update(token.seen)
    outcome.peaks["ratio_max"] = torch.where(mask_BT, log_ratio_BT, 0.0).max().exp()


def _add(outcome: Outcome, name: str, values_BT: torch.Tensor, mask_BT: torch.Tensor) -> None:
    """Adds the sum over tokens in the loss; NaN outside of it is ignored."""
    chosen_BT = torch.where(mask_BT, values_BT.detach(), 0.0)
    outcome.sums[name] = (chosen_BT.sum(), mask_BT.sum())
