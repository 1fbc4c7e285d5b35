"""Which responses of a group meet, where not all do: rounds as of a Swiss tournament. Pure.

Rounds 1 and 2 are a ring over the given order, which joins all, and are asked together. Each later
round pairs neighbours by strength (not by points) that have not met; of an odd number one sits out.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence

from assay.genrm.judges.strengths import ROUGH, Pair, strengths

Wins = Mapping[Pair, float]
MIN_ROUNDS = 2


def default_rounds(count: int) -> int:
    """ceil(log2(count)) + 1: what ranks the last of them well is one more than a cup would take."""
    return max(MIN_ROUNDS, math.ceil(math.log2(max(2, count))) + 1)


def most_comparisons(count: int, rounds: int) -> int:
    """The most pairs that `rounds` rounds compare; never more than all of them."""
    return min(rounds * (count // 2), count * (count - 1) // 2)


def swiss(count: int, rounds: int) -> Generator[list[Pair], Wins, Wins]:
    """Yields the pairs to compare next, is sent the chances of those that count, returns them all.

    Where the rounds would compare as many pairs as there are, all are yielded at once.
    """
    everyone = [(one, two) for one in range(count) for two in range(one + 1, count)]
    if most_comparisons(count, rounds) >= len(everyone):
        return (yield everyone)
    ring = [_pair(one, (one + 1) % count) for one in range(count - count % 2)]
    met = set(ring)
    wins = dict((yield ring))
    found = strengths(count, wins, enough=ROUGH)
    for _ in range(MIN_ROUNDS, rounds):
        order = sorted(range(count), key=lambda one: -found[one])
        pairs = neighbours(_present(order, met), met)
        met.update(pairs)
        wins.update((yield pairs))
        found = strengths(count, wins, found, ROUGH)
    return wins


def neighbours(order: Sequence[int], met: set[Pair]) -> list[Pair]:
    """Pairs of neighbours in the order that have not met; each is in at most one.

    All are paired where each has met fewer than half of the others: whoever is left over takes a
    pair apart, of which then at least three of the four crossings have not met.
    """
    left, pairs = list(order), []
    alone: list[int] = []
    while left:
        one = left.pop(0)
        two = next((other for other in left if _pair(one, other) not in met), None)
        if two is None:
            alone.append(one)
        else:
            left.remove(two)
            pairs.append((one, two))
    while len(alone) > 1:
        one, two = alone.pop(0), alone.pop(0)
        for place in reversed(range(len(pairs))):
            crossed = _crossed((one, two), pairs[place], met)
            if crossed:
                pairs[place : place + 1] = crossed
                break
    return [_pair(*pair) for pair in pairs]


def _crossed(pair: Pair, other: Pair, met: set[Pair]) -> list[Pair]:
    (one, two), (three, four) = pair, other
    for crossed in ([(one, three), (two, four)], [(one, four), (two, three)]):
        if not any(_pair(*new) in met for new in crossed):
            return crossed
    return []


def _present(order: Sequence[int], met: set[Pair]) -> list[int]:
    """The order without who sits out: the last of those that have been compared most."""
    if len(order) % 2 == 0:
        return list(order)
    compared = {one: sum(one in pair for pair in met) for one in order}
    most = max(compared.values())
    out = next(one for one in reversed(order) if compared[one] == most)
    return [one for one in order if one != out]


def _pair(one: int, two: int) -> Pair:
    return (one, two) if one < two else (two, one)
