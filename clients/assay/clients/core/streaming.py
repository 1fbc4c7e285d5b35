"""One stream of a client: items in as they arise, outcomes out as they are ready.

A stream that breaks with UNAVAILABLE is opened again, and the items without an outcome are sent
again: judging is idempotent.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Generic, NamedTuple, TypeVar, cast

from assay.clients.config import ClientConfig
from assay.clients.core.batching import framed_bytes
from assay.clients.core.channel import Transport
from assay.clients.core.client import CallKind, CallLimits, answers_of, check_id, contradiction
from assay.clients.core.retry import is_retryable, next_delay_s
from assay.clients.faults import fault_of_error, make_fault
from assay.clients.types import Fault
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason

R = TypeVar("R")
_UNITS_AHEAD = 256


class _Unit(NamedTuple):
    messages: list[Any]
    size: int


async def run_stream(
    transport: Transport,
    kind: CallKind[R],
    items: AsyncIterable[Any],
    *,
    limits: CallLimits,
    config: ClientConfig,
    deadline_s: float,
    noun: str,
    raises: bool = False,
    on_retry: Callable[[CallError], None] = lambda _error: None,
) -> AsyncGenerator[R, None]:
    """Sends items as they come and yields exactly one outcome for each, as they are ready.

    A sequence of items travels in one message. `deadline_s` is by the loop's clock. `on_retry` is
    called with each failure after which the stream is opened again. With `raises`, a stream that
    broke for good raises in place of making faults.

    Raises:
        BadRequestError: Ids are not unique over the stream, or too long.
        CallError: The stream broke for good, and `raises` is set.
    """
    stream = _Stream(
        transport,
        kind,
        limits=limits,
        config=config,
        deadline_s=deadline_s,
        noun=noun,
        raises=raises,
        on_retry=on_retry,
    )
    tasks = [asyncio.ensure_future(stream.take(items)), asyncio.ensure_future(stream.exchange())]
    for task in tasks:
        task.add_done_callback(stream.hand_on_defect)
    try:
        while (entry := await stream.ready.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            for outcome in entry:
                yield outcome
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Stream(Generic[R]):
    """The state of one stream."""

    def __init__(
        self,
        transport: Transport,
        kind: CallKind[R],
        *,
        limits: CallLimits,
        config: ClientConfig,
        deadline_s: float,
        noun: str,
        raises: bool,
        on_retry: Callable[[CallError], None],
    ) -> None:
        self._transport = transport
        self._kind = kind
        self._noun = noun
        self._limits = limits
        self._config = config
        self._deadline_s = deadline_s
        self._raises = raises
        self._on_retry = on_retry
        self._ids: set[str] = set()
        self._units: asyncio.Queue[_Unit | None] = asyncio.Queue(_UNITS_AHEAD)
        self._ahead: deque[_Unit] = deque()  # taken from the queue, but in no chunk of this stream
        self._ended = False
        # The message of each item that was sent, and its unit.
        self._unanswered: dict[str, tuple[Any, _Unit]] = {}
        self._answered = 0
        self.ready: asyncio.Queue[list[R] | BaseException | None] = asyncio.Queue()

    def hand_on_defect(self, task: asyncio.Future[None]) -> None:
        """Passes the exception that ended a task to the reader of the stream."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.ready.put_nowait(error)

    async def take(self, items: AsyncIterable[Any]) -> None:
        """Reads the caller's items, and queues those that can be sent."""
        async for entry in items:
            members = entry if isinstance(entry, Sequence) else [entry]
            unit = self._unit(members)
            if (
                len(unit.messages) > self._limits.max_items
                or unit.size > self._limits.max_message_bytes
            ):
                fault = make_fault(
                    Reason.BATCH_TOO_LARGE, "the group does not fit into one message"
                )
                self._answer_all(unit, fault)
            elif unit.messages:
                await self._units.put(unit)
        await self._units.put(None)

    def _unit(self, items: Sequence[Any]) -> _Unit:
        messages, size = [], 0
        for item in items:
            admitted = self._admit(item)
            if admitted is not None:
                messages.append(admitted[0])
                size += admitted[1]
        return _Unit(messages, size)

    def _admit(self, item: Any) -> tuple[Any, int] | None:
        """The item's message and its framed bytes; None where the client makes a fault of it."""
        item_id = item.id or str(len(self._ids))
        if item_id in self._ids:
            raise refuse(
                Reason.DUPLICATE_ITEM_ID,
                f"the id {item_id!r} was used before in this stream; make ids unique",
            )
        check_id(item_id)
        self._ids.add(item_id)
        message = self._kind.write(item, item_id, self._noun)
        if isinstance(message, Fault):
            self.ready.put_nowait([self._kind.fault(item_id, message)])
            return None
        size = message.ByteSize()
        framed = framed_bytes(size)
        if size > self._limits.max_item_bytes or framed > self._limits.max_message_bytes:
            limit = self._limits.max_item_bytes
            text = f"the {self._noun} has {size} bytes, and this server takes {limit}; shorten it"
            fault = make_fault(Reason.ITEM_TOO_LARGE, text)
            self.ready.put_nowait([self._kind.fault(item_id, fault)])
            return None
        return message, framed

    async def exchange(self) -> None:
        """Sends units and reads outcomes until every item has one."""
        loop = asyncio.get_running_loop()
        failures, answered = 0, 0
        error: CallError | None = None
        while True:
            try:
                await self._exchange_once()
                break
            except CallError as broken:
                failures = failures + 1 if self._answered == answered else 1
                answered = self._answered
                draw = random.random()  # noqa: S311  # jitter, not a secret
                remaining_s = self._deadline_s - loop.time()
                delay_s = next_delay_s(
                    self._config.retry, failures, remaining_s, draw, broken.retry_after_s
                )
                if delay_s is None or not is_retryable(broken):
                    error = broken
                    break
                self._on_retry(broken)
            await asyncio.sleep(delay_s)
        await self._finish(error)

    async def _exchange_once(self) -> None:
        loop = asyncio.get_running_loop()
        remaining_s = max(self._deadline_s - loop.time(), 0.001)
        responses = self._transport.stream(
            self._kind.method, self._requests(), timeout_s=remaining_s
        )
        async with aclosing(cast("Any", responses)):  # transports' streams are async generators
            async for response in responses:
                by_id, contradicted = answers_of(response.results)
                outcomes = [
                    self._kind.fault(item_id, contradiction(self._noun))
                    if item_id in contradicted
                    else self._kind.decode(sent[0], result)
                    for item_id, result in by_id.items()
                    if (sent := self._unanswered.pop(item_id, None)) is not None
                ]
                self._answered += len(outcomes)
                self.ready.put_nowait(outcomes)

    async def _requests(self) -> AsyncIterator[Any]:
        self._ahead = deque({id(unit): unit for _, unit in self._unanswered.values()}.values())
        while (chunk := await self._next_chunk()) is not None:
            yield self._kind.request(chunk)

    async def _next_chunk(self) -> list[Any] | None:
        first = await self._next_unit(None)
        if first is None:
            return None
        chunk, size = list(first.messages), first.size
        ends_s = asyncio.get_running_loop().time() + self._config.micro_batch_wait_s
        room = min(self._config.micro_batch_items, self._limits.max_items)
        while len(chunk) < room:
            unit = await self._next_unit(ends_s)
            if unit is None:
                break
            if (
                len(chunk) + len(unit.messages) > room
                or size + unit.size > self._limits.max_message_bytes
            ):
                self._ahead.appendleft(unit)
                break
            chunk += unit.messages
            size += unit.size
        return chunk

    async def _next_unit(self, ends_s: float | None) -> _Unit | None:
        """The next unit, which then counts as sent; None at the end or at `ends_s`."""
        if self._ahead:
            return self._ahead.popleft()
        if self._ended:
            return None
        try:
            unit = self._units.get_nowait()  # without a timer where one is there already
        except asyncio.QueueEmpty:
            if ends_s is not None and ends_s <= asyncio.get_running_loop().time():
                return None
            try:
                async with asyncio.timeout_at(ends_s):
                    unit = await self._units.get()
            except TimeoutError:
                return None
        if unit is None:
            self._ended = True
            return None
        for message in unit.messages:
            self._unanswered[message.id] = (message, unit)
        return unit

    async def _finish(self, error: CallError | None) -> None:
        if error is not None and self._raises:
            self.ready.put_nowait(error)
            return
        fault = (
            make_fault(Reason.MISSING_RESULT, f"the stream ended without this {self._noun}")
            if error is None
            else fault_of_error(error)
        )
        self.ready.put_nowait([self._kind.fault(item_id, fault) for item_id in self._unanswered])
        while not self._ended:
            unit = await self._units.get()
            if unit is None:
                self._ended = True
            else:
                self._answer_all(unit, fault)
        self.ready.put_nowait(None)

    def _answer_all(self, unit: _Unit, fault: Fault) -> None:
        self.ready.put_nowait([self._kind.fault(one.id, fault) for one in unit.messages])
