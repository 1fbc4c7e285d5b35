"""From items to results: each item gets a ticket, each ticket becomes exactly one result.

A ticket is settled at once (a bad item, a cached judgement), or by an inline verifier in the
server's own process, or by a flight in the worker pool. `Desk` issues the tickets of a request, all
or none; whoever holds them waits and closes them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from assay.api.reward.v1 import reward_pb2
from assay.reward_server import border, convert
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import (
    Fault,
    Item,
    Judgement,
    Outcome,
    RemoteVerifier,
    Unjudgeable,
    Verifier,
)
from assay.reward_server.flights import Flight, Flights, JudgementCache, item_key
from assay.reward_server.registry import Registry
from assay.reward_server.workers.pool import Pool
from assay.reward_server.workers.queue import Done, Job, QueueFull
from assay.rpc import limits
from assay.rpc.errors import refuse
from assay.rpc.reasons import Reason

LATE = Fault("DEADLINE_EXCEEDED", "the call's deadline came before the item was judged")
_INLINE_SLICE_S = 0.02
_MIN_MARGIN_S = 0.05
_MAX_MARGIN_S = 0.5


@dataclass(eq=False, slots=True)
class Ticket:
    """One item on its way to its result.

    Attributes:
        item_id: the caller's id.
        arrived_s: when the request arrived, by the monotonic clock.
        result: set once, when the item is settled.
        verifier: the verifier, once known.
        item: the item, for an inline verifier.
        key: what equal items share; None where nothing may be shared.
        flight: the execution that it waits for; None when there is none (any more).
        shared: the flight was launched for another item.
    """

    item_id: str
    arrived_s: float
    result: reward_pb2.Result | None = None
    verifier: Verifier | None = None
    item: Item | None = None
    key: bytes | None = None
    flight: Flight | None = None
    shared: bool = False

    def settle(
        self,
        outcome: Outcome,
        *,
        started_s: float | None = None,
        execution_s: float = 0.0,
        from_cache: bool = False,
    ) -> None:
        """Sets the result.

        Args:
            outcome: judgement or fault.
            started_s: when execution began; now, if it never did.
            execution_s: how long it took.
            from_cache: the judgement was computed for another item.
        """
        spec = self.verifier.spec if self.verifier else None
        began_s = time.monotonic() if started_s is None else started_s
        self.result = convert.result_to_proto(
            self.item_id,
            outcome,
            spec,
            queue_s=began_s - self.arrived_s,
            execution_s=execution_s,
            from_cache=from_cache,
        )

    def land(self) -> None:
        """Settles the ticket with what its flight, which is done, has brought."""
        if self.flight is None:
            return
        done = self.flight.done.result()
        self.flight = None
        if self.shared and isinstance(done.outcome, Judgement):
            self.settle(done.outcome, from_cache=True)
        else:
            self.settle(done.outcome, started_s=done.started_s, execution_s=done.execution_s)


class Desk:
    """Issues tickets. Belongs to one event loop."""

    def __init__(self, registry: Registry, config: ScorerConfig, pool: Pool) -> None:
        self._registry = registry
        self._config = config
        self._pool = pool
        self._cache = JudgementCache(config.cache_entries)
        self._flights = Flights(pool, self._cache)
        self.unhealthy: dict[str, str] = {}

    def issue(self, messages: Sequence[reward_pb2.Item], arrived_s: float) -> list[Ticket]:
        """A ticket for each item, in order; executions in the pool are launched.

        Args:
            messages: the items of one request, or of one chunk of a stream.
            arrived_s: when they arrived, by the monotonic clock.

        Raises:
            CallError: QUEUE_FULL; nothing was launched.
        """
        lane = object()
        tickets: list[Ticket] = []
        launches: dict[int, Flight] = {}
        by_key: dict[tuple[bytes, float], Flight] = {}
        for message in messages:
            ticket = Ticket(message.id, arrived_s)
            tickets.append(ticket)
            try:
                size_bytes, timeout_s = self._admit(ticket, message)
            except Unjudgeable as trouble:
                ticket.settle(Fault(trouble.reason, trouble.message))
                continue
            if ticket.result is not None or ticket.flight is not None:
                continue
            if ticket.verifier is None or ticket.item is None:
                continue
            if ticket.verifier.spec.isolation != "process":
                continue
            flight_key = None if ticket.key is None else (ticket.key, timeout_s)
            flight = self._flight(flight_key, by_key)
            ticket.shared = flight is not None
            if flight is None:
                flight = self._new_flight(lane, ticket.verifier, ticket.item, timeout_s, size_bytes)
                flight.key = flight_key
                launches[id(flight)] = flight
                if flight_key is not None:
                    by_key[flight_key] = flight
            ticket.flight = flight
        self._launch(list(launches.values()))
        for ticket in tickets:
            if ticket.flight is not None:
                ticket.flight.waiters += 1
        return tickets

    def judge_inline(self, ticket: Ticket) -> bool:
        """Judges the item here if its verifier is an inline one; False if it is not."""
        verifier, item = ticket.verifier, ticket.item
        if ticket.result is not None or ticket.flight is not None or not verifier or not item:
            return False
        if verifier.spec.isolation != "inline":
            return False
        started_s = time.monotonic()
        cached = self._cached(ticket)
        if cached is not None:
            ticket.settle(cached, from_cache=True)
            return True
        outcome = border.judge(verifier, item)
        if ticket.key is not None and isinstance(outcome, Judgement):
            self._cache.put(ticket.key, outcome)
        ticket.settle(outcome, started_s=started_s, execution_s=time.monotonic() - started_s)
        return True

    def close(self, ticket: Ticket, fault: Fault | None = None) -> None:
        """Gives up what the ticket waits for; an execution that nobody else needs is ended.

        Args:
            ticket: any ticket; one that is settled stays as it is.
            fault: settles the ticket.
        """
        flight, ticket.flight = ticket.flight, None
        if flight is not None:
            self._flights.release(flight)
        if ticket.result is None and fault is not None:
            ticket.settle(fault)

    async def wait_for_room(self, messages: Sequence[reward_pb2.Item]) -> None:
        """Waits until the pool's queue can take so many items."""
        await self._pool.wait_to_fit(len(messages), sum(m.ByteSize() for m in messages))

    async def judge(self, verifier: Verifier, item: Item, timeout_s: float) -> Outcome:
        """Judges one item as a request would, past the cache: for self-tests."""
        if verifier.spec.isolation == "inline":
            return border.judge(verifier, item)
        if isinstance(verifier, RemoteVerifier):
            [answer] = await border.judge_all(verifier, [item], timeout_s)
            return answer.outcome
        flight = self._new_flight(object(), verifier, item, timeout_s, 0)
        self._flights.launch([flight])
        return (await flight.done).outcome

    def _admit(self, ticket: Ticket, message: reward_pb2.Item) -> tuple[int, float]:
        """Checks an item and finds its verifier; returns its bytes and its time-out in seconds."""
        size_bytes = message.ByteSize()
        if size_bytes > limits.MAX_ITEM_BYTES:
            raise Unjudgeable(
                "ITEM_TOO_LARGE",
                f"the item has {size_bytes} bytes, the limit is {limits.MAX_ITEM_BYTES}",
            )
        verifier = self._registry.resolve(message.verifier, message.task)
        spec = verifier.spec
        ticket.verifier = verifier
        if spec.name in self.unhealthy:
            raise Unjudgeable(
                "VERIFIER_UNHEALTHY", f"verifier {spec.name!r}: {self.unhealthy[spec.name]}"
            )
        timeout_s = convert.timeout_s(
            message, self._config.item_timeout_s, self._config.max_item_timeout_s
        )
        ticket.item = convert.item_from_proto(message, spec)
        if spec.deterministic and spec.cacheable:
            ticket.key = item_key(spec, ticket.item)
            cached = self._cached(ticket)
            if cached is not None:
                ticket.settle(cached, from_cache=True)
        return size_bytes, timeout_s

    def _cached(self, ticket: Ticket) -> Judgement | None:
        return None if ticket.key is None else self._cache.get(ticket.key)

    def _flight(
        self, key: tuple[bytes, float] | None, own: dict[tuple[bytes, float], Flight]
    ) -> Flight | None:
        """The execution of an equal item: of this request, or of another."""
        return None if key is None else own.get(key) or self._flights.find(key)

    def _new_flight(
        self, lane: object, verifier: Verifier, item: Item, timeout_s: float, size_bytes: int
    ) -> Flight:
        done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        return Flight(Job(lane, verifier.spec, item, timeout_s, size_bytes, done), None)

    def _launch(self, flights: list[Flight]) -> None:
        try:
            self._flights.launch(flights)
        except QueueFull:
            raise refuse(
                Reason.QUEUE_FULL,
                f"{self._pool.queued} items wait already; none of this request was taken",
                retry_after_s=self._pool.retry_after_s(),
            ) from None


