"""Means over a few seeds, with intervals. Pure.

Student's t (Student 1908, Biometrika 6:1): the seeds are the sample. The interval covers other
seeds on the same data, not other data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.kit.runs.stats import Z95

# 97.5 % quantiles for 1 to 30 degrees of freedom.
_T975 = (
    *(12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157),
    *(2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922),
    *(2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831),
    *(2.048407, 2.045230, 2.042272),
)


@dataclass(frozen=True, slots=True)
class SeedMean:
    """A mean over seeds.

    Attributes:
        low, high: ends of the 95 % interval; None for a single value.
        n: how many values.
    """

    mean: float
    low: float | None
    high: float | None
    n: int


def t975(degrees: int) -> float:
    """The 97.5 % quantile of Student's t.

    Beyond 30 degrees of freedom by its expansion around the normal (Abramowitz and Stegun 26.7.5,
    three terms; error below 1e-5).

    Raises:
        ValueError: there are none.
    """
    if degrees < 1:
        raise ValueError("an interval needs at least two values")
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z = Z95
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def estimate(values: Sequence[float]) -> SeedMean | None:
    """The mean with its 95 % t interval; None without values."""
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(values) == 1:
        return SeedMean(mean, None, None, 1)
    half = t975(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return SeedMean(mean, mean - half, mean + half, len(values))


def difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> SeedMean | None:
    """The mean of ours less theirs, paired by seed, over the seeds that both have."""
    return estimate([ours[seed] - theirs[seed] for seed in ours if seed in theirs])
