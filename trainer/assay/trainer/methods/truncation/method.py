"""T-PPO's hooks: slots, and a critic that skips steps in which too few responses ended."""

from __future__ import annotations

from assay.trainer.core.batch import Batch
from assay.trainer.core.build import Workshop
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.truncation.slots import SlotCollector
from assay.trainer.rollouts.types import Source


class Truncation(Hooks):
    """Responses continue in the next step (T-PPO, arXiv 2506.15050)."""

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return (
            "with method.truncation they end in different steps; set method.truncation.window = 0"
        )

    def source(self, shop: Workshop, *, whole: bool) -> Source | None:
        """See Hooks."""
        if not whole:
            return None
        return SlotCollector(
            shop.stream,
            shop.generator(),
            lambda: shop.judge.open_round(1),
            config=self.config.rollout,
            window=self.config.method.truncation.window,
            ranks=shop.ranks,
            talk=shop.talk,
        )

    def credited(self, batch: Batch, judged: int) -> None:
        """See Hooks: the critic learns from whole responses, where enough ended."""
        skips = judged < self.config.method.truncation.min_finished
        batch["value_mask"] &= not skips
        self.seen["value_skipped"] = float(skips)