def check_chunk(items: Sequence[reward_pb2.Item], seen: set[str], max_items: int) -> None:
    """Checks what makes a request as a whole acceptable.

    Args:
        items: its items.
        seen: ids that came before in the same stream; those of these items are added.
        max_items: most items of one request.

    Raises:
        CallError: EMPTY_BATCH, BATCH_TOO_LARGE, MISSING_ITEM_ID or DUPLICATE_ITEM_ID.
    """
    if not items:
        raise refuse(Reason.EMPTY_BATCH, "the request holds no items")
    if len(items) > max_items:
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the request holds {len(items)} items, the limit is {max_items}",
            max_items=str(max_items),
        )
    for index, item in enumerate(items):
        if not item.id or len(item.id.encode()) > limits.MAX_ITEM_ID_BYTES:
            what = "has no id" if not item.id else "has an id that is too long"
            raise refuse(
                Reason.MISSING_ITEM_ID,
                f"item {index} {what}; an id has 1 to {limits.MAX_ITEM_ID_BYTES} bytes",
            )
        if item.id in seen:
            raise refuse(Reason.DUPLICATE_ITEM_ID, f"two items have the id {item.id!r}")
        seen.add(item.id)


def answer_by_s(arrived_s: float, timeout_s: float) -> float:
    """When to answer, by the monotonic clock, for the answer to arrive in time."""
    margin_s = min(timeout_s / 2, _MAX_MARGIN_S, max(_MIN_MARGIN_S, timeout_s / 20))
    return arrived_s + max(0.0, timeout_s - margin_s)


