"""Tests one stream; how it flows is `assay.rpc.streams`."""

from __future__ import annotations

from functools import partial

from assay.api.execution.v1 import execution_pb2
from assay.rpc.batches import check_chunk
from assay.rpc.errors import CallError
from assay.rpc.reasons import Reason
from assay.rpc.streams import Stream
from assay.sandbox import spans
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.tickets import ANSWER_BYTES, Desk, Room, Ticket


class TestStream(
    Stream[execution_pb2.StreamRunTestsRequest, execution_pb2.StreamRunTestsResponse, Ticket]
):
    """Tests one stream.

    Args:
        desk: issues the tickets.
        max_items: most jobs of one chunk.
        timeout_s: seconds until the caller's deadline.
        metrics: counts the jobs.
    """

    __test__ = False  # not a class of pytest's

    def __init__(self, desk: Desk, max_items: int, timeout_s: float, metrics: RunMetrics) -> None:
        super().__init__(max_items, timeout_s)
        self._desk = desk
        self._metrics = metrics

    async def _take(self, request: execution_pb2.StreamRunTestsRequest, arrived_s: float) -> None:
        check_chunk(request.jobs, self._seen, self._max_items, noun="job")
        tickets = await self._issue(request, arrived_s)
        self._metrics.items.accepted(len(tickets))
        for ticket in tickets:
            self._open.add(ticket)
            if ticket.job is None:
                self._settled(ticket)
            else:
                ticket.job.done.add_done_callback(partial(self._land, ticket))

    async def _end(self) -> None:
        left = [*self._open, *self._ready]
        self._metrics.items.abandoned(len(left))
        for ticket in left:
            self._close(ticket)

    def _close(self, ticket: Ticket) -> None:
        self._desk.close(ticket)

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

    def _land(self, ticket: Ticket, _: object) -> None:
        if ticket in self._open and ticket.job is not None and not ticket.job.done.cancelled():
            ticket.land()
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
        return response
