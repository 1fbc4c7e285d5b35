"""One stream: chunks go in as rollouts end, results come out as they are ready.

A reader task takes chunks and issues their tickets; the generator sends what is settled. The reader
stops taking chunks while the queue has no room for the next one, and while too many results wait to
be sent, so neither side can fill the server's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.tickets import (
    LATE,
    Desk,
    Ticket,
    answer_by_s,
    check_chunk,
    judge_inline,
    judge_remote,
    results_of,
)
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason

_OPEN_CHUNKS = 4


class StreamScoring:
    """Scores one stream.

    Args:
        desk: issues the tickets.
        max_items: most items of one chunk.
        timeout_s: seconds until the caller's deadline.
    """

    def __init__(self, desk: Desk, max_items: int, timeout_s: float) -> None:
        self._desk = desk
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
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
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
            for ticket in self._open:
                self._desk.close(ticket)

    async def _read(self, requests: AsyncIterator[reward_pb2.StreamScoreRequest]) -> None:
        async for request in requests:
            arrived_s = time.monotonic()
            check_chunk(request.items, self._seen, self._max_items)
            tickets = await self._issue(request, arrived_s)
            for ticket in tickets:
                self._open.add(ticket)
                if ticket.flight is not None:
                    ticket.flight.done.add_done_callback(partial(self._land, ticket))
            await self._judge_inline()
            asking = asyncio.create_task(self._judge_remote(tickets))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            await self._wait_for_space()

    async def _issue(
        self, request: reward_pb2.StreamScoreRequest, arrived_s: float
    ) -> list[Ticket]:
        while True:
            try:
                return self._desk.issue(request.items, arrived_s)
            except CallError as refusal:
                if refusal.reason != Reason.QUEUE_FULL:
                    raise
            await self._desk.wait_for_room(request.items)

    async def _judge_inline(self) -> None:
        """Judges here what can be, and passes on all that is settled."""
        fresh = [ticket for ticket in self._open if ticket.flight is None]
        await judge_inline(self._desk, fresh, self._deadline_s)
        for ticket in fresh:
            if ticket.result is not None:
                self._settled(ticket)

    async def _judge_remote(self, tickets: list[Ticket]) -> None:
        """Has other services judge what is theirs; the next chunk need not wait for them."""
        open_tickets = [ticket for ticket in tickets if ticket in self._open]
        await judge_remote(open_tickets, self._deadline_s)
        for ticket in open_tickets:
            if ticket.result is not None:
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
        return reward_pb2.StreamScoreResponse(results=results_of(chunk))