async def judge_inline(desk: Desk, tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Judges the items of inline verifiers, and lets other calls have their turn in between."""
    slice_ends_s = time.monotonic() + _INLINE_SLICE_S
    for ticket in tickets:
        if desk.judge_inline(ticket) and (now_s := time.monotonic()) > slice_ends_s:
            await asyncio.sleep(0)
            if now_s > deadline_s:
                return
            slice_ends_s = now_s + _INLINE_SLICE_S


async def judge_remote(tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Has other services judge the items of remote verifiers, each service all of its items.

    Args:
        tickets: any; those that are settled, or of other verifiers, stay as they are.
        deadline_s: when to answer, by the monotonic clock.
    """
    waiting: dict[str, list[tuple[Ticket, Item]]] = {}
    verifiers: dict[str, RemoteVerifier] = {}
    for ticket in tickets:
        verifier, item = ticket.verifier, ticket.item
        if ticket.result is None and item is not None and isinstance(verifier, RemoteVerifier):
            verifiers[verifier.spec.name] = verifier
            waiting.setdefault(verifier.spec.name, []).append((ticket, item))

    async def ask(verifier: RemoteVerifier, pairs: list[tuple[Ticket, Item]]) -> None:
        began_s = time.monotonic()
        items = [item for _, item in pairs]
        answers = await border.judge_all(verifier, items, max(0.001, deadline_s - began_s))
        for (ticket, _), answer in zip(pairs, answers, strict=True):
            if ticket.result is None:
                ticket.settle(
                    answer.outcome,
                    started_s=began_s + answer.queue_s,
                    execution_s=answer.execution_s,
                )

    await asyncio.gather(*(ask(verifiers[name], pairs) for name, pairs in waiting.items()))


async def wait_for_flights(tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Waits until every flight is done or the deadline comes; settles those that are done."""
    waiting = {ticket.flight.done for ticket in tickets if ticket.flight is not None}
    if waiting:
        await asyncio.wait(waiting, timeout=max(0.0, deadline_s - time.monotonic()))
    for ticket in tickets:
        if ticket.flight is not None and ticket.flight.done.done():
            ticket.land()


def results_of(tickets: Sequence[Ticket]) -> list[reward_pb2.Result]:
    """The results of settled tickets, in order."""
    return [ticket.result for ticket in tickets if ticket.result is not None]
