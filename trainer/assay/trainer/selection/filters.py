"""Judged responses that do not train: PROF (arXiv 2509.03403) and ReST-RL's spread of rewards.

What is left out is as if it had not been drawn: no token of it is in the loss, and its reward is in
no mean. Groups stay as large in the batch, so that every process computes equally much.

Differences:

1. PROF with `correct`: as many go as with `both`; the incorrect ones that go are the last drawn.
   Which they are in the paper was not at hand. [derivation]
2. A response without a judged step cannot be ranked, and is left out where PROF is on.
3. ReST-RL's deviation is the population's, as in numpy.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from assay.clients import Judgement
from assay.trainer.algos.selection import prof_filter
from assay.trainer.batch import Scored
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.types import Rollout
from assay.trainer.selection.settings import FilterConfig


def filtered(groups: Sequence[Sequence[Scored]], config: FilterConfig) -> list[Scored]:
    """The rollouts of groups, those that do not train without reward and outside of the loss.

    Raises:
        TrainingStoppedError: PROF is on, and no judgement holds a step.
    """
    if config.prof != "none":
        _check_steps(groups)
    found: list[Scored] = []
    for group in groups:
        left = {n for n, item in enumerate(group) if item.reward is not None}
        if config.prof != "none":
            left &= _prof(group, config)
        rewards = [group[n].reward or 0.0 for n in sorted(left)]
        if config.min_group_std and (
            len(rewards) < 2 or statistics.pstdev(rewards) < config.min_group_std
        ):
            left = set()
        found += [item if n in left else left_out(item) for n, item in enumerate(group)]
    return found


def left_out(item: Scored) -> Scored:
    """A rollout that does not train; a fault stays what it is."""
    return replace(item, reward=None, in_loss=False, token_rewards=None, ends=None)


def _prof(group: Sequence[Scored], config: FilterConfig) -> set[int]:
    """Places that PROF keeps; all of a group that is all right or all wrong, which says nothing."""
    ranked: list[tuple[int, bool, float]] = []
    for place, item in enumerate(group):
        judgement = _judgement(item)
        if judgement is not None and judgement.spans and item.reward is not None:
            mean = statistics.fmean(span.reward for span in judgement.spans)
            ranked.append((place, judgement.verdict == "correct", mean))
    keep = min(len(ranked), config.prof_keep or len(group) // 2)
    right = [yes for _, yes, _ in ranked]
    if keep == len(ranked) or all(right) or not any(right):
        return {place for place, _, _ in ranked}
    means = [mean for _, _, mean in ranked]
    if config.prof == "correct":  # the incorrect rank by their drawing
        means = [mean if yes else float(n) for n, (_, yes, mean) in enumerate(ranked)]
    kept, _ = prof_filter(right, means, keep)
    return {ranked[n][0] for n in kept}


def _judgement(item: Scored) -> Judgement | None:
    rollout = item.rollout
    return rollout.result.judgement if isinstance(rollout, Rollout) else None


def _check_steps(groups: Sequence[Sequence[Scored]]) -> None:
    judgements = [_judgement(item) for group in groups for item in group]
    told = [judgement for judgement in judgements if judgement is not None]
    if told and not any(judgement.spans for judgement in told):
        raise TrainingStoppedError(
            "algorithm.filter.prof ranks responses by their judged steps, and the verifier "
            f"{told[0].verifier!r} judges none; use one that does, such as prm, or set "
            'algorithm.filter.prof = "none"'
        )
