"""Groups of earlier steps that return: the hooks that a collector calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.trainer.rollouts.types import KnownGroup, Place
from assay.trainer.selection.types import Seen

Plain = Callable[[Sequence[KnownGroup]], list[dict[str, Any]]]
Read = Callable[[Sequence[Mapping[str, Any]]], list[KnownGroup]]


class Keeper:
    """Keeps groups; by default each hook does nothing.

    Attributes:
        name: of its part of a checkpoint.
    """

    name = ""

    def due(self) -> list[KnownGroup]:
        """Groups that open the next step in place of draws. Changes nothing."""
        return []

    def mix(self, groups: Sequence[KnownGroup], first: int) -> list[KnownGroup]:
        """A step's groups in the order of their draws, some replaced. Changes nothing.

        `first` is the number of a draw of this step alone, to seed random choices.
        """
        del first
        return list(groups)

    def left_out(self, groups: Sequence[KnownGroup]) -> frozenset[Place]:
        """Rollouts that do not train in a step, while their rewards count for their group."""
        del groups
        return frozenset()

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Stores a step's groups, as they were before `mix`."""

    def metrics(self, replaced: int) -> dict[str, float]:
        """Numbers of a step, before `keep`, where `mix` replaced so many groups. Pure."""
        del replaced
        return {}

    def state_dict(self, plain: Plain) -> Any:
        """The kept groups by `plain`, which gives them to the first process alone."""
        del plain
        return None

    def load_state_dict(self, state: Any, read: Read) -> None:
        """Continues from a `state_dict` of the same settings; `read` inverts `plain`."""


def number_of(group: KnownGroup) -> int:
    """The number of its draw."""
    return group[0].request.draw.number


def size_of(group: KnownGroup) -> float:
    """Mean |advantage| of the judged responses; 0 where their rewards are equal."""
    judgements = [r.result.judgement for r in group]
    rewards = tuple(judgement.reward for judgement in judgements if judgement is not None)
    return float(np.abs(Seen(0, rewards).advantages).mean()) if rewards else 0.0
