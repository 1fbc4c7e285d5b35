"""FIRE's hooks: how first tokens are drawn, and their part in the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from assay.trainer.core.batch import Batch, Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.engines.types import FirstToken
from assay.trainer.rollouts.types import Collected


class Fire(Hooks):
    """The first token of each response from a flat distribution (FIRE, arXiv 2410.21236)."""

    def first_token(self) -> FirstToken:
        """See Hooks."""
        fire = self.config.method.fire
        return FirstToken(fire.temperature, fire.top_k)

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; adds `first_logps` (B,) in the mode "exact"."""
        del scored, collected
        return first_set_apart(batch, self.config.method.fire.mode)

    def sampled(self, mask_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: first tokens are not the policy's."""
        mask_BT = mask_BT.clone()
        mask_BT[:, 0] = False
        return mask_BT

    def token_weights(
        self, batch: Batch, old_BT: torch.Tensor
    ) -> tuple[str, torch.Tensor, slice] | None:
        """See Hooks: the weights of first tokens in the mode "exact"."""
        if "first_logps" not in batch:
            return None
        return "first_weight", first_token_weights(old_BT, batch["first_logps"]), slice(1)


def first_set_apart(batch: Batch, mode: Literal["mask", "exact", "parity"]) -> Batch:
    """A batch from `pad` whose first tokens FIRE drew (arXiv 2410.21236).

    Their log-probabilities are not the policy's: ratios do not start from them. A derivation. The
    mode mask removes first tokens from `loss_mask`; exact adds `first_logps` (B,), under the
    distribution that drew them; parity does neither.
    """
    sampler_BT, loss_mask_BT = batch["sampler_logps"].clone(), batch["loss_mask"].clone()
    changed = {"sampler_logps": sampler_BT, "loss_mask": loss_mask_BT}
    if mode == "exact":
        changed["first_logps"] = sampler_BT[:, 0].clone()
    if mode == "mask":
        loss_mask_BT[:, 0] = False
    sampler_BT[:, 0] = float("nan")
    return {**batch, **changed}


def first_token_weights(old_BT: torch.Tensor, first_B: torch.Tensor) -> torch.Tensor:
    """min(pi_old / drawn with, 1) for first tokens, and 1 for all others; a derivation.

    The bound keeps rare first tokens from outweighing the policy's own.
    """
    weights_BT = torch.ones_like(old_BT)
    weights_BT[:, 0] = (old_BT[:, 0] - first_B).exp().clamp(max=1.0)
    return weights_BT
