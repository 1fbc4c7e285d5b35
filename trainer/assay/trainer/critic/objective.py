"""The meaning of a value head's outputs, and its loss: the pure part of a critic.

A head has one output per token, which is the value, or one per class of returns, whose expectation
is the value (HL-Gauss, two-hot: arXiv 2403.03950). Results are sums over tokens; callers divide by
the tokens of the whole mini-batch.

Shapes: B rows, T response tokens, K outputs of the head. values_BT[:, t] is V(s_t), the value of
the state before response token t: prompt + response[:t].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from assay.trainer.algos.packing import laid, of_responses
from assay.trainer.algos.value_losses import (
    ValueBins,
    clipped_value_losses,
    mse_value_losses,
)
from assay.trainer.settings.objective import CriticConfig

_CLASSES = ("hl-gauss", "two-hot")


def is_classes(config: CriticConfig) -> bool:
    """Whether the outputs are classes of returns."""
    return config.loss in _CLASSES


def output_count(config: CriticConfig) -> int:
    """K: outputs of the head for each token."""
    return config.bins if is_classes(config) else 1


def meaning(config: CriticConfig) -> dict[str, Any]:
    """How values are read from the outputs; saved beside the weights."""
    if not is_classes(config):
        return {"head": "scalar"}
    return {
        "head": "classes",
        "bins": config.bins,
        "value_min": config.value_min,
        "value_max": config.value_max,
    }


def to_values(outputs_BTK: Tensor, config: CriticConfig) -> Tensor:
    """values_BT from the head's outputs."""
    if is_classes(config):
        return _bins(config).expectation(outputs_BTK)
    return outputs_BTK.squeeze(-1)


def value_loss(
    outputs_BTK: Tensor,
    old_values_BT: Tensor,
    returns_BT: Tensor,
    mask_BT: Tensor,
    config: CriticConfig,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss, summed over the tokens of the mask.

    Args:
        outputs_BTK: of the head, with gradient.
        old_values_BT: values at the rollout; used by `clipped` only.
        returns_BT: targets; anything, NaN as well, outside of the mask.
        mask_BT: tokens whose value is trained; without those of faulted rows.
        config: which loss.

    Returns:
        The sum (0-dim, with gradient even where the mask is empty), and detached 0-dim sums over
        the same tokens: loss, tokens, squared_error of V - R, clipped (tokens whose value has moved
        farther than `clip` from the old one), outside (targets beyond the range of the classes).
    """
    mask_BT = mask_BT.bool()
    returns_BT = returns_BT.masked_fill(~mask_BT, 0.0)  # before the loss: 0 * NaN is NaN
    old_values_BT = old_values_BT.masked_fill(~mask_BT, 0.0)
    values_BT = to_values(outputs_BTK, config)
    losses_BT = _token_losses(outputs_BTK, values_BT, old_values_BT, returns_BT, config)
    total = losses_BT.masked_fill(~mask_BT, 0.0).sum()
    with torch.no_grad():
        moved_BT = (values_BT - old_values_BT).abs() > config.clip
        outside_BT = (returns_BT < config.value_min) | (returns_BT > config.value_max)
        sums = {
            "loss": total.detach(),
            "tokens": mask_BT.sum(),
            "squared_error": (values_BT - returns_BT).square().masked_fill(~mask_BT, 0.0).sum(),
            "clipped": (moved_BT & mask_BT).sum() * (config.loss == "clipped"),
            "outside": (outside_BT & mask_BT).sum() * is_classes(config),
        }
    return total, {name: value.float() for name, value in sums.items()}


def _token_losses(
    outputs_BTK: Tensor,
    values_BT: Tensor,
    old_values_BT: Tensor,
    returns_BT: Tensor,
    config: CriticConfig,
) -> Tensor:
    if config.loss == "mse":
        return mse_value_losses(values_BT, returns_BT)
    if config.loss == "clipped":
        return clipped_value_losses(values_BT, old_values_BT, returns_BT, clip=config.clip)
    bins = _bins(config)
    target = bins.hl_gauss if config.loss == "hl-gauss" else bins.two_hot
    return bins.cross_entropy(outputs_BTK, target(returns_BT))


def _bins(config: CriticConfig) -> ValueBins:
    return ValueBins(config.value_min, config.value_max, config.bins)


def model_inputs(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Prompt and response of each sequence, from the first column on: input_ids and mask (S, L).

    The batch is that of `Critic.values`. The padding is behind the tokens, so transformers derives
    the right positions.
    """
    rows = laid(batch)
    return {"input_ids": rows.ids_SL, "attention_mask": rows.mask_SL}


def before_each_token(states_SLX: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Outputs at the T positions that see all before token t of its sequence; (B, T, ...)."""
    return of_responses(states_SLX, laid(batch), batch, -1)
