"""Scores one stream; how it flows is `assay.rpc.streams`."""

from __future__ import annotations

import asyncio
from functools import partial

from assay.api.reward.v1 import reward_pb2
from assay.reward_server import spans
from assay.reward_server.counts import Counts
from assay.reward_server.desk import Desk
from assay.reward_server.journal.writer import Journal
from assay.reward_server.judging import (
    Proves,
    judge_elsewhere,
    judge_here,
    launch_when_it_fits,
)
from assay.reward_server.tickets import LATE, Ticket, add_results
from assay.rpc.batches import check_chunk
from assay.rpc.queue import Lane
from assay.rpc.streams import Stream


class StreamScoring(Stream[reward_pb2.StreamScoreRequest, reward_pb2.StreamScoreResponse, Ticket]):
    """Scores one stream.

    Args:
        desk: issues the tickets.
        prover: tests verifiers before their first use.
        max_items: most items of one chunk.
        timeout_s: seconds until the caller's deadline.
        counts: counts what is settled.
        journal: keeps what was said; None for none.
    """

    def __init__(
        self,
        desk: Desk,
        prover: Proves,
        max_items: int,
        timeout_s: float,
        counts: Counts,
        *,
        journal: Journal | None = None,
    ) -> None:
        super().__init__(max_items, timeout_s)
        self._desk = desk
        self._prover = prover
        self._lane = Lane()
        self._counts = counts
        self._journal = journal
        self._asking: set[asyncio.Task[None]] = set()

    async def _take(self, request: reward_pb2.StreamScoreRequest, arrived_s: float) -> None:
        check_chunk(request.items, self._seen, self._max_items)
        tickets = self._desk.issue(request.items, arrived_s)
        self._open.update(tickets)
        self._counts.items.accepted(len(tickets))
        await self._prover.prove_first(tickets, self._deadline_s)
        await judge_here(self._desk, tickets, self._deadline_s)
        await launch_when_it_fits(self._desk, tickets, self._lane, self._deadline_s)
        self._pass_on(tickets)
        asking = asyncio.create_task(self._judge_elsewhere(tickets))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def _end(self) -> None:
        for asking in self._asking:
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        self._counts.items.abandoned(len(self._open) + len(self._ready))
        for ticket in self._open:
            self._close(ticket)

    def _close(self, ticket: Ticket) -> None:
        self._desk.close(ticket, LATE)

    def _pass_on(self, tickets: list[Ticket]) -> None:
        """Passes on what is settled, and sees to it that what flies will be."""
        for ticket in tickets:
            if ticket.outcome is not None:
                self._settled(ticket)
            elif ticket.flight is not None:
                ticket.flight.done.add_done_callback(partial(self._land, ticket))

    async def _judge_elsewhere(self, tickets: list[Ticket]) -> None:
        """Has other services and composites judge; the next chunk need not wait for them."""
        waiting = [ticket for ticket in tickets if ticket in self._open and ticket.flight is None]
        await judge_elsewhere(self._desk, self._prover, waiting, self._deadline_s)
        for ticket in waiting:
            if ticket.outcome is not None:
                self._settled(ticket)

    def _land(self, ticket: Ticket, _: object) -> None:
        if (
            ticket in self._open
            and ticket.flight is not None
            and not ticket.flight.done.cancelled()
        ):
            ticket.land()
            self._settled(ticket)

    def _response(self) -> reward_pb2.StreamScoreResponse:
        chunk, self._ready = self._ready[: self._max_items], self._ready[self._max_items :]
        response = reward_pb2.StreamScoreResponse()
        add_results(response.results, chunk)
        self._counts.add(chunk)
        spans.note(chunk)
        if self._journal is not None:
            self._journal.offer(chunk)
        return response
