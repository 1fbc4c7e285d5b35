"""Judging during generation: one stream to the reward service per round.

A slow verifier costs a step only the time beyond generation. Every response gets exactly one
result, in the order of submission; every failure is a fault.

1. Responses of some 20 ms travel together, the last ones at once; whole groups where the verifier
   compares them.
2. The client reopens a stream that broke for a transient reason. One that broke for good faults
   what it had taken; later submissions use a new one.
3. `results` waits for at most `timeout_s` after the last submission; what is not judged by then is
   a fault, DEADLINE_EXCEEDED.
4. Where the services are away, `results` waits on and asks again: see outages.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, cast

import grpc

from assay.clients import Fault, Item, Result, RewardClient
from assay.clients.faults import fault_of_error, make_fault
from assay.clients.reward import AsyncRewardClient
from assay.kit import tracing
from assay.kit.errors import CallError, ConfigError
from assay.kit.reasons import Reason
from assay.kit.spans import TraceSpan
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.outages import Patience

_STREAM_S = 86_400.0  # the limit that counts is that of `results`
_CLOSE_S = 10.0
_GATHER_S = 0.02
"""How long a response waits for others: waking the client's loop is the largest cost."""
Unit = tuple[Item, ...]


class BackgroundClient(RewardClient):
    """A synchronous client that can also work in the background on its event loop."""

    def start(
        self, work: Callable[[AsyncRewardClient], Coroutine[Any, Any, None]]
    ) -> tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]:
        """Begins `work` on the client's loop, which has its own thread; the loop and the task.

        Raises:
            ConfigError: the client is closed.
        """
        portal = self._open()

        async def begin() -> tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]:
            loop = asyncio.get_running_loop()
            return loop, loop.create_task(work(portal.client))

        return portal.run(begin())

    def submit_ready(self, timeout_s: float) -> Future[object]:
        """`wait_ready` as a future."""
        portal = self._open()
        return portal.submit(portal.client.wait_ready(timeout_s))


