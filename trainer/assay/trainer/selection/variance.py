"""MMR1's variance-aware sampling (VAS, arXiv 2509.21268).

A share of the draws goes to problems with a probability proportional to their score,

    outcome * p (1 - p) + diversity * d

where p is the share of correct responses and d their diversity; the rest goes to every problem in
turn.

Differences:

1. All problems are answered before the first step and every `refresh_every` steps, as in the paper;
   p and d stand until then. A problem without a judgement keeps its values, at first p = 1/2 and d
   = 1. [derivation] With `refresh_every` = 0, which is ours, they come from a problem's latest
   training group.
2. d is the number of different pairs of neighbouring tokens in the group's responses, divided by
   the number of pairs. [derivation]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from assay.trainer.selection.declared import VasConfig
from assay.trainer.selection.orders import Passes, Vector, dice, ranked
from assay.trainer.selection.types import Seen, Selector


def distinct_pairs(ids: Sequence[Sequence[int]]) -> float:
    """Different pairs of neighbouring tokens / pairs, over all responses; 0 without pairs."""
    pairs = [pair for response in ids for pair in pairwise(response)]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


class VarianceAware(Selector):
    """A Selector by the variance of success and the diversity of responses; Scorable."""

    measure = staticmethod(distinct_pairs)

    def __init__(self, config: VasConfig, size: int, seed: int) -> None:
        self.samples = config.samples
        self._config = config
        self._due_in = 0
        self._seed = seed
        self._passes = Passes(range(size), seed)
        self._even = 0
        self._success = np.full(size, np.nan)
        self._diversity = np.ones(size)

    def scores(self) -> Vector:
        """Of each problem; above 0."""
        p = np.where(np.isnan(self._success), 0.5, self._success)
        config = self._config
        return np.asarray(config.outcome * p * (1 - p) + config.diversity * self._diversity + 1e-12)

    def order(self, first: int) -> Iterator[int]:
        """See Selector: of the first n draws, floor(share * n) go by the score."""
        roll = dice(self._seed, first)
        # the least of exponential times with these rates is drawn first with the rates' chances
        by_score = ranked(
            lambda _lap: np.asarray(roll.exponential(size=len(self._diversity)) / self.scores()),
            0,
            roll,
        )
        even, share = self._even, self._config.share
        for n in count():
            if int((n + 1) * share + 1e-9) > int(n * share + 1e-9):
                yield next(by_score)
            else:
                yield self._passes.place(even)
                even += 1

    def learn(self, seen: Sequence[Seen]) -> None:
        """See Selector."""
        weighed = int(len(seen) * self._config.share + 1e-9)
        self._even += len(seen) - weighed
        if self._config.refresh_every:
            self._due_in = max(0, self._due_in - 1)
        else:
            self._take(seen)

    @property
    def unscored(self) -> Sequence[int]:
        """See Scorable: all of them, when a refresh is due."""
        refreshes = self._config.refresh_every and not self._due_in
        return range(len(self._success)) if refreshes else ()

    def score(self, seen: Sequence[Seen]) -> None:
        """See Scorable; where nothing is judged, the estimates stay."""
        self._take(seen)
        self._due_in = self._config.refresh_every

    def _take(self, seen: Sequence[Seen]) -> None:
        for one in seen:
            if one.success is not None:
                self._success[one.place] = one.success
                self._diversity[one.place] = one.measured

    def estimate(self, place: int) -> float | None:
        """The success of its latest answers."""
        known = float(self._success[place])
        return None if np.isnan(known) else known

    def state_dict(self) -> dict[str, Any]:
        """Success (-1 where unknown) and diversity of each, even draws, steps to the refresh."""
        return {
            "due_in": self._due_in,
            "even": self._even,
            "success": np.nan_to_num(self._success, nan=-1.0).tolist(),
            "diversity": self._diversity.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self._due_in, self._even = int(state["due_in"]), int(state["even"])
        success = np.array(state["success"])
        self._success = np.where(success < 0, np.nan, success)
        self._diversity = np.array(state["diversity"])
