"""One stream: chunks of test jobs go in as they arise, results come out as they are ready.

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

from assay.api.execution.v1 import execution_pb2
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason
from assay.sandbox import spans
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.tickets import ANSWER_BYTES, Desk, Room, Ticket, answer_by_s, check_chunk

_OPEN_CHUNKS = 4


class TestStream:
    """Tests one stream.

    Args:
        desk: issues the tickets.
        max_items: most jobs of one chunk.
        timeout_s: seconds until the caller's deadline.
        metrics: counts the jobs.
    """

    __test__ = False  # not a class of pytest's

    def __init__(self, desk: Desk, max_items: int, timeout_s: float, metrics: RunMetrics) -> None:
        self._desk = desk
        self._metrics = metrics
        self._max_items = max_items
        self._deadline_s = answer_by_s(time.monotonic(), timeout_s)
        self._seen: set[str] = set()
        self._open: set[Ticket] = set()
        self._ready: list[Ticket] = []
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()

    async def run(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest]
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
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
            left = [*self._open, *self._ready]
            self._metrics.items.abandoned(len(left))
            for ticket in left:
                self._desk.close(ticket)

    async def _read(self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest]) -> None:
        async for request in requests:
            arrived_s = time.monotonic()
            check_chunk(request.jobs, self._seen, self._max_items)
            tickets = await self._issue(request, arrived_s)
            self._metrics.items.accepted(len(tickets))
            for ticket in tickets:
                self._open.add(ticket)
                if ticket.job is None:
                    self._settled(ticket)
                else:
                    ticket.job.done.add_done_callback(partial(self._land, ticket))
            await self._wait_for_space()

    async def _issue(
        self, request: execution_pb2.StreamRunTestsRequest, arrived_s: float
    ) -> list[Ticket]:
        while True:
            try:
                # Each result may fill a message of its own: a stream has room for all.
                return self._desk.issue(
                    request.jobs, arrived_s, Room(ANSWER_BYTES * len(request.jobs))
                )
            except CallError as refusal:
                if refusal.reason != Reason.QUEUE_FULL:
                    raise
            await self._desk.wait_for_room(request.jobs)

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
        if ticket in self._open and ticket.job is not None and not ticket.job.done.cancelled():
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
            self._desk.close(ticket)
            self._settled(ticket)

    def _response(self) -> execution_pb2.StreamRunTestsResponse:
        """As many results as fit into one message."""
        response = execution_pb2.StreamRunTestsResponse()
        size = 0
        while self._ready and len(response.results) < self._max_items:
            result = self._ready[0].result
            size += 0 if result is None else result.ByteSize() + 8
            if response.results and size > ANSWER_BYTES:
                break
            sent = [self._ready.pop(0)]
            self._metrics.add(sent)
            spans.note(sent)
            if isinstance(result, execution_pb2.TestJobResult):
                response.results.append(result)
        self._sent.set()
        return response
