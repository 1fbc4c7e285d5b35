"""MMR1's variance-aware sampling (VAS, arXiv 2509.21268).

A part of the draws goes to problems with a chance in proportion to their score,

    outcome * p (1 - p) + diversity * d

where p is the share of correct responses and d says how much the responses differ; the rest goes to
every problem in turn.

Differences:

1. p and d are those of the latest group that the training drew of a problem. The paper answers all
   problems anew every so many steps. What was not judged yet counts as p = 1/2 and d = 1: it is
   looked at first. [derivation]
2. d is the number of different pairs of neighbouring tokens in the group's responses, divided by
   the number of pairs. [derivation]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from assay.trainer.selection.orders import Passes, Vector, dice, ranked
from assay.trainer.selection.settings import VasConfig
from assay.trainer.selection.types import Seen


def distinct_pairs(ids: Sequence[Sequence[int]]) -> float:
    """Different pairs of neighbouring tokens / pairs, over all responses; 0 without pairs."""
    pairs = [pair for response in ids for pair in pairwise(response)]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


class VarianceAware:
    """A Selector by the variance of success and the difference of responses."""

    def __init__(self, config: VasConfig, size: int, seed: int) -> None:
        self._config = config
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
        for one in seen:
            if one.success is not None:
                self._success[one.place] = one.success
                self._diversity[one.place] = distinct_pairs(one.ids)

    def estimate(self, place: int) -> float | None:
        """The success of its latest group."""
        known = float(self._success[place])
        return None if np.isnan(known) else known

    def state_dict(self) -> dict[str, Any]:
        """Success (-1 where unknown) and diversity of each, and how many even draws there were."""
        return {
            "even": self._even,
            "success": np.nan_to_num(self._success, nan=-1.0).tolist(),
            "diversity": self._diversity.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self._even = int(state["even"])
        success = np.array(state["success"])
        self._success = np.where(success < 0, np.nan, success)
        self._diversity = np.array(state["diversity"])
