"""A call and a stream, from the request to the answer. No gRPC but its messages."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic

from assay.kit import limits, tracing
from assay.kit.batch.answers import ANSWER_BYTES, fill_result, fit_results
from assay.kit.batch.dispatcher import Dispatcher, Runs
from assay.kit.batch.items import JobPool, P
from assay.kit.batch.requests import answer_by_s, check_chunk
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.batch.spans import Details, stretch
from assay.kit.batch.stream import AnswerStream
from assay.kit.errors import CallError, refuse
from assay.kit.faults import ItemFault, Unjudgeable
from assay.kit.metrics import ItemMetrics
from assay.kit.queue import Lane
from assay.kit.reasons import Reason
from assay.kit.trails import Stretch

_FRAME_BYTES = 8  # of a result in its message, at most

Admit = Callable[[P, Any], None]
"""Reads a message into its pending item; raises `Unjudgeable` where the message is wrong."""


class ItemHandler(Runs[P]):
    """How a service's items are run, written, counted and traced.

    Attributes:
        late: the fault of an item that is not settled in time.
        no_room: the fault's message where the answer has no room for a result.
    """

    noun = "item"
    late = ItemFault(
        Reason.DEADLINE_EXCEEDED, "the call's deadline came before the item was judged"
    )
    no_room = "the answer of this call has no room for this result: send fewer items in a call"

    @abstractmethod
    def pending(self, item_id: str, arrived_s: float) -> P:
        """A pending item."""

    @abstractmethod
    def fill(self, result: Any, item: P) -> None:
        """Writes the judgement of an item into its result, which has the rest already."""

    def echo(self, result: Any, item: P) -> None:
        """Writes what the caller gets back with a judgement and with a fault, beside the id."""

    def shorten(self, result: Any) -> None:
        """Removes what a result holds for people only."""

    @abstractmethod
    def who(self, item: P) -> str:
        """The judge's name, of those that the operator served; empty for none."""

    @abstractmethod
    def count(self, item: P, who: str, result: Any) -> None:
        """Counts an item that `who` judged, whose result is written."""

    @abstractmethod
    def details(self, item: P, result: Any) -> Details:
        """What a trace shows of it; `result` is None for a part of an item."""


