"""One stream: chunks go in as rollouts end, results come out as they are ready.

A reader task takes chunks and issues their tickets; the generator sends what is settled. The reader
stops taking chunks while the queue has no room for the next one, and while too many results wait to
be sent, so neither side can fill the server's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
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
from assay.reward_server.tickets import LATE, Ticket, add_results, answer_by_s, check_chunk
from assay.rpc.errors import CallError, refuse
from assay.rpc.queue import Lane
from assay.rpc.reasons import Reason

_OPEN_CHUNKS = 4


class StreamScoring:
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
        self._counts = counts
        self._journal = journal
        self._desk = desk
        self._prover = prover
        self._lane = Lane()
        self._max_items = max_items
        self._deadline_s = answer_by_s(time.monotonic(), timeout_s)
        self._seen: set[str] = set()
        self._open: set[Ticket] = set()
        self._ready: list[Ticket] = []
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()

    async def run(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest]
    ) -> AsyncGenerator[reward_pb2.StreamScoreResponse, None]:
        """Results, as they become ready.

        Raises:
            CallError: a chunk is refused, or the deadline came while the caller was still sending.
        """
        reader = asyncio.create_task(self._read(requests))
        reader.add_done_callback(lambda _: self._changed.set())
        try:
            while not (reader.done() and not self._open and not self._ready):
                if reader.done():
                    reader.result()
                in_time = await self._wait_for_change()
                if not in_time:
                    self._give_up()
                while self._ready:
                    yield self._response()
                if not in_time and not reader.done():
                    raise refuse(
                        Reason.DEADLINE_EXCEEDED, "the deadline came before the stream was closed"
                    )
            reader.result()
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, CallError):
                await reader
            for asking in self._asking:
                asking.cancel()
            await asyncio.gather(*self._asking, return_exceptions=True)
            self._counts.items.abandoned(len(self._open) + len(self._ready))
            for ticket in self._open:
                self._desk.close(ticket)

    async def _read(self, requests: AsyncIterator[reward_pb2.StreamScoreRequest]) -> None:
        async for request in requests:
            arrived_s = time.monotonic()
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
            await self._wait_for_space()

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

    async def _wait_for_space(self) -> None:
        while len(self._open) + len(self._ready) > _OPEN_CHUNKS * self._max_items:
            self._sent.clear()
            await self._sent.wait()

    async def _wait_for_change(self) -> bool:
        """Waits until something is ready; False when the deadline came first."""
        self._changed.clear()
        if self._ready:
            return True
        try:
            async with asyncio.timeout(max(0.0, self._deadline_s - time.monotonic())):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _land(self, ticket: Ticket, _: object) -> None:
        if (
            ticket in self._open
            and ticket.flight is not None
            and not ticket.flight.done.cancelled()
        ):
            ticket.land()
            self._settled(ticket)

    def _settled(self, ticket: Ticket) -> None:
        if ticket in self._open:
            self._open.discard(ticket)
            self._ready.append(ticket)
            self._changed.set()

    def _give_up(self) -> None:
        """The deadline: what is not judged yet is a fault."""
        for ticket in list(self._open):
            self._desk.close(ticket, LATE)
            self._settled(ticket)

    def _response(self) -> reward_pb2.StreamScoreResponse:
        chunk, self._ready = self._ready[: self._max_items], self._ready[self._max_items :]
        self._sent.set()
        response = reward_pb2.StreamScoreResponse()
        add_results(response.results, chunk)
        self._counts.add(chunk)
        spans.note(chunk)
        if self._journal is not None:
            self._journal.offer(chunk)
        return response
