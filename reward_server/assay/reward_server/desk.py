"""The desk: takes items in, finds out who judges them, and launches what workers must do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from assay.api.reward.v1 import reward_pb2
from assay.reward_server import border, convert
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import CompositeVerifier, Fault, Item, Judgement, Unjudgeable
from assay.reward_server.flights import Flight, Flights, JudgementCache, item_key
from assay.reward_server.registry import Registry
from assay.reward_server.tickets import Ticket
from assay.reward_server.workers.pool import Pool
from assay.reward_server.workers.queue import Done, Job
from assay.rpc import limits


class Desk:
    """Issues tickets and launches their executions. Belongs to one event loop.

    Attributes:
        unhealthy: verifiers that failed their self-test, by name, with what is wrong.
    """

    def __init__(self, registry: Registry, config: ScorerConfig, pool: Pool) -> None:
        self.unhealthy: dict[str, str] = {}
        self._registry = registry
        self._config = config
        self._pool = pool
        self._cache = JudgementCache(config.cache_entries)
        self._flights = Flights(pool, self._cache)

    def issue(self, messages: Sequence[reward_pb2.Item], arrived_s: float) -> list[Ticket]:
        """A ticket for each item, in order; a bad item's is settled. Nothing is launched.

        Args:
            messages: the items of one request, or of one chunk of a stream.
            arrived_s: when they arrived, by the monotonic clock.
        """
        tickets: list[Ticket] = []
        for message in messages:
            ticket = Ticket(message.id, arrived_s)
            tickets.append(ticket)
            try:
                self._admit(ticket, message)
            except Unjudgeable as trouble:
                ticket.settle(Fault(trouble.reason, trouble.message))
                ticket.refused = message
        return tickets

    def issue_for(self, name: str, item: Item, timeout_s: float) -> Ticket:
        """A ticket for an item of our own making: an example, or a part of a composite.

        Args:
            name: the verifier.
            item: its parameters are complete.
            timeout_s: limit of its execution.
        """
        ticket = Ticket("", time.monotonic(), item=item, timeout_s=timeout_s)
        ticket.size_bytes = len(item.candidate.text or "")
        ticket.verifier = self._registry.get(name)
        if ticket.verifier is None:
            ticket.settle(Fault("UNKNOWN_VERIFIER", f"verifier {name!r} is not served here"))
        else:
            self.check_health(ticket)
        return ticket

    def check_health(self, ticket: Ticket) -> None:
        """Settles a ticket whose verifier failed its self-test."""
        name = ticket.verifier.spec.name if ticket.verifier else ""
        if ticket.outcome is None and name in self.unhealthy:
            text = f"verifier {name!r}: {self.unhealthy[name]}"
            ticket.settle(Fault("VERIFIER_UNHEALTHY", text))

    def judge_here(self, ticket: Ticket) -> bool:
        """Judges an item in this process, if its verifier does; False if nothing was to be done."""
        verifier, item = ticket.verifier, ticket.item
        if ticket.outcome is not None or verifier is None or item is None:
            return False
        spec = verifier.spec
        if isinstance(verifier, CompositeVerifier) or spec.isolation == "remote":
            return False
        started_s = time.monotonic()
        if spec.isolation == "process":
            glanced = border.glance(verifier, item)
            if glanced is None:
                return False
            ticket.settle(glanced, started_s=started_s, execution_s=time.monotonic() - started_s)
            return True
        cached = self._cached(ticket)
        if cached is not None:
            ticket.settle(cached, from_cache=True)
            return True
        outcome = border.judge(verifier, item)
        if ticket.key is not None and isinstance(outcome, Judgement):
            self._cache.put(ticket.key, outcome)
        ticket.settle(outcome, started_s=started_s, execution_s=time.monotonic() - started_s)
        return True

    def launch(self, tickets: Sequence[Ticket], lane: object) -> None:
        """Has workers judge what needs one: all of the tickets, or none of them.

        Args:
            tickets: any; those that are settled, or of verifiers outside the pool, stay as they
                are.
            lane: the call that they came with.

        Raises:
            QueueFull: they do not fit into the queue; nothing was launched.
        """
        found: list[tuple[Ticket, Flight, bool]] = []
        own: dict[tuple[bytes, float], Flight] = {}
        fresh: list[Flight] = []
        for ticket in tickets:
            if not _needs_worker(ticket):
                continue
            cached = self._cached(ticket)
            if cached is not None:
                ticket.settle(cached, from_cache=True)
                continue
            key = None if ticket.key is None else (ticket.key, ticket.timeout_s)
            flight = None if key is None else own.get(key) or self._flights.find(key)
            found.append(
                (ticket, flight or self._new_flight(ticket, lane, key), flight is not None)
            )
            if flight is None:
                fresh.append(found[-1][1])
                if key is not None:
                    own[key] = fresh[-1]
        self._flights.launch(fresh)
        for ticket, flight, shared in found:
            ticket.flight, ticket.shared = flight, shared
            flight.waiters += 1

    def close(self, ticket: Ticket, fault: Fault | None = None) -> None:
        """Gives up what the ticket waits for; an execution that nobody else needs is ended.

        Args:
            ticket: any ticket; one that is settled stays as it is.
            fault: settles the ticket.
        """
        flight, ticket.flight = ticket.flight, None
        if flight is not None:
            self._flights.release(flight)
        if ticket.outcome is None and fault is not None:
            ticket.settle(fault)

    async def wait_for_room(self, tickets: Sequence[Ticket]) -> None:
        """Waits until the pool's queue can take what needs a worker."""
        waiting = [ticket.size_bytes for ticket in tickets if _needs_worker(ticket)]
        await self._pool.wait_to_fit(len(waiting), sum(waiting))

    def _admit(self, ticket: Ticket, message: reward_pb2.Item) -> None:
        """Checks an item and finds its verifier."""
        ticket.size_bytes = size_bytes = message.ByteSize()
        if size_bytes > limits.MAX_ITEM_BYTES:
            raise Unjudgeable(
                "ITEM_TOO_LARGE",
                f"the item has {size_bytes} bytes, the limit is {limits.MAX_ITEM_BYTES}",
            )
        ticket.verifier = verifier = self._registry.resolve(message.verifier, message.task)
        ticket.timeout_s = convert.timeout_s(
            message, self._config.item_timeout_s, self._config.max_item_timeout_s
        )
        ticket.item = convert.item_from_proto(message, verifier.spec)
        self.check_health(ticket)

    def _cached(self, ticket: Ticket) -> Judgement | None:
        """What an equal item got; sets the ticket's key."""
        verifier, item = ticket.verifier, ticket.item
        if ticket.key is None and verifier is not None and item is not None:
            spec = verifier.spec
            ticket.key = item_key(spec, item) if spec.deterministic and spec.cacheable else None
        return None if ticket.key is None else self._cache.get(ticket.key)

    @staticmethod
    def _new_flight(ticket: Ticket, lane: object, key: tuple[bytes, float] | None) -> Flight:
        verifier, item = ticket.verifier, ticket.item
        if verifier is None or item is None:
            raise ValueError("the ticket has no item yet")
        done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        job = Job(lane, verifier.spec, item, ticket.timeout_s, ticket.size_bytes, done)
        return Flight(job, key)


def _needs_worker(ticket: Ticket) -> bool:
    """Whether only a worker can settle the ticket, and none was asked yet."""
    verifier = ticket.verifier
    if ticket.outcome is not None or ticket.flight is not None or ticket.item is None:
        return False
    if verifier is None or isinstance(verifier, CompositeVerifier):
        return False
    return verifier.spec.isolation == "process"
