"""Methods that change what is sampled (see functions.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.trainer.algos.segments import tree_advantages as tree_kernel
from assay.trainer.algos.segments import tree_values
from assay.trainer.algos.selection import exponential_weights
from assay.trainer.core.batch import Scored, group_advantages
from assay.trainer.methods.search.nodes import uct
from assay.trainer.methods.tree.method import COLUMN as TREE_COLUMN
from assay.trainer.methods.tree.settings import TreeConfig
from assay.trainer.settings.objective import AdvantageConfig
from golden.batches import batch_of, hooks, response
from golden.registry import golden


@golden(group_advantages, tree_values, tree_kernel)
def spo_tree_advantages(rewards: Sequence[float | None], branches: Sequence[int]) -> Any:
    """Segments of one token: a row has the advantage of each on its way to the leaf."""
    depth = len(branches)
    rows = [
        Scored(response((0,) * depth), None if reward is None else float(reward))
        for reward in rewards
    ]
    tree = TreeConfig(tuple(branches), 1, mask_sure=False)
    chosen = AdvantageConfig(estimator="tree", scale="none")
    on = hooks(len(rewards), tree=tree, advantage=chosen)
    shared = batch_of(rows, on)
    found = group_advantages(shared, chosen, len(rewards))
    return torch.where(shared["loss_mask"], found, shared[TREE_COLUMN]).nan_to_num(0.0)


@golden(exponential_weights)
def rest_exponential_weights(count: int, alpha: float) -> Any:
    return exponential_weights(count, alpha=alpha)


@golden(uct)
def rest_uct(value: float, visits: int, parent_visits: int, exploration: float, eps: float) -> Any:
    return uct(value, visits, parent_visits, exploration=exploration, eps=eps)
