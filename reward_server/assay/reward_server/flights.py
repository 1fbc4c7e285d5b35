"""Computed once: equal items share an execution in flight, and its judgement afterwards.

The samples of a group hold many duplicates. Only judgements of verifiers that call themselves
deterministic and cacheable are shared later; a fault never is. Items in flight are shared only with
the same time-out, so that nobody gets a time-out shorter than the one asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial

from assay.reward_server.domain import Item, Judgement, VerifierSpec
from assay.reward_server.workers import frames
from assay.reward_server.workers.pool import Pool
from assay.reward_server.workers.queue import Done, Job

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_MAX_CACHED_CHARS = 10_000
_MAX_CACHED_SPANS = 1_000


def item_key(spec: VerifierSpec, item: Item) -> bytes:
    """What makes two items equal: the verifier, its version, and all that it sees of them."""
    body = frames.item_to_json(item)
    if not spec.needs_group:
        del body["group_id"]
    text = _ENCODER.encode([spec.name, spec.version, body])
    return hashlib.blake2b(text.encode("ascii"), digest_size=32).digest()


class JudgementCache:
    """The judgements that were used last, up to a number of them."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._kept: OrderedDict[bytes, Judgement] = OrderedDict()

    def get(self, key: bytes) -> Judgement | None:
        """The judgement of an equal item, if it is kept."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: bytes, judgement: Judgement) -> None:
        """Keeps a judgement, unless it is unusually large."""
        answer = judgement.extracted_answer or ""
        if len(answer) > _MAX_CACHED_CHARS or len(judgement.spans) > _MAX_CACHED_SPANS:
            return
        self._kept[key] = judgement
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


@dataclass(eq=False, slots=True)
class Flight:
    """One execution, and how many items wait for it."""

    job: Job
    key: tuple[bytes, float] | None
    waiters: int = field(default=0)

    @property
    def done(self) -> asyncio.Future[Done]:
        """Gets the result."""
        return self.job.done


class Flights:
    """The executions under way."""

    def __init__(self, pool: Pool, cache: JudgementCache) -> None:
        self._pool = pool
        self._cache = cache
        self._open: dict[tuple[bytes, float], Flight] = {}

    def find(self, key: tuple[bytes, float]) -> Flight | None:
        """The execution of an equal item with the same time-out, if one is under way."""
        return self._open.get(key)

    def launch(self, flights: list[Flight]) -> None:
        """Starts new executions, all or none.

        Raises:
            QueueFull: they do not fit into the queue.
        """
        self._pool.submit([flight.job for flight in flights])
        for flight in flights:
            if flight.key is not None:
                self._open[flight.key] = flight
                flight.done.add_done_callback(partial(self._landed, flight))

    def release(self, flight: Flight) -> None:
        """One item waits no more; the last one to go ends the execution."""
        flight.waiters -= 1
        if flight.waiters <= 0 and not flight.done.done():
            self._forget(flight)
            self._pool.cancel(flight.job)

    def _landed(self, flight: Flight, _: object) -> None:
        self._forget(flight)
        if flight.key is None or flight.done.cancelled():
            return
        outcome = flight.done.result().outcome
        if isinstance(outcome, Judgement):
            self._cache.put(flight.key[0], outcome)

    def _forget(self, flight: Flight) -> None:
        if flight.key is not None and self._open.get(flight.key) is flight:
            del self._open[flight.key]
