"""The order of draws over several sources with weights. Pure.

Of every 1,000 draws each source has its share, in an order fixed by seed and block; within a source
its problems come pass after pass, as those of a single source do. A draw's number alone says what
it draws: a run that is resumed continues where it was.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from assay.kit.errors import ConfigError

BLOCK = 1000
_KEPT = 4


def apportion(seats: int, weights: Sequence[float]) -> list[int]:
    """Whole numbers that sum to `seats` in proportion to weights, by largest remainders."""
    exact = [seats * weight / sum(weights) for weight in weights]
    found = [int(part) for part in exact]
    order = sorted(range(len(exact)), key=lambda n: found[n] - exact[n])
    for place in order[: seats - sum(found)]:
        found[place] += 1
    return found


class Mixture:
    """Which problem each draw takes, where those of source 0 come first, then those of source 1.

    Args:
        sources: of each its number of problems and its weight.
        seed: of all orders.

    Raises:
        ConfigError: a weight is too small for one draw of 1,000.
    """

    def __init__(self, sources: Sequence[tuple[int, float]], seed: int) -> None:
        sizes = [size for size, _ in sources]
        self.weights = weights = tuple(weight for _, weight in sources)
        self._sizes = tuple(sizes)
        self._firsts = (0, *accumulate(sizes))
        self._seed = seed
        self._counts = apportion(BLOCK, weights)
        if not all(self._counts):
            raise ConfigError(
                f"data.mixture: the weight {min(weights):g} is too small beside the others; give "
                f"every source one draw of {BLOCK}"
            )
        self._block = lru_cache(maxsize=_KEPT)(self._drawn)
        self._pass = lru_cache(maxsize=_KEPT * len(sizes))(self._shuffled)

    def draw(self, number: int) -> tuple[int, int]:
        """The source of a draw, and how many of its draws came before."""
        block, rest = divmod(number, BLOCK)
        source, before = self._block(block)[rest]
        return source, block * self._counts[source] + before

    def place(self, number: int) -> int:
        """The place of a draw's problem among all."""
        source, before = self.draw(number)
        one_pass, rest = divmod(before, self._sizes[source])
        return self._firsts[source] + self._pass(source, one_pass)[rest]

    def _drawn(self, block: int) -> list[tuple[int, int]]:
        order = [source for source, count in enumerate(self._counts) for _ in range(count)]
        random.Random(f"{self._seed}-mixture-{block}").shuffle(order)  # noqa: S311  # no secret
        seen: Counter[int] = Counter()
        found = []
        for source in order:
            found.append((source, seen[source]))
            seen[source] += 1
        return found

    def _shuffled(self, source: int, one_pass: int) -> list[int]:
        order = list(range(self._sizes[source]))
        random.Random(f"{self._seed}-{source}-{one_pass}").shuffle(order)  # noqa: S311  # no secret
        return order
