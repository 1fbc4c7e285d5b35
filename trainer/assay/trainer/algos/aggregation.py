"""From the losses of tokens to the loss of a mini-batch.

    token-mean            sum over tokens / tokens               DAPO (arXiv 2503.14476)
    seq-mean-token-mean   mean over rows of the row's mean       GRPO (arXiv 2402.03300, eq. 3)
    seq-mean-token-sum    mean over rows of the row's sum
    constant              sum over tokens / (rows * max_length)  Dr. GRPO (arXiv 2503.20783)

Differences from the papers:
1. The denominators are those of the whole mini-batch, passed in, so that the losses of its
   micro-batches add up however it is split. The papers write the mean over one prompt's group;
   DAPO's own code takes the mini-batch's too.
2. A row without a token in the mask (a fault, a filtered response) is in no mean.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch

Aggregation = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"]


def token_count(mask_BT: torch.Tensor) -> torch.Tensor:
    """How many tokens the mask holds; 0-dim."""
    return mask_BT.bool().sum()


def row_count(mask_BT: torch.Tensor) -> torch.Tensor:
    """How many rows have a token in the mask; 0-dim."""
    return mask_BT.bool().any(dim=1).sum()


def aggregate(
    losses_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    mode: Aggregation,
    *,
    tokens: torch.Tensor | float | None = None,
    rows: torch.Tensor | float | None = None,
    max_length: int | None = None,
) -> torch.Tensor:
    """The part of a mini-batch's loss that comes from these rows; 0-dim, 0 where the mask is empty.

    Args:
        losses_BT: of tokens.
        mask_BT: the tokens in the loss.
        mode: see the module.
        tokens: `token_count` of the whole mini-batch, for token-mean; by default of these rows.
        rows: `row_count` of the whole mini-batch, for the others; by default of these rows.
        max_length: constant: the most tokens that a response may have.

    Raises:
        ValueError: the mode is unknown, or max_length is missing.
    """
    keep_BT = mask_BT.bool()
    tokens = token_count(keep_BT) if tokens is None else tokens
    rows = row_count(keep_BT) if rows is None else rows
    sums_B = torch.where(keep_BT, losses_BT, 0.0).sum(dim=1)
    match mode:
        case "token-mean":
            return sums_B.sum() / _at_least_one(tokens, losses_BT)
        case "seq-mean-token-mean":
            means_B = sums_B / keep_BT.sum(dim=1).clamp(min=1)
            return means_B.sum() / _at_least_one(rows, losses_BT)
        case "seq-mean-token-sum":
            return sums_B.sum() / _at_least_one(rows, losses_BT)
        case "constant":
            if max_length is None:
                raise ValueError('the mode "constant" needs max_length')
            return sums_B.sum() / (_at_least_one(rows, losses_BT) * max_length)
        case _:
            raise ValueError(f"unknown mode {mode!r}; known: {', '.join(get_args(Aggregation))}")


def _at_least_one(count: torch.Tensor | float, like: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(count, dtype=like.dtype, device=like.device).clamp(min=1)
