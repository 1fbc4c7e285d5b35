"""The quick work of a large batch, spread over idle workers while this process does its own share.

This process runs items from the front. Where so much is left that it pays, it hands parcels of the
last ones to workers that are idle at that moment, one frame each, and goes on from the front: so
nothing waits in a queue, and nobody has to guess how long an item takes. What a worker leaves open
and every item of a lost parcel (its worker died, or ran past the parcel's time) take the road of a
single item.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from assay.kit.batch.items import P, PendingItem, PoolJob
from assay.kit.pool.jobs import Done

P_contra = TypeVar("P_contra", bound=PendingItem, contravariant=True)

_SMOOTHING = 0.1
_FIRST_GUESS_S = 10e-6
_PAYS = 5.0  # times what it costs to hand an item over
_LEAST_S, _MOST_S = 1e-3, 10e-3  # work of a parcel
_MOST_ITEMS = 192  # an answer of the largest judgements stays within a frame
_MOST_BYTES = 160 * 2**10  # what a socket takes at once


class Parcels(Protocol[P_contra]):
    """How workers do a service's quick work."""

    @property
    def idle(self) -> int:
        """Workers that would begin a parcel at once."""

    def sendable(self, item: P_contra) -> bool:
        """Whether a worker may do the quick work of an open item; may settle it from the cache."""

    def send(self, items: Sequence[P_contra]) -> PoolJob:
        """Hands a parcel to an idle worker."""

    def land(self, items: Sequence[P_contra], done: Done[Any]) -> None:
        """Settles the open items of a parcel, as far as its result goes."""

    def drop(self, job: PoolJob) -> None:
        """Gives up a parcel that nobody waits for."""


class Spreading(Generic[P]):
    """What the batches of one dispatcher share. Belongs to one event loop.

    Args:
        most: parcels at a time; 0 for none.

    Attributes:
        sent: items that were handed over so far.
        out: parcels with workers.
        flights: the parcels' futures by the keys of their items, which equal items wait for.
    """

    def __init__(self, parcels: Parcels[P], most: int) -> None:
        self.parcels = parcels
        self.sent = 0
        self.out = 0
        self.flights: dict[Hashable, asyncio.Future[Done[Any]]] = {}
        self._most = most
        self._handing_s = _FIRST_GUESS_S  # what this process pays for an item it hands over

    @property
    def room(self) -> int:
        """Parcels that may go out now."""
        return min(self._most - self.out, self.parcels.idle) if self.out < self._most else 0

    def pays(self, item_s: float, left: int) -> bool:
        """Whether to hand over items that take so long here, of which so many are left."""
        return item_s > _PAYS * self._handing_s and item_s * left > _LEAST_S

    def wrote(self, items: int, took_s: float) -> None:
        """Notes what it cost to write a parcel; to read its answer costs about as much."""
        self._handing_s += _SMOOTHING * (2 * took_s / items - self._handing_s)


class SpreadBatch(Generic[P]):
    """One batch: `todo`, whose last items go to workers, and its parcels."""

    def __init__(self, spreading: Spreading[P], todo: list[P]) -> None:
        self._spreading = spreading
        self._todo = todo
        self._jobs: dict[PoolJob, None] = {}
        self._twins: list[P] = []
        self._awaited: set[asyncio.Future[Done[Any]]] = set()

    @property
    def out(self) -> int:
        """Parcels of the batch that workers have."""
        return len(self._jobs)

    def holds(self, item: P) -> bool:
        """Whether an open item is settled meanwhile, or waits for an equal one in a parcel."""
        spreading = self._spreading
        if not spreading.flights or not spreading.parcels.sendable(item):
            return False
        if item.outcome is None and item.key in spreading.flights:
            self._twins.append(item)
            self._awaited.add(spreading.flights[item.key])
            return True
        return item.outcome is not None

    def hand_over(self, begin: int, item_s: float) -> None:
        """Hands parcels to workers, as far as it pays.

        Args:
            begin: index in `todo` from which items are left.
            item_s: what an item takes here.
        """
        spreading = self._spreading
        while spreading.pays(item_s, left := len(self._todo) - begin):
            room = spreading.room
            if not room:
                return
            work_s = min(_MOST_S, max(_LEAST_S, item_s * left / (room + 1)))
            parcel = self._cut(begin, min(_MOST_ITEMS, int(work_s / item_s) + 1))
            if not parcel:
                return
            self._send(parcel)

    async def landed(self, deadline_s: float) -> list[P]:
        """Waits for the parcels until the deadline; returns equal items, which are still open."""
        waiting = {*self._awaited, *(job.done for job in self._jobs)}
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, deadline_s - time.monotonic()))
        return self._twins

    def close(self) -> None:
        """Gives up the parcels that have not landed."""
        for job in list(self._jobs):
            self._spreading.parcels.drop(job)

    def _cut(self, begin: int, most: int) -> list[P]:
        """Takes the last items that may go; the others stay."""
        todo, spreading = self._todo, self._spreading
        parcel: list[P] = []
        stays: list[P] = []
        own: set[Hashable] = set()
        size_bytes = 0
        while len(todo) > begin and len(parcel) < most and size_bytes < _MOST_BYTES:
            item = todo.pop()
            if not spreading.parcels.sendable(item) or item.key in own:
                stays.append(item)
            elif not self.holds(item) and item.outcome is None:
                parcel.append(item)
                size_bytes += item.size_bytes
                if item.key is not None:
                    own.add(item.key)
        todo.extend(reversed(stays))
        return parcel

    def _send(self, parcel: list[P]) -> None:
        spreading = self._spreading
        began_s = time.thread_time()
        job = spreading.parcels.send(parcel)
        spreading.wrote(len(parcel), time.thread_time() - began_s)
        spreading.sent += len(parcel)
        spreading.out += 1
        self._jobs[job] = None
        for item in parcel:
            if item.key is not None:
                spreading.flights[item.key] = job.done
        job.done.add_done_callback(partial(self._land, job, parcel))

    def _land(self, job: PoolJob, parcel: list[P], done: asyncio.Future[Done[Any]]) -> None:
        spreading = self._spreading
        spreading.out -= 1
        self._jobs.pop(job, None)
        for item in parcel:
            if item.key is not None and spreading.flights.get(item.key) is done:
                del spreading.flights[item.key]
        if not done.cancelled():
            spreading.parcels.land(parcel, done.result())
