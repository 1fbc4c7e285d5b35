"""Selective sample replay (SSR), the idea of VL-Rethinker: groups that taught something come again.

A group whose rewards are all alike has no advantage, and leaves its place in the batch to one of an
earlier step whose rewards are not, drawn with a chance in proportion to its mean |A| ^ alpha.

Differences:

1. Whole groups are replayed, not single samples, so that an advantage stays one within a group.
2. What is replayed was answered by an earlier policy: its ratio starts from the log-probabilities
   that its sampler told, as that of every stale group does.
3. |A| is that of the judged rewards, before any shaping. A fault has none.
4. What is in the step already, as its remainder is (RoRecomp), is not replayed beside itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.trainer.engines.types import Draw
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.rollouts.keepers import Keeper, number_of, size_of
from assay.trainer.rollouts.plain import group_from_plain, group_to_plain
from assay.trainer.rollouts.types import Group
from assay.trainer.selection.orders import dice


class Replay(Keeper):
    """The latest groups with an advantage.

    Args:
        config: how many, and how they are drawn.
        seed: of the drawing.
    """

    name = "replay"

    def __init__(self, config: ReplayConfig, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._groups: list[Group] = []

    def mix(self, groups: Sequence[Group], first: int) -> list[Group]:
        """A step's groups, those without advantage replaced as far as there is something to replay.

        Pure: see `keep`.

        Args:
            groups: of the step, in the order of their draws.
            first: the number of a draw that no other step has, which fixes what is drawn.
        """
        here = {number_of(group) for group in groups}
        others = [group for group in self._groups if number_of(group) not in here]
        if not others:
            return list(groups)
        weights = np.array([size_of(g) for g in others]) ** self._config.alpha
        silent = [n for n, group in enumerate(groups) if size_of(group) == 0]
        roll = dice(self._seed, first)
        count = min(len(silent), len(others))
        drawn = roll.choice(len(weights), count, replace=False, p=weights / weights.sum())
        mixed = list(groups)
        for place, which in zip(silent, drawn.tolist(), strict=False):
            mixed[place] = others[which]
        return mixed

    def metrics(self, replaced: int) -> dict[str, float]:
        """How many groups came again."""
        return {"replayed_groups": float(replaced)}

    def keep(self, groups: Sequence[Group]) -> None:
        """Takes in a step's own groups, each once; the oldest make room."""
        size = self._config.groups
        known = {number_of(group) for group in self._groups}
        new = [g for g in groups if size_of(g) > 0 and number_of(g) not in known]
        self._groups = [*self._groups, *new][-size:] if size else []

    def state_dict(self) -> list[dict[str, Any]]:
        """The groups, in plain containers."""
        return [group_to_plain(group) for group in self._groups]

    def load_state_dict(
        self, state: Sequence[Mapping[str, Any]], draw: Callable[[int], Draw]
    ) -> None:
        """Takes up what `state_dict` told."""
        self._groups = [group_from_plain(saved, draw) for saved in state]
