"""SPO's hooks: responses are continued from their cuts, and valued there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.build import Workshop
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.segments.collector import SegmentCollector, SegmentTokens
from assay.trainer.rollouts.types import Collected, Source, place

NAME = "segments"


class Segments(Hooks):
    """Advantages of segments (SPO, arXiv 2505.23564)."""

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return (
            "method.segments has each continuation judged by itself; set "
            'method.advantage.estimator = "group"'
        )

    def around(self, source: Source, shop: Workshop) -> Source:
        """See Hooks."""
        return SegmentCollector(
            source,
            shop.generator(),
            lambda: shop.judge.open_round(1),
            config=self.config.method.segments,
            ranks=shop.ranks,
        )

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks: `segment_advantages` (B, T), NaN where unknown and then out of the loss."""
        found = collected.notes.get(NAME)
        if not found:
            return batch
        rows = [
            found.get(place(item.rollout)) or SegmentTokens((math.nan,) * size, (False,) * size)
            for item in scored
            for size in [len(item.rollout.response.ids)]
        ]
        device = batch["rewards"].device
        advantages_BT = filled([one.advantages for one in rows], math.nan, torch.float32)
        trained_BT = filled([one.trained for one in rows], False, torch.bool)
        known_BT = (trained_BT & ~advantages_BT.isnan()).to(device)
        return {
            **batch,
            "segment_advantages": advantages_BT.to(device),
            "loss_mask": batch["loss_mask"] & known_BT,
        }


def segment_advantages(batch: Batch) -> torch.Tensor:
    """Of segments, (B, T), 0 outside of the loss; all 0 where no response has any."""
    if "segment_advantages" not in batch:
        return torch.zeros_like(batch["sampler_logps"])
    return torch.where(batch["loss_mask"], batch["segment_advantages"], 0.0)
