"""Problems by their expected success: MoPPS (arXiv 2507.04632) and VADE.

Each problem's success probability has a Beta distribution, at first (1, 1). A step draws one number
a problem from it (Thompson sampling) and takes the best. Of s correct among k judged responses a
distribution becomes (l a + (1 - l) + s, l b + (1 - l) + k - s) with the decay l.

Differences:

1. k counts judged responses. MoPPS' code counts all, and where a group has one response it sets
   both numbers to 8, by a slip in the order of its operators.
2. MoPPS takes the batch from a pool of candidates; here the pool is all data unless `pool` is set,
   and a step that needs more than a pool continues with the next.
3. Of VADE only the abstract was at hand. Its priority, information gain, is p (1 - p) here, which
   ranks as MoPPS with the target 1/2; its two-scale decay is ours: at each step `fast` of a visited
   problem's evidence is kept, `slow` of all others'. [derivation]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assay.trainer.selection.declared import MoppsConfig, VadeConfig
from assay.trainer.selection.orders import Vector, dice, ranked
from assay.trainer.selection.types import Seen, Selector


class Beliefs:
    """A Beta distribution for each problem.

    Args:
        count: of problems.
        visited: share of a problem's evidence kept at a visit.
        others: share of all others' kept at a step.

    Attributes:
        correct: a - 1, the discounted count of correct responses.
        wrong: b - 1.
    """

    def __init__(self, count: int, *, visited: float, others: float = 1.0) -> None:
        self.correct = np.zeros(count)
        self.wrong = np.zeros(count)
        self._visited = visited
        self._others = others

    def drawn(self, roll: np.random.Generator) -> Vector:
        """One draw for each problem."""
        return np.asarray(roll.beta(self.correct + 1, self.wrong + 1))

    def learn(self, seen: Sequence[Seen]) -> None:
        """Learns a step's judged draws."""
        judged = [one for one in seen if one.rewards]
        visited = np.zeros(len(self.correct), dtype=bool)
        visited[[one.place for one in judged]] = True
        for counts in (self.correct, self.wrong):
            counts[~visited] *= self._others
        for one in judged:
            wrong = len(one.rewards) - one.correct
            for counts, more in ((self.correct, one.correct), (self.wrong, wrong)):
                counts[one.place] = self._visited * counts[one.place] + more


class ByBelief(Selector):
    """A Selector of the problems whose drawn success is nearest to a target."""

    def __init__(self, config: MoppsConfig | VadeConfig, count: int, seed: int) -> None:
        if isinstance(config, VadeConfig):
            self._rule, decay, others = MoppsConfig(), config.fast, config.slow
        else:
            self._rule, decay, others = config, config.decay, 1.0
        self.beliefs = Beliefs(count, visited=decay, others=others)
        self._seed = seed

    def order(self, first: int) -> Iterator[int]:
        """See Selector."""
        roll = dice(self._seed, first)
        return ranked(lambda _lap: self._distance(self.beliefs.drawn(roll)), self._rule.pool, roll)

    def learn(self, seen: Sequence[Seen]) -> None:
        """See Selector."""
        self.beliefs.learn(seen)

    def estimate(self, place: int) -> float | None:
        """The mean of its distribution."""
        correct, wrong = self.beliefs.correct[place], self.beliefs.wrong[place]
        return float((correct + 1) / (correct + wrong + 2))

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return {"correct": self.beliefs.correct.tolist(), "wrong": self.beliefs.wrong.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self.beliefs.correct = np.array(state["correct"])
        self.beliefs.wrong = np.array(state["wrong"])

    def _distance(self, chances: Vector) -> Vector:
        rule = self._rule
        if rule.rule == "nearest":
            return np.asarray((chances - rule.target) ** 2)
        outside = np.maximum(rule.low - chances, chances - rule.high)
        return np.asarray(np.maximum(outside, 0.0))
