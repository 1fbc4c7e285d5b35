"""One stream of a server: chunks of items go in as they arise, results come out as they are ready.

A reader task begins the items of each chunk; the generator sends what is settled. The reader pauses
while a pool has no room, and while too many results wait to be sent, so memory stays bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Generic

from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.batch.items import P
from assay.kit.batch.requests import answer_by_s
from assay.kit.errors import CallError, refuse
from assay.kit.metrics import ItemMetrics
from assay.kit.queue import Lane
from assay.kit.reasons import Reason

_OPEN_CHUNKS = 4


class AnswerStream(Generic[P]):
    """Answers one stream.

    Args:
        admit: the pending items of a chunk, given the ids before it and its time of arrival.
        respond: a message of the first of some settled items, one at least, and their number.
    """

    def __init__(
        self,
        dispatcher: Dispatcher[P],
        metrics: ItemMetrics,
        admit: Callable[[Any, set[str], float], list[P]],
        respond: Callable[[Sequence[P]], tuple[Any, int]],
        *,
        max_items: int,
        timeout_s: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._admit = admit
        self._respond = respond
        self._most = _OPEN_CHUNKS * max_items
        self._deadline_s = answer_by_s(time.monotonic(), timeout_s)
        self._lane = Lane()
        self._seen: set[str] = set()
        self._open: set[P] = set()
        self._ready: list[P] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()

    async def run(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """Yields results as they become ready.

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
                    response, taken = self._respond(self._ready)
                    del self._ready[:taken]
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

    async def _read(self, requests: AsyncIterator[Any]) -> None:
        async for request in requests:
            items = self._admit(request, self._seen, time.monotonic())
            self._open.update(items)
            self._metrics.accepted(len(items))
            await self._dispatcher.begin(items, self._lane, self._deadline_s, waits=True)
            for item in items:
                self._settled(item)
                self._dispatcher.watch(item, self._settled)
            if elsewhere := self._dispatcher.elsewhere(items):
                asking = asyncio.create_task(self._run_elsewhere(elsewhere))
                self._asking.add(asking)
                asking.add_done_callback(self._asking.discard)
            while len(self._open) + len(self._ready) > self._most:
                self._sent.clear()
                await self._sent.wait()

    async def _run_elsewhere(self, items: list[P]) -> None:
        await self._dispatcher.run_elsewhere(items, self._deadline_s)
        for item in items:
            self._settled(item)

    def _settled(self, item: P) -> None:
        if item.outcome is not None and item in self._open:
            self._open.discard(item)
            self._ready.append(item)
            self._changed.set()

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
        for item in list(self._open):
            self._dispatcher.close(item, self._dispatcher.late)
            self._settled(item)

    async def _end(self) -> None:
        for asking in self._asking:
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        if left := len(self._open) + len(self._ready):
            self._metrics.abandoned(left)
        for item in self._open:
            self._dispatcher.close(item, self._dispatcher.late)
