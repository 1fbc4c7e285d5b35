"""How far judges agree beyond chance: Cohen's kappa, Krippendorff's alpha. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Agreement of two judges on categories (Cohen 1960), (p_o - p_e) / (1 - p_e).

    None without items, or where both always say one and the same, which chance explains.
    """
    if not pairs:
        return None
    count = len(pairs)
    seen = sum(one == other for one, other in pairs) / count
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[category] * second[category] for category in first) / count**2
    return None if chance == 1 else (seen - chance) / (1 - chance)


Spread = Callable[[Sequence[float]], float]


def nominal(values: Sequence[float]) -> float:
    """Ordered pairs of values that differ: the values are categories."""
    return float(len(values) ** 2 - sum(times**2 for times in Counter(values).values()))


def interval(values: Sequence[float]) -> float:
    """The sum of squared differences over all ordered pairs: the values are numbers."""
    mean = math.fsum(values) / len(values)
    return 2 * len(values) * math.fsum((value - mean) ** 2 for value in values)


def krippendorff_alpha(
    units: Sequence[Sequence[float | None]], spread: Spread = nominal
) -> float | None:
    """Agreement of any number of judges, of whom some may be silent (Krippendorff 2011).

    1 - D_o / D_e, of the distances within units and of all values; None where no two values
    differ, or none are paired.

    Args:
        units: what each judge said of each item; None where it said nothing.
        spread: the distances of all ordered pairs of values, `nominal` or `interval`.
    """
    paired = [
        values
        for unit in units
        if len(values := [value for value in unit if value is not None]) > 1
    ]
    everything = [value for values in paired for value in values]
    overall = spread(everything) if everything else 0.0
    within = math.fsum(spread(values) / (len(values) - 1) for values in paired)
    return None if not overall else 1 - within * (len(everything) - 1) / overall
