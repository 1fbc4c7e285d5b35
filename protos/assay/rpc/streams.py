"""One stream of a server: chunks of items go in as they arise, results come out as they are ready.

A reader task takes chunks and issues their tickets; the generator sends what is settled. The reader
stops taking chunks while the server has no room for the next one, and while too many results wait
to be sent, so neither side can fill the server's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, TypeVar

from assay.rpc.batches import answer_by_s
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason

_OPEN_CHUNKS = 4

Request = TypeVar("Request")
Response = TypeVar("Response")
Ticket = TypeVar("Ticket")


class Stream(ABC, Generic[Request, Response, Ticket]):
    """One stream: what a service adds is how a chunk becomes tickets, and tickets a message.

    Args:
        max_items: most items of one chunk.
        timeout_s: seconds until the caller's deadline.
    """

    def __init__(self, max_items: int, timeout_s: float) -> None:
        self._max_items = max_items
        self._deadline_s = answer_by_s(time.monotonic(), timeout_s)
        self._seen: set[str] = set()
        self._open: set[Ticket] = set()
        self._ready: list[Ticket] = []
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()

    async def run(self, requests: AsyncIterator[Request]) -> AsyncGenerator[Response, None]:
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
                    response = self._response()
                    self._sent.set()
                    yield response
                if not in_time and not reader.done():
                    raise refuse(
                        Reason.DEADLINE_EXCEEDED, "the deadline came before the stream was closed"
                    )
            reader.result()
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, CallError):
                await reader
            await self._end()

    @abstractmethod
    async def _take(self, request: Request, arrived_s: float) -> None:
        """Issues the tickets of a chunk: they are open, and some may be settled.

        Raises:
            CallError: the chunk is refused.
        """

    @abstractmethod
    def _close(self, ticket: Ticket) -> None:
        """Settles an open ticket by the fault that its time is over."""

    @abstractmethod
    def _response(self) -> Response:
        """A message of the first tickets that are ready, one at least, which are so no more."""

    @abstractmethod
    async def _end(self) -> None:
        """The stream is over, whatever is left of it: what is open or ready goes to nobody."""

    def _settled(self, ticket: Ticket) -> None:
        """Has an open ticket that is settled be sent."""
        if ticket in self._open:
            self._open.discard(ticket)
            self._ready.append(ticket)
            self._changed.set()

    async def _read(self, requests: AsyncIterator[Request]) -> None:
        async for request in requests:
            await self._take(request, time.monotonic())
            await self._wait_for_space()

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

    def _give_up(self) -> None:
        """The deadline: what is not judged yet is a fault."""
        for ticket in list(self._open):
            self._close(ticket)
            self._settled(ticket)
