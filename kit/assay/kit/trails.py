"""The items of one call for its trace: the slowest, and some that are faults.

A step of training has 10^5 items, and a span for each would cost more than many a verifier. A call
keeps its slowest items and its first faults, and the greatest times of all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

MAX_ITEMS = 8
Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """A segment of time that is over.

    Attributes:
        began_s: by the monotonic clock.
        facts: never what a caller wrote.
        reason: of the fault that it ended with; empty for none.
    """

    name: str
    began_s: float
    ended_s: float
    facts: Mapping[str, Fact] = field(default_factory=dict)
    reason: str = ""
    parts: tuple[Stretch, ...] = ()


def item_stretch(
    name: str,
    arrived_s: float,
    started_s: float,
    execution_s: float,
    facts: Mapping[str, Fact],
    *,
    reason: str = "",
    parts: tuple[Stretch, ...] = (),
) -> Stretch:
    """An item from its arrival to its outcome, as its wait and its execution.

    `started_s` is when it was settled, where it never began; `execution_s` is 0 there.
    """
    started_s = max(arrived_s, started_s)
    ended_s = started_s + max(0.0, execution_s)
    pieces = [Stretch("queue", arrived_s, started_s)]
    if execution_s > 0:
        pieces.append(Stretch("execution", started_s, ended_s, parts=parts))
    return Stretch(f"item {name}", arrived_s, ended_s, facts, reason, tuple(pieces))


class Trail:
    """Keeps the items of one call that deserve a span. Of one thread.

    Args:
        most: slowest items that are kept, and as many faults; 0 keeps none.
    """

    def __init__(self, most: int = MAX_ITEMS) -> None:
        self.items = self.faults = 0
        self.longest_wait_s = self.longest_execution_s = self.execution_s = 0.0
        self._most = most
        self._slowest: list[tuple[float, int, Stretch]] = []
        self._faulted: list[tuple[int, Stretch]] = []

    def add(
        self,
        arrived_s: float,
        started_s: float,
        execution_s: float,
        *,
        fault: bool,
        describe: Callable[[int], Stretch],
    ) -> None:
        """Notes an item that has its outcome; `describe` gets the number of a kept item."""
        number = self.items
        self.items += 1
        self.faults += fault
        wait_s = max(0.0, started_s - arrived_s)
        self.longest_wait_s = max(self.longest_wait_s, wait_s)
        self.longest_execution_s = max(self.longest_execution_s, execution_s)
        self.execution_s += execution_s
        took_s = wait_s + execution_s
        if fault and len(self._faulted) < self._most:
            self._faulted.append((number, describe(number)))
        elif len(self._slowest) < self._most:
            heapq.heappush(self._slowest, (took_s, -number, describe(number)))
        elif self._most and took_s > self._slowest[0][0]:
            heapq.heapreplace(self._slowest, (took_s, -number, describe(number)))

    def kept(self) -> list[Stretch]:
        """The kept items, in the order of their outcomes."""
        slow = [(-number, stretch) for _, number, stretch in self._slowest]
        return [stretch for _, stretch in sorted([*slow, *self._faulted], key=lambda pair: pair[0])]
