"""Groups of earlier steps that come into this one: what a collector asks of whoever keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.trainer.rollouts.types import KnownGroup, Place
from assay.trainer.selection.types import Seen

Plain = Callable[[Sequence[KnownGroup]], list[dict[str, Any]]]
Read = Callable[[Sequence[Mapping[str, Any]]], list[KnownGroup]]


class Keeper:
    """Keeps groups; each hook does nothing unless a keeper says otherwise.

    Attributes:
        name: of its part of a checkpoint.
    """

    name = ""

    def due(self) -> list[KnownGroup]:
        """Groups that open the next step, in place of draws. Changes nothing."""
        return []

    def mix(self, groups: Sequence[KnownGroup], first: int) -> list[KnownGroup]:
        """A step's groups, some replaced. Changes nothing.

        Args:
            groups: of the step, in the order of their draws.
            first: the number of a draw that no other step has, which fixes what is drawn at random.
        """
        del first
        return list(groups)

    def left_out(self, groups: Sequence[KnownGroup]) -> frozenset[Place]:
        """Rollouts of a step that do not train in it, while their rewards count for their group."""
        del groups
        return frozenset()

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Takes in a step's groups, as they were before `mix`."""

    def metrics(self, replaced: int) -> dict[str, float]:
        """Numbers of a step, before its groups are kept. Changes nothing.

        Args:
            replaced: groups that `mix` replaced.
        """
        del replaced
        return {}

    def state_dict(self, plain: Plain) -> Any:
        """What is kept, in plain containers.

        Args:
            plain: makes them of groups; every process calls it, and the first is given them.
        """
        del plain
        return None

    def load_state_dict(self, state: Any, read: Read) -> None:
        """Takes up what `state_dict` told.

        Args:
            state: of a keeper with the same settings.
            read: makes groups of what `plain` made of them.
        """


def number_of(group: KnownGroup) -> int:
    """The number of its draw, which names it."""
    return group[0].request.draw.number


def size_of(group: KnownGroup) -> float:
    """Mean |advantage| of the judged responses; 0 where their rewards are all alike."""
    judgements = [r.result.judgement for r in group]
    rewards = tuple(judgement.reward for judgement in judgements if judgement is not None)
    return float(np.abs(Seen(0, rewards).advantages).mean()) if rewards else 0.0
