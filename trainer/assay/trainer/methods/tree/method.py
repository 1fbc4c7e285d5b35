"""The hooks of trees of segments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from assay.trainer.algos import segments
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.hooks import Hooks
from assay.trainer.engines.engine import Sampler
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.tree.sampler import TreeSampler, budget, leaves_below
from assay.trainer.methods.tree.settings import TreeConfig
from assay.trainer.rollouts.types import Collected

COLUMN = "tree_advantages"


class Tree(Hooks):
    """Advantages of the segments of a tree (SPO, arXiv 2505.23564)."""

    def sampler(self, sampler: Sampler) -> Sampler:
        """See Hooks."""
        return TreeSampler(sampler, self.config.method.tree)

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks."""
        leaves = math.prod(self.config.method.tree.branches)
        lengths = [one.length for one in collected.judged]
        whole = [lengths[n : n + leaves] for n in range(0, len(lengths), leaves)]
        spent = [budget(one, self.config.method.tree) for one in whole]
        calls, tokens, repeated = (float(sum(one)) for one in zip(*spent, strict=True))
        return {
            "tree_calls": calls,
            "tree_tokens": tokens,
            "tree_repeated": repeated / len(lengths),
        }

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks: `tree_advantages` (B, T), NaN where unknown and then out of the loss."""
        del collected
        tree = self.config.method.tree
        leaves = math.prod(tree.branches)
        rows = [
            row
            for n in range(0, len(scored), leaves)
            for row in tree_tokens(scored[n : n + leaves], tree)
        ]
        device = batch["rewards"].device
        advantages_BT = filled([one for one, _ in rows], math.nan, torch.float32).to(device)
        trained_BT = filled([one for _, one in rows], False, torch.bool).to(device)
        return {
            **batch,
            COLUMN: advantages_BT,
            "loss_mask": batch["loss_mask"] & trained_BT & ~advantages_BT.isnan(),
        }


def tree_tokens(
    leaves: Sequence[Scored], config: TreeConfig
) -> list[tuple[list[float], list[bool]]]:
    """Of each leaf's tokens, the advantage of their segment, and whether they may train. Pure.

    A shared segment trains in the first response below it that trains.

    Raises:
        TrainingStoppedError: a response came without log-probabilities.
    """
    rewards = [math.nan if one.reward is None else one.reward for one in leaves]
    by_depth = segments.tree_advantages(segments.tree_values(rewards, config.branches))
    below, last = leaves_below(config.branches)[1:], len(config.branches) - 1
    rows = [_sure(one, config) for one in leaves]
    for depth, size in enumerate(below):
        start = depth * config.segment_tokens
        for number, advantage in enumerate(by_depth[depth]):
            shared = range(number * size, (number + 1) * size)
            learns = next((n for n in shared if leaves[n].trains), -1)
            for n in shared:
                advantages, trained = rows[n]
                end = len(advantages)
                if depth < last:
                    end = min(end, start + config.segment_tokens)
                places = range(start, end)
                advantages[start:end] = [advantage] * len(places)
                if n != learns:
                    trained[start:end] = [False] * len(places)
    return rows


def _sure(leaf: Scored, config: TreeConfig) -> tuple[list[float], list[bool]]:
    response = leaf.rollout.response
    if not config.mask_sure:
        return [math.nan] * len(response.ids), [True] * len(response.ids)
    if response.logprobs is None:
        raise TrainingStoppedError(
            "method.tree.mask_sure trains where the policy was not sure, and the generator gave no "
            "log-probabilities; set method.tree.mask_sure = false"
        )
    limit = math.log(config.threshold)
    return [math.nan] * len(response.ids), [logp < limit for logp in response.logprobs]


def tree_advantages(batch: Batch) -> torch.Tensor:
    """Of segments, (B, T), 0 outside of the loss."""
    return torch.where(batch["loss_mask"], batch[COLUMN], 0.0)
