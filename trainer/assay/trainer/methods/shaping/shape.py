"""Rewards and penalties for length and repetition, beside the judged reward.

The verdict stays: dynamic sampling and accuracy go by it. A fault gets no reward.

In this order, after method.pairwise.reward:

1. cosine (arXiv 2502.03373, "Demystifying Long CoT") replaces the reward by one of length and of
   the verdict "correct". A response of max_new_tokens gets `cosine_exceed`, right or wrong.
2. a failure's progress by the successes of its group (SRPO, arXiv 2511.15605) is added.
3. the bonus of a short, correct response (Observe-R1, arXiv 2505.12432) is added.
4. soft overlong punishment (DAPO, arXiv 2503.14476) is added.
5. the penalty over a budget by the group's pass rate (TRAAC, arXiv 2510.01581) is added.
6. the penalty for repeated n-grams (arXiv 2502.03373) is added, unless the verdict is "correct".
7. overlong filtering (DAPO) takes a cut response out of the loss; its reward counts for its group.

A response's length counts its end-of-sequence token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assay.trainer.algos.shaping import (
    calibrated_length_penalty,
    concise_bonus,
    cosine_length_reward,
    ngram_repetition_penalty,
    prefix_similarities,
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
        return [self._group(group) for group in groups]

    def _group(self, group: list[Scored]) -> list[Scored]:
        judged = [item for item in group if item.reward is not None]
        rate = sum(item.correct for item in judged) / max(1, len(judged))
        earned = progress_of(group, self.config.method.shaping)
        return [self._shaped(item, rate, more) for item, more in zip(group, earned, strict=True)]

    def _shaped(self, item: Scored, pass_rate: float, progress: float) -> Scored:
        if item.reward is None or not isinstance(item.rollout, Rollout):
            return item
        made = shape(
            item.rollout,
            item.reward,
            self.config.method.shaping,
            self.config.rollout.max_new_tokens,
            pass_rate=pass_rate,
            progress=progress,
        )
        return replace(item, reward=made.reward, in_loss=item.in_loss and made.in_loss)


def progress_of(group: Sequence[Scored], config: ShapingConfig) -> list[float]:
    """What each response of a group earns by its likeness to a success (SRPO). Pure.

    0 for successes and faults; a failure never earns more than the success that it is like.
    """
    earned = [0.0] * len(group)
    known = [(n, item.reward) for n, item in enumerate(group) if item.reward is not None]
    right = [(n, reward) for n, reward in known if group[n].correct]
    wrong = [(n, reward) for n, reward in known if not group[n].correct]
    if not config.progress or not right or not wrong:
        return earned
    alike_GG = prefix_similarities(
        [item.rollout.response.ids for item in group],
        ngram=config.progress_ngram,
        cuts=config.progress_cuts,
    )
    for n, reward in wrong:
        nearest, best = max(right, key=lambda one: alike_GG[n, one[0]])
        earned[n] = config.progress * float(alike_GG[n, nearest]) * max(0.0, best - reward)
    return earned


@dataclass(frozen=True, slots=True)
class Shaped:
    """One rollout's reward, shaped.

    Attributes:
        reward: the number that trains.
        in_loss: whether its tokens train.
        components: of each active shaper: "cosine", "progress", "concise", "overlong",
            "difficulty", "repetition".
    """

    reward: float
    in_loss: bool
    components: dict[str, float] = field(default_factory=dict)


def shape(
    rollout: Rollout,
    reward: float,
    config: ShapingConfig,
    max_new_tokens: int,
    *,
    pass_rate: float = 0.0,
    progress: float = 0.0,
) -> Shaped:
    """Shapes one judged rollout's reward so far; without shapers it stays to the bit. Pure.

    `max_new_tokens` is at least the response's length; `pass_rate` and `progress` are those of its
    group (see `progress_of`).
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
    if config.progress:
        components["progress"] = progress
        reward += progress
    if config.concise_bonus:
        components["concise"] = float(
            concise_bonus(len(ids), correct, below=config.concise_below, bonus=config.concise_bonus)
        )
        reward += components["concise"]
    if config.overlong == "soft":
        penalty = soft_overlong(
            len(ids),
            max_length=max_new_tokens,
            cache_length=config.overlong_cache,
            factor=config.overlong_factor,
        )
        components["overlong"] = float(penalty) + 0.0  # no negative zero
        reward += components["overlong"]
    if config.budget_penalty:
        over = calibrated_length_penalty(
            len(ids),
            pass_rate,
            least=config.budget_least,
            most=config.budget_up_to(max_new_tokens),
            factor=config.budget_penalty,
        )
        components["difficulty"] = float(over) + 0.0
        reward += components["difficulty"]
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
