"""Pairwise-RL's hooks: the form of a win probability, and the responses to beat."""

from __future__ import annotations

from dataclasses import replace

from assay.trainer.algos.shaping import win_reward
from assay.trainer.core.answering import first_token, rollout_sampling, sampler
from assay.trainer.core.batch import Scored
from assay.trainer.core.build import encoder
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.methods.pairwise.anchors import prepare_anchors
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.settings.config import Config


class Pairwise(RunHooks):
    """Rewards that are probabilities of beating a response (Pairwise-RL, arXiv 2504.04950)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.changes_rewards = config.method.pairwise.reward != "win"

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks."""
        return [[self._formed(item) for item in group] for group in groups]

    def _formed(self, item: Scored) -> Scored:
        if item.reward is None:
            return item
        chosen = self.config.method.pairwise
        made = win_reward(item.reward, form=chosen.reward, clip=chosen.log_odds_clip)
        return replace(item, reward=made)

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: PromptStream, *, resumed: bool
    ) -> bool:
        """See RunHooks: the initial policy makes the anchors."""
        config = session.config
        return prepare_anchors(
            session.judge,
            config,
            problems=session.problems,
            stream=stream,
            generator=lambda: sampler(
                trainer,
                config,
                session.policy,
                rollout_sampling(
                    config.rollout, first_token(trainer.hooks), rows=config.eval.batch_size
                ),
            ),
            encode=encoder(session.policy),
            ranks=AccelerateRanks(trainer.accelerator),
            folder=session.folder,
            display=session.display,
            stop=lambda: session.world.any(session.stop.requested),
            may_retry=not resumed,
        )
