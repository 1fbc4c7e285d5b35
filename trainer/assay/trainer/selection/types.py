"""What a selector gets and gives: plain values, no tensors, no network.

A selector changes only at the end of a step, when it learns the results. So the choice depends on
its state at the start and the draw's number, whatever the rounds, the number of processes, or draws
given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one draw."""

    place: int  # of the problem among all, from 0
    # of the judged responses; empty where none was judged, which teaches nothing but that the
    # problem was drawn
    rewards: tuple[float, ...] = ()
    correct: int = 0  # how many of those have the verdict "correct"
    measured: float = 0.0  # what the selector's `measure` found in their tokens

    @property
    def success(self) -> float | None:
        """The share of correct among judged; None without a judgement."""
        return self.correct / len(self.rewards) if self.rewards else None

    @property
    def advantages(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(rewards - mean) / deviation, 0 where they are equal."""
        rewards = np.array(self.rewards, dtype=np.float64)
        if len(rewards) < 2 or rewards.std() == 0:
            return np.zeros(len(rewards))
        return np.asarray((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-6))


class Selector(Protocol):
    """Chooses the next problem.

    Attributes:
        measure: computed from the tokens of a draw's judged responses, in their process; None for
            nothing.
    """

    measure: Callable[[Sequence[Sequence[int]]], float] | None = None

    def order(self, first: int) -> Iterator[int]:
        """The places of the draws `first`, `first` + 1 and so on, without end. Pure."""
        ...

    def learn(self, seen: Sequence[Seen]) -> None:
        """Learns a step's draws, in their order."""
        del seen

    def estimate(self, place: int) -> float | None:
        """A problem's expected success, 0 to 1; None where unknown."""
        del place
        return None

    def state_dict(self) -> dict[str, Any]:
        """In plain containers."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict`."""
        del state


@runtime_checkable
class Scorable(Selector, Protocol):
    """A selector that needs results of problems besides the training's draws.

    Attributes:
        samples: responses to each such problem.
    """

    samples: int

    @property
    def unscored(self) -> Sequence[int]:
        """Places to be scored before the next step; empty once they were."""
        ...

    def score(self, seen: Sequence[Seen]) -> None:
        """Learns the results of these problems.

        Raises:
            ConfigError: nothing was judged, so that there is no choice.
        """
        ...