class StreamingRound:
    """One round of scoring; see `assay.trainer.rollouts.types.ScoringRound`.

    For one thread at a time. Leaving its `with` gives up what is not judged yet.

    Args:
        item_of: the item for a response, under an id.
        timeout_s: how long to wait for results after the last submission.
        group_size: responses of one draw that travel together; 0 sends each at once.
        settle: applied to each result at the end.
        patience: with outages; None for none.

    Attributes:
        wait_s: seconds that `results` has waited.

    Raises:
        ConfigError: the client is closed.
    """

    def __init__(
        self,
        client: BackgroundClient,
        item_of: Callable[[Request, Response, str], Item],
        *,
        timeout_s: float,
        group_size: int = 0,
        settle: Callable[[Result], Result] = lambda result: result,
        patience: Patience | None = None,
    ) -> None:
        self.wait_s = 0.0
        self._client = client
        self._patience = patience
        self._items: list[Item] = []
        self._settle = settle
        self._item_of = item_of
        self._timeout_s = timeout_s
        self._group_size = group_size
        self._submitted = 0
        self._last_s = time.monotonic()
        self._gathering: dict[int, list[Item]] = {}
        self._exchange = _Exchange()
        self._span = tracing.span("scoring")
        with self._span.current():
            self._loop, self._task = client.start(self._exchange.run)
        self._call(self._task.add_done_callback, self._exchange.ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def submit(self, request: Request, response: Response) -> None:
        """Sends one response to the service, or keeps it until its group is whole."""
        item = self._noted(self._item_of(request, response, self._next_id()))
        if not self._group_size:
            self._send((item,))
            return
        group = self._gathering.setdefault(request.draw.number, [])
        group.append(item)
        if len(group) == self._group_size:
            self._send(tuple(self._gathering.pop(request.draw.number)))

    def submit_item(self, item: Item) -> None:
        """Sends one item at once, under an id of this round."""
        self._send((self._noted(dataclasses.replace(item, id=self._next_id())),))

    def _noted(self, item: Item) -> Item:
        self._items.append(item)
        return item

    def _next_id(self) -> str:
        self._submitted += 1
        self._last_s = time.monotonic()
        return str(self._submitted - 1)

    @property
    def closed(self) -> bool:
        """No result will come any more."""
        return self._exchange.over.is_set()

    def ready(self) -> int:
        """Results so far."""
        return len(self._exchange.found)

    def results(self) -> list[Result]:
        """Waits for all results, one for each submission, in order.

        Raises:
            Exception: a defect of the client; a failed call is a fault.
        """
        started = time.monotonic()
        for group in self._gathering.values():
            text = f"the group was not whole: {len(group)} of {self._group_size} responses"
            self._exchange.fault(group, make_fault(Reason.CANCELLED, text))
        self._gathering.clear()
        self._send(None)
        try:
            self._exchange.wait(self._submitted, self._last_s + self._timeout_s)
        finally:
            self.close()
            self.wait_s += time.monotonic() - started
        if self._exchange.defect is not None:
            raise self._exchange.defect
        late = self._late()
        ids = [str(number) for number in range(self._submitted)]
        found = dict(self._exchange.found)
        results = [found.get(id_) or Result(id_, late) for id_ in ids]
        if self._patience is not None:
            held = time.monotonic()
            results = self._patience.settle(
                self._client,
                self._items,
                results,
                late=[place for place, id_ in enumerate(ids) if id_ not in found],
                whole_groups=self._group_size > 0,
            )
            self.wait_s += time.monotonic() - held
        return [self._settle(result) for result in results]

    def _late(self) -> Fault:
        allowed = f"within {self._timeout_s:g} s after the last response"
        away_s = self._exchange.away_s
        if (
            away_s is not None
            and away_s >= self._last_s
            and self._patience
            and self._patience.holds
        ):
            return make_fault(
                Reason.UNREACHABLE, f"not judged {allowed}, part of which it was away"
            )
        return make_fault(
            Reason.DEADLINE_EXCEEDED,
            f"not judged {allowed}; where the service answers (`assay doctor` asks it), allow more "
            "time with reward.timeout_s",
        )

    def close(self) -> None:
        """Gives up what is not judged yet. May be called twice."""
        self._call(self._task.cancel)
        self._exchange.over.wait(_CLOSE_S)
        self._end_span()

    def _end_span(self) -> None:
        span, self._span = self._span, TraceSpan()
        if span.recording:
            results = list(self._exchange.found.values())
            faults = sum(result.fault is not None for result in results)
            late = self._submitted - len(results)
            span.note({"assay.items": self._submitted, "assay.faults": faults, "assay.late": late})
        span.end()

    def _send(self, unit: Unit | None) -> None:
        """Queues a unit; the end wakes the loop at once, a unit after a moment."""
        if unit is None:
            self._exchange.put(unit)
            self._call(self._exchange.drain)
        elif self._exchange.put(unit):
            self._call(self._loop.call_later, _GATHER_S, self._exchange.drain)

    def _call(self, action: Callable[..., object], *arguments: object) -> None:
        """Calls on the client's loop; does nothing where the client was closed meanwhile."""
        try:
            self._loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:
            self._exchange.stop()


class _Exchange:
    """The part on the client's loop: units go out, results come in.

    Attributes:
        found: results so far, by id.
        over: nothing more will come.
        defect: the exception that ended it, unless a failed call.
        away_s: when the service was last away, by the monotonic clock; None for never.
    """

    def __init__(self) -> None:
        self.found: dict[str, Result] = {}
        self._outgoing: asyncio.Queue[Unit | None] = asyncio.Queue()
        self._put: deque[Unit | None] = deque()
        self._lock = threading.Lock()
        self._woken = False
        self._awaited: int | None = None
        self.over = threading.Event()
        self.defect: BaseException | None = None
        self.away_s: float | None = None
        self._changed = threading.Condition()
        self._sent: dict[str, Item] = {}
        self._at_end = False

    def put(self, unit: Unit | None) -> bool:
        """Queues a unit, from any thread; None is the end. True asks the caller for a `drain`."""
        with self._lock:
            self._put.append(unit)
            told, self._woken = self._woken, True
        return not told

    def drain(self) -> None:
        with self._lock:
            units, self._woken = list(self._put), False
            self._put.clear()
        for unit in units:
            self._outgoing.put_nowait(unit)

    async def run(self, client: AsyncRewardClient) -> None:
        """Streams until the end is reached and all is answered; replaces a broken stream."""
        while (first := await self._next()) is not None:
            try:
                stream = client.stream(
                    self._units(first),
                    timeout_s=_STREAM_S,
                    on_error="raise",
                    on_retry=self._retried,
                )
                # the client's streams are async generators, which their type does not say
                async with aclosing(cast("Any", stream)) as results:
                    async for result in results:
                        self._settle(result)
                self._fault_sent(make_fault(Reason.MISSING_RESULT, "the stream ended without it"))
            except CallError as error:
                self._fault_sent(fault_of_error(error))
            except ConfigError as error:  # the client was closed
                self._fault_sent(make_fault(Reason.CANCELLED, str(error)))
            if self._at_end:
                return

    def _retried(self, error: CallError) -> None:
        if error.code is grpc.StatusCode.UNAVAILABLE:
            self.away_s = time.monotonic()

    def fault(self, items: Iterable[Item], fault: Fault) -> None:
        for item in items:
            self._settle(Result(item.id, fault))

    def wait(self, count: int, until_s: float) -> None:
        """Waits for `count` results, for the end, or until `until_s`."""
        with self._changed:
            self._awaited = count
            while len(self.found) < count and not self.over.is_set():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return
                self._changed.wait(left_s)

    def ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self.defect = task.exception()
        self.stop()

    def stop(self) -> None:
        with self._changed:
            self.over.set()
            self._changed.notify_all()

    async def _next(self) -> Unit | None:
        unit = await self._outgoing.get()
        self._at_end = unit is None
        self._sent.update((item.id, item) for item in unit or ())
        return unit

    async def _units(self, first: Unit) -> AsyncIterator[Unit]:
        unit: Unit | None = first
        while unit is not None:
            yield unit
            unit = await self._next()

    def _settle(self, result: Result) -> None:
        self._sent.pop(result.id, None)
        with self._changed:
            self.found[result.id] = result
            if self._awaited is not None and len(self.found) >= self._awaited:
                self._changed.notify_all()

    def _fault_sent(self, fault: Fault) -> None:
        """Answers what a stream took without giving a result."""
        self.fault(list(self._sent.values()), fault)
