"""Orders of places, fixed by a seed and a draw's number."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

_KEPT_PASSES = 4
Vector = np.ndarray[Any, np.dtype[np.float64]]


class Passes:
    """Pass after pass over some places, at least one, each in its own order."""

    def __init__(self, members: Sequence[int], seed: int | str) -> None:
        self._members = tuple(members)
        self._seed = seed
        self._pass = lru_cache(maxsize=_KEPT_PASSES)(self._shuffled)

    def __len__(self) -> int:
        return len(self._members)

    def place(self, number: int) -> int:
        """The number-th place, from 0."""
        one_pass, rest = divmod(number, len(self._members))
        return self._pass(one_pass)[rest]

    def _shuffled(self, one_pass: int) -> list[int]:
        order = list(self._members)
        random.Random(f"{self._seed}-{one_pass}").shuffle(order)  # noqa: S311  # no secret
        return order


def dice(seed: int, first: int) -> np.random.Generator:
    """Random numbers of the step that begins with draw `first`; the same on every machine."""
    key = np.array([seed % 2**64, 0x5E1EC7], dtype=np.uint64)
    counter = np.array([0, 0, 0, first], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def ranked(numbers: Callable[[int], Vector], pool: int, roll: np.random.Generator) -> Iterator[int]:
    """Places by a score, the lowest first, without end.

    Args:
        numbers: the scores of all places, given how often all of them have come.
        pool: so many at random are ranked among themselves, then the next; 0 for all at once.
        roll: shuffles the places first, which breaks ties.
    """
    for lap in count():
        scores = numbers(lap)
        mixed = roll.permutation(len(scores))
        for start in range(0, len(mixed), pool or len(mixed)):
            candidates = mixed[start : start + (pool or len(mixed))]
            yield from candidates[np.argsort(scores[candidates], kind="stable")].tolist()