class BatchService(Generic[P]):
    """Answers batches and streams of items. Belongs to one event loop.

    Args:
        cache: earlier judgements of equal items; by default none is kept.
        answered: called with the items of each answer, which nobody changes any more; a journal.
    """

    def __init__(
        self,
        handler: ItemHandler[P],
        metrics: ItemMetrics,
        max_items: int,
        *,
        cache: OutcomeCache | None = None,
        answered: Callable[[Sequence[P]], None] | None = None,
    ) -> None:
        self.dispatcher = Dispatcher(handler, handler.late, cache or OutcomeCache(0))
        self._handler = handler
        self._metrics = metrics
        self._max_items = max_items
        self._answered = answered

    async def answer(
        self, messages: Sequence[Any], response: Any, admit: Admit[P], timeout_s: float
    ) -> list[P]:
        """Answers a batch slightly before the caller's deadline, which is `timeout_s` away.

        `response` gets one result for each message, in order.

        Returns:
            The settled items, in order.

        Raises:
            CallError: the request as a whole is refused; nothing was judged.
        """
        arrived_s = time.monotonic()
        check_chunk(messages, set(), self._max_items, noun=self._handler.noun)
        items = self._admit(admit, messages, arrived_s)
        deadline_s = answer_by_s(arrived_s, timeout_s)
        waited_for = 0
        try:
            full = await self.dispatcher.begin(items, Lane(), deadline_s, waits=False)
            if full is not None:
                raise self._full(full)
            waited_for = len(items)
            self._metrics.accepted(waited_for)
            await self.dispatcher.finish(items, deadline_s)
            waited_for = 0
        finally:
            if waited_for:
                self._metrics.abandoned(waited_for)
            for item in items:
                if item.outcome is None or item.execution is not None:
                    self.dispatcher.close(item, self._handler.late)
        add = response.results.add
        for item in items:
            self._write(add(), item)
        if response.ByteSize() > limits.MAX_MESSAGE_BYTES:
            self._fit(items, response.results)
        self._note(items, response.results)
        return items

    def stream(
        self,
        requests: AsyncIterator[Any],
        chunk_of: Callable[[Any], Sequence[Any]],
        response: Callable[[], Any],
        admit: Admit[P],
        timeout_s: float,
    ) -> AsyncGenerator[Any, None]:
        """Answers a stream of chunks; results come as they are ready.

        While a pool is full, no further chunk is read.

        Raises:
            CallError: a chunk is refused; the stream ends.
        """

        def chunk(request: Any, seen: set[str], arrived_s: float) -> list[P]:
            messages = chunk_of(request)
            check_chunk(messages, seen, self._max_items, noun=self._handler.noun)
            return self._admit(admit, messages, arrived_s)

        def respond(ready: Sequence[P]) -> tuple[Any, int]:
            return self._respond(response(), ready)

        stream = AnswerStream(
            self.dispatcher,
            self._metrics,
            chunk,
            respond,
            max_items=self._max_items,
            timeout_s=timeout_s,
        )
        return stream.run(requests)

    def _admit(self, admit: Admit[P], messages: Sequence[Any], arrived_s: float) -> list[P]:
        """A pending item for each message, in order; that of a wrong one is settled."""
        pending = self._handler.pending
        items: list[P] = []
        for message in messages:
            item = pending(message.id, arrived_s)
            items.append(item)
            try:
                admit(item, message)
            except Unjudgeable as trouble:
                item.settle(trouble.fault)
        return items

    def _full(self, pool: JobPool) -> CallError:
        noun = self._handler.noun
        return refuse(
            Reason.QUEUE_FULL,
            f"{pool.queued} {noun}s wait already; none of this request was taken",
            retry_after_s=pool.retry_after_s(),
        )

    def _respond(self, response: Any, ready: Sequence[P]) -> tuple[Any, int]:
        sent: list[P] = []
        size_bytes = 0
        for item in ready[: self._max_items]:
            result = response.results.add()
            self._write(result, item)
            size_bytes += result.ByteSize() + _FRAME_BYTES
            if sent and size_bytes > ANSWER_BYTES:
                del response.results[-1]
                break
            sent.append(item)
        if len(sent) == 1 and size_bytes > ANSWER_BYTES:
            self._fit(sent, response.results)
        self._note(sent, response.results)
        return response, len(sent)

    def _write(self, result: Any, item: P) -> None:
        fill_result(result, item, self._handler.fill)
        self._handler.echo(result, item)

    def _fit(self, items: Sequence[P], results: Iterable[Any]) -> None:
        pairs = zip(items, results, strict=True)
        fit_results(pairs, self._handler.shorten, self._handler.no_room)

    def _note(self, items: Sequence[P], results: Iterable[Any]) -> None:
        """Counts settled items, each once, for metrics, trace and journal."""
        handler, metrics = self._handler, self._metrics
        trail = tracing.trail()
        for item, result in zip(items, results, strict=True):
            who, outcome = handler.who(item), item.outcome
            metrics.took(who, item.queue_s, item.execution_s)
            if isinstance(outcome, ItemFault):
                metrics.fault(who, outcome.reason)
            else:
                handler.count(item, who, result)
            if trail is not None:
                trail.add(
                    item.arrived_s,
                    item.arrived_s + item.queue_s,
                    item.execution_s,
                    fault=item.faulted,
                    describe=partial(self._stretch, item, result),
                )
        if self._answered is not None:
            self._answered(items)

    def _stretch(self, item: P, result: Any, number: int) -> Stretch:
        handler = self._handler
        return stretch(
            item, number, self._metrics.by, handler.who(item), handler.details(item, result)
        )
