"""Notices that errors have become more frequent, whenever one looks. Pure.

A bet on each observation: against a rate of at most `bound`, the likelihood ratio of a higher rate
has a mean of at most 1. The wealth is a mixture over higher rates and over the time from which they
hold, so it stays a supermartingale from 1, and by Ville's inequality (1939) it ever reaches
1 / chance with at most that chance. The mixture over times is the e-detector of Shin, Ramdas and
Rinaldo (arXiv 2203.03532, section 2), with weights that sum to 1 for a chance over all time.
"""

from __future__ import annotations

import math

from assay.kit.runs.stats import clopper_pearson

_STEPS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""How far above the bound the rates lie that are betted on, of what there is up to 1."""
_EVERY = 20
"""Observations between the times from which a higher rate may hold."""
_RICH = 1e100


class RiseWatch:
    """Watches whether errors come more often than at reference.

    Args:
        errors: at reference.
        trials: at reference, at least 1; independent, as those that come are.
        chance: of ever alarming while nothing changes, above 0; half of it is spent on the bound.

    Attributes:
        bound: Clopper and Pearson's upper bound of the rate at reference.
    """

    def __init__(self, errors: int, trials: int, chance: float) -> None:
        self.bound = clopper_pearson(errors, trials, 1 - chance)[1]
        self._chance = chance / 2
        self._rates = [self.bound + step * (1 - self.bound) for step in _STEPS]
        self._wealth = [0.0 for _ in self._rates]
        self._seen = 0
        self.alarm = False

    def add(self, *, error: bool) -> None:
        """Takes one observation."""
        self._seen += 1
        if self.bound >= 1:
            return
        weight = _unspent(self._seen - 1) - _unspent(self._seen)  # mostly 0
        for place, rate in enumerate(self._rates):
            ratio = rate / self.bound if error else (1 - rate) / (1 - self.bound)
            self._wealth[place] = min((self._wealth[place] + weight) * ratio, _RICH)
        self.alarm = self.alarm or self.evidence >= 1

    @property
    def evidence(self) -> float:
        """The logarithm of the wealth, 1 where it alarms; below 0 there is nothing against it."""
        wealth = math.fsum(self._wealth) / len(self._wealth) + _unspent(self._seen)
        return math.log(wealth) / -math.log(self._chance)


def _unspent(seen: int) -> float:
    """The weight of times that are still to come."""
    return 1 / math.log(math.e + math.ceil(seen / _EVERY))
