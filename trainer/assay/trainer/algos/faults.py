"""Takes faulted samples out of a batch that is about to be trained on.

A sample without a judgement must leave the batch's loss as if it had never been rolled out. Its
advantage is 0 (see advantages.py), but that alone leaves its tokens in the loss's normaliser and in
the KL term. So its tokens leave the loss mask, the token count is taken again, and where a loss is
a mean over rows its normaliser counts the judged rows only.
"""

from __future__ import annotations

import torch

Batch = dict[str, torch.Tensor]


def mask_faults(batch: Batch, judged_B: torch.Tensor) -> Batch:
    """The batch without its faulted rows' part in the loss.

    The tokens stay where they are and are still attended to, so that log-probabilities computed
    before and after agree; they are taken out through `tool_mask`, TRL's mask of tokens that are in
    the context but not in the loss.

    Args:
        batch: as TRL makes it, with `completion_mask` (B, T) and perhaps `tool_mask` (B, T), of 0
            and 1.
        judged_B: shape (B,), true where the sample has a judgement.

    Returns:
        A new dictionary with `tool_mask`, `num_items_in_batch` (tokens in the loss, this process)
        and `row_scale` (B over judged rows, 0 when there is none: what turns a mean over all rows
        into one over the judged).

    Raises:
        ValueError: the mask has another length than the batch.
    """
    mask_BT = batch["completion_mask"]
    if judged_B.shape != mask_BT.shape[:1]:
        raise ValueError(f"{judged_B.numel()} outcomes for a batch of {mask_BT.shape[0]} rows")
    keep_B1 = judged_B.to(mask_BT.dtype).unsqueeze(1)
    tool_mask_BT = batch.get("tool_mask", torch.ones_like(mask_BT)) * keep_B1
    judged = judged_B.sum()
    row_scale = judged_B.numel() / judged.clamp(min=1) * (judged > 0)
    return {
        **batch,
        "tool_mask": tool_mask_BT,
        "num_items_in_batch": (mask_BT * tool_mask_BT).sum(),
        "row_scale": row_scale.float(),
    }
