"""Rewards and penalties for length and repetition, beside the judged reward.

The verdict stays: dynamic sampling and accuracy go by it. A fault gets no reward.

In this order, after method.pairwise.reward:

1. cosine (arXiv 2502.03373, "Demystifying Long CoT") replaces the reward by one of length and of
   the verdict "correct". A response of max_new_tokens gets `cosine_exceed`, right or wrong.
2. soft overlong punishment (DAPO, arXiv 2503.14476) is added.
3. the penalty for repeated n-grams (arXiv 2502.03373) is added, unless the verdict is "correct".
4. overlong filtering (DAPO) takes a cut response out of the loss; its reward counts for its group.

A response's length counts its end-of-sequence token.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from assay.trainer.algos.shaping import (
    cosine_length_reward,
    ngram_repetition_penalty,
    soft_overlong,
)
from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.shaping.settings import ShapingConfig
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


@dataclass(frozen=True, slots=True)
class Shaped:
    """One rollout's reward, shaped.

    Attributes:
        reward: the number that trains.
        in_loss: whether its tokens train.
        components: of each active shaper: "cosine", "overlong", "repetition".
    """

    reward: float
    in_loss: bool
    components: dict[str, float] = field(default_factory=dict)


def shape(rollout: Rollout, reward: float, config: ShapingConfig, max_new_tokens: int) -> Shaped:
    """Shapes one judged rollout's reward so far; without shapers it stays to the bit. Pure.

    `max_new_tokens` is at least the response's length.
    """
    judgement = rollout.result.judgement
    correct = judgement is not None and judgement.verdict == "correct"
    ids = rollout.response.ids
    components: dict[str, float] = {}
    if config.cosine:
        reward = components["cosine"] = float(
            cosine_length_reward(
                len(ids),
                correct,
                max_length=max_new_tokens,
                correct_range=config.cosine_correct,
                wrong_range=config.cosine_wrong,
                exceed=config.cosine_exceed,
                margin=0,
            )
        )
    if config.overlong == "soft":
        penalty = soft_overlong(
            len(ids),
            max_length=max_new_tokens,
            cache_length=config.overlong_cache,
            factor=config.overlong_factor,
        )
        components["overlong"] = float(penalty) + 0.0  # no negative zero
        reward += components["overlong"]
    if config.repetition_ngram:
        components["repetition"] = (
            0.0
            if correct
            else float(
                ngram_repetition_penalty(ids, config.repetition_ngram, config.repetition_penalty)
            )
        )
        reward += components["repetition"]
    in_loss = not (config.overlong == "filter" and rollout.response.truncated)
    return Shaped(reward, in_loss, components)
