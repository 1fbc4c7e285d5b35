"""What a selector sees and says. Plain values: no tensors, no network.

A selector is asked once a step in which order problems would come from now on, and told at the end
of the step what came of those that did. Between the two it does not change. So the choice depends
on what was known at the start of the step and on the number of the draw, and not on how a step is
cut into rounds, on the number of processes, or on what was generated ahead and given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one draw."""

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
        """(rewards - mean) / deviation, 0 where they are all alike."""
        rewards = np.array(self.rewards, dtype=np.float64)
        if len(rewards) < 2 or rewards.std() == 0:
            return np.zeros(len(rewards))
        return np.asarray((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-6))


class Selector(Protocol):
    """Says which problem comes next; what it learns is for it to say.

    Attributes:
        measure: what it wants to know of the tokens of a draw's judged responses, found where they
            were drawn; None for nothing.
    """

    measure: Callable[[Sequence[Sequence[int]]], float] | None = None

    def order(self, first: int) -> Iterator[int]:
        """The places of the draws `first`, `first` + 1 and so on, without end.

        By what is known now. Changes nothing: asked again, it says the same.
        """
        ...

    def learn(self, seen: Sequence[Seen]) -> None:
        """Takes in a step's draws, in their order."""
        del seen

    def estimate(self, place: int) -> float | None:
        """The success that is expected of a problem, 0 to 1; None where nothing is."""
        del place
        return None

    def state_dict(self) -> dict[str, Any]:
        """What was learned, in plain containers."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up what `state_dict` told."""
        del state


@runtime_checkable
class Scorable(Selector, Protocol):
    """A selector that must be told of problems besides what the training draws of them.

    Attributes:
        samples: responses to each such problem.
    """

    samples: int

    @property
    def unscored(self) -> Sequence[int]:
        """Places that it must be told of before the next step; empty once it has been."""
        ...

    def score(self, seen: Sequence[Seen]) -> None:
        """Takes in one of each such problem.

        Raises:
            ConfigError: nothing was judged, and without it there is no choice.
        """
        ...
