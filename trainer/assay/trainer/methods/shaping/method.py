"""The shapers' hook."""

from __future__ import annotations

from dataclasses import replace

from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.shaping.shape import shape
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.config import Config


class Shaping(Hooks):
    """Penalties and bonuses beside what was judged."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.changes_rewards = config.method.shaping.changes_rewards

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks."""
        return [[self._shaped(item) for item in group] for group in groups]

    def _shaped(self, item: Scored) -> Scored:
        if item.reward is None or not isinstance(item.rollout, Rollout):
            return item
        most = self.config.rollout.max_new_tokens
        made = shape(item.rollout, item.reward, self.config.method.shaping, most)
        return replace(item, reward=made.reward, in_loss=item.in_loss and made.in_loss)
