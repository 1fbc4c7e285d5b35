"""How many calls a client has in flight: `Window` decides, `Gate` lets them through.

Additive increase and multiplicative decrease bring clients that know nothing of one another to
equal shares of a server (Chiu and Jain 1989).

    the server refuses a call and states when to retry
    (RESOURCE_EXHAUSTED with RetryInfo), or does not
    answer before the deadline                          the window is halved
    `WAITING` or more of our calls wait there           it shrinks by a fifth
    fewer wait, and half of the window or more was used it grows by one a round; until the first
                                                        decrease by one a call (slow start)

Little's law gives how many of our calls wait: window * (mean wait of an item / duration of its
call). TCP Vegas (Brakmo and Peterson 1995) and Netflix's concurrency-limits keep the same number
between two bounds. Differences from both:

1. The wait is the server's own measurement (`timings.queue`); they take the latency beyond the
least one seen. No baseline drifts, and a slow item is no queue.
2. One threshold, and a decrease by a factor: otherwise clients would keep unequal windows.
3. At most one decrease a round: a call that left before the last decrease is no new evidence
(NewReno, RFC 6582). A window that was not used does not grow (RFC 7661).

The window is at least 1, so every client makes progress. The unit is the call; for shares by items,
give clients tokens of their own.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

START, MOST = 8, 64
WAITING = 2.0
_AFTER_REFUSAL, _AFTER_WAIT = 0.5, 0.8


class Window:
    """The number of calls that may be in flight. Pure, without clock or loop.

    It is `fixed`, or else adapts from `START`, within 1 and `most`.
    """

    def __init__(self, fixed: int | None = None, *, most: int = MOST) -> None:
        self._adapts = fixed is None
        self._most = most
        self._size = float(min(START, most) if fixed is None else fixed)
        self._begun = 0
        self._cut = 0
        self._slow_start = True

    @property
    def size(self) -> int:
        """How many calls may be in flight, at least 1."""
        return int(self._size)

    def begin(self) -> int:
        """Counts a call that leaves; returns its number."""
        self._begun += 1
        return self._begun

    def answered(self, number: int, waited: float, in_flight: int) -> None:
        """A call was answered.

        `waited` is the share of its duration that its items waited at the server, in [0, 1];
        `in_flight` counts the calls before this answer, itself included.
        """
        if not self._adapts or number <= self._cut:
            return
        if self._size * waited >= WAITING:
            self._shrink(_AFTER_WAIT)
        elif in_flight * 2 > self._size:
            step = 1.0 if self._slow_start else 1.0 / self._size
            self._size = min(self._size + step, float(self._most))

    def refused(self, number: int) -> None:
        """The server had no room for a call, or no answer before its deadline."""
        if self._adapts and number > self._cut:
            self._shrink(_AFTER_REFUSAL)

    def _shrink(self, factor: float) -> None:
        self._size = max(1.0, self._size * factor)
        self._slow_start = False
        self._cut = self._begun


class Gate:
    """Lets calls through, the oldest first, at most as many at once as the window allows.

    A call that is tried again keeps its place in the line. Belongs to one event loop.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.in_flight = 0
        self._places = itertools.count()
        self._line: list[tuple[int, asyncio.Future[None]]] = []

    def place(self) -> int:
        """A place at the end of the line."""
        return next(self._places)

    @asynccontextmanager
    async def pass_through(self, place: int) -> AsyncIterator[int]:
        """Waits for room; within the block the call is in flight. Gives its number."""
        if self._line or self.in_flight >= self.window.size:
            await self._wait(place)
        else:
            self.in_flight += 1
        try:
            yield self.window.begin()
        finally:
            self.in_flight -= 1
            self._admit()

    async def _wait(self, place: int) -> None:
        admitted = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (place, admitted))
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._line and self.in_flight < self.window.size:
            _, admitted = heapq.heappop(self._line)
            if not admitted.done():
                self.in_flight += 1
                admitted.set_result(None)
