r"""The clients of a reward server: `AsyncRewardClient`, and `RewardClient` without `await`.

    async with AsyncRewardClient("127.0.0.1:50051") as client:
        result = await client.score_one(Item("\\boxed{4}", reference="4", task="math"))

`assay.clients.core.client` states the guarantees, and the faults that a client makes itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from assay.api.reward.v1 import reward_pb2
from assay.clients.config import ClientConfig
from assay.clients.convert import item_to_proto, result_from_proto, server_info_from_proto
from assay.clients.core.batching import MicroBatcher, Waiting
from assay.clients.core.channel import Transport
from assay.clients.core.client import CallKind, OnError, ServiceClient, check_id, settle
from assay.clients.core.portal import SyncClient, taken_in_thread
from assay.clients.core.streaming import run_stream
from assay.clients.faults import make_fault
from assay.clients.types import Fault, Item, Result, ServerInfo, ServerLimits
from assay.kit import tracing
from assay.kit.errors import CallError, ConfigError
from assay.kit.labels import trouble_of
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

_SERVICE = "assay.api.reward.v1.RewardService"
Outcome = Result | CallError

SCORING: CallKind[Result] = CallKind(
    method=f"{_SERVICE}.BatchScore",
    encode=item_to_proto,
    request=lambda items: reward_pb2.BatchScoreRequest(items=items),
    decode=lambda sent, result: result_from_proto(result, sent.id),
    fault=Result,
    unsendable=(ValueError,),
    alike=lambda message: message.group_id,
)
STREAMING = dataclasses.replace(
    SCORING,
    method=f"{_SERVICE}.StreamScore",
    request=lambda items: reward_pb2.StreamScoreRequest(items=items),
)


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """An item of a `score_one` caller: its message and the id that the caller knows."""

    message: reward_pb2.Item
    item_id: str


class AsyncRewardClient(ServiceClient[ServerInfo]):
    """Scores items on a reward server. Belongs to the event loop that first uses it.

    `timeout_s` of a call is the whole time that it may take, in seconds; None: the client's. With
    `on_error="fault"` a call that failed after its retries makes a fault of each item without a
    result; with "raise" it raises CallError. Every call raises ConfigError where the client is
    closed or belongs to another event loop, and BadRequestError for ids that are too long or not
    unique.

    Args:
        target: "host:port"; or the server's replicas, "dns:///name:port" or "ip:port,ip:port".
        tls: encryption and trusted authorities. None: plain text, for loopback.
        token: the bearer token.
        timeout_s: of a call, queue and retries included. None: 60.
        config: batching, concurrency and retries.
        transport: carries messages in place of gRPC; `target` then only names it in errors.
        labels: of every item; its own go before.

    Raises:
        ConfigError: Neither target nor transport is given, the time-out is not positive, or the
            labels are out of bounds.
    """

    server = "reward server"
    port = 50051

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Transport | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            target, tls=tls, token=token, timeout_s=timeout_s, config=config, transport=transport
        )
        self._labels = checked_labels(labels)
        self._kind = dataclasses.replace(SCORING, whole=self._needs_group, encode=self._encode)
        self._numbers = itertools.count()
        self._batcher: MicroBatcher[_Outgoing, Outcome] = MicroBatcher(
            self._send_batch, self._config.micro_batch_items, self._config.micro_batch_wait_s
        )

    async def score(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> list[Result]:
        """Scores a list of items, in as many calls as the server's limits require.

        Items without an id are numbered from 0. Results have the items' order.

        Raises:
            TypeError: One is no `Item`, or holds what no item can.
        """
        batch = list(items)
        given: Sequence[object] = batch  # whatever its annotation promises
        for position, item in enumerate(given):
            if not isinstance(item, Item):
                kind = type(item).__name__
                raise TypeError(
                    f"items[{position}] is a {kind}; pass Item(response, reference, ...)"
                )
        with tracing.span("score", {"assay.items": len(batch)}) as span:
            results = await self._run(self._kind, batch, timeout_s, on_error)
            if span.recording:
                span.note({"assay.faults": sum(result.fault is not None for result in results)})
        return [
            labelled(result, self._labels_of(item))
            for item, result in zip(batch, results, strict=True)
        ]

    async def score_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Result:
        """Scores one item, in one call with those of other concurrent callers (64 items or 2 ms).

        Ids of different callers may be equal. Score items that are judged against others of their
        group together, with `score`.
        """
        deadline_s = self._begin(timeout_s)
        item_id = item.id or str(next(self._numbers))
        check_id(item_id)
        message = self._kind.write(item, item_id, self.noun)
        labels = self._labels_of(item)
        if isinstance(message, Fault):
            return Result(item_id, message, labels=labels)
        outcome: Outcome
        try:
            outcome = await self._batcher.submit(_Outgoing(message, item_id), deadline_s)
        except TimeoutError:
            outcome = self._late()
        return labelled(settle(self._kind, outcome, item_id, on_error), labels)

    async def stream(
        self,
        items: AsyncIterable[Item | Sequence[Item]],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
        on_retry: Callable[[CallError], None] = lambda _error: None,
    ) -> AsyncIterator[Result]:
        """Scores items as they come and yields results as they are ready, in any order.

        A sequence travels whole: the samples of one group. Items without an id are numbered from 0.
        Time-out and unique ids are of the whole stream. `on_retry` is called with each failure
        after which the stream is opened again.
        """
        deadline_s = self._begin(timeout_s)
        info = await self._server_info(deadline_s)
        waiting: dict[str, Mapping[str, str]] = {}

        def encode(item: Item, item_id: str) -> reward_pb2.Item:
            waiting[item_id] = self._labels_of(item)
            return self._encode(item, item_id)

        results = run_stream(
            self._transport,
            dataclasses.replace(STREAMING, encode=encode),
            items,
            limits=info.limits,
            config=self._config,
            deadline_s=deadline_s,
            noun=self.noun,
            raises=on_error == "raise",
            on_retry=on_retry,
        )
        async with contextlib.aclosing(results):
            async for result in results:
                yield labelled(result, waiting.pop(result.id, result.labels))

    async def list_verifiers(self, *, timeout_s: float | None = None) -> ServerInfo:
        """The server's verifiers and limits.

        Raises:
            CallError: The call failed after its retries.
        """
        return await self._refresh_info(timeout_s)

    async def close(self) -> None:
        """Ends every call: waiting callers get a fault, CANCELLED. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        await self._batcher.close(
            lambda outgoing: Result(
                outgoing.item_id, make_fault(Reason.CANCELLED, "the client was closed")
            )
        )
        await self._transport.close()

    async def _fetch_info(self, timeout_s: float) -> ServerInfo:
        request = reward_pb2.ListVerifiersRequest()
        method = f"{_SERVICE}.ListVerifiers"
        return server_info_from_proto(
            await self._transport.call(method, request, timeout_s=timeout_s)
        )

    def _labels_of(self, item: Item) -> Mapping[str, str]:
        return {**self._labels, **item.labels} if self._labels else item.labels

    def _encode(self, item: Item, item_id: str) -> reward_pb2.Item:
        return item_to_proto(item, item_id, self._labels_of(item))

    def _limits_of(self, info: ServerInfo) -> ServerLimits:
        return info.limits

    def _needs_group(self, message: reward_pb2.Item) -> bool:
        """Whether an item's judgement needs its group; yes where the server does not state it."""
        if not message.group_id or self._info is None:
            return False
        verifier = self._info.find(message.verifier, message.task)
        return verifier is None or verifier.needs_group

    async def _send_batch(self, batch: list[Waiting[_Outgoing, Outcome]]) -> None:
        """Scores a batch of `score_one` callers; ids that clash are replaced on the wire."""
        waiting = [caller for caller in batch if not caller.answer.done()]
        taken: set[str] = set()
        for number, caller in enumerate(waiting):
            message = caller.value.message
            if message.id in taken:
                message.id = f"~{number}"
            while message.id in taken:
                message.id += "~"
            taken.add(message.id)
        messages = [caller.value.message for caller in waiting]
        deadline_s = max(caller.deadline_s for caller in waiting)
        outcomes = await self._send_all(self._kind, messages, deadline_s)
        for caller, outcome in zip(waiting, outcomes, strict=True):
            if caller.answer.done():
                continue
            if isinstance(outcome, Result):
                outcome = dataclasses.replace(outcome, id=caller.value.item_id)  # noqa: PLW2901  # the caller's own id
            caller.answer.set_result(outcome)


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """The labels of a client.

    Raises:
        ConfigError: they are out of bounds; every item would be a fault.
    """
    found = dict(labels or {})
    if trouble := trouble_of(found):
        raise ConfigError(f"the client's labels: {trouble}")
    return found


def labelled(result: Result, labels: Mapping[str, str]) -> Result:
    """The result with the item's labels, whatever became of the item."""
    return result if result.labels == labels else dataclasses.replace(result, labels=labels)


class RewardClient(SyncClient[AsyncRewardClient, ServerInfo]):
    """Scores items on a reward server, synchronously, with the methods of `AsyncRewardClient`.

    Threads may share it; it survives a fork and can be pickled (`assay.clients.core.portal`). Its
    arguments are the same, but `transport` is a function that makes one, called once in each
    process.
    """

    _asynchronous = AsyncRewardClient

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Callable[[], Transport] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._labels = checked_labels(labels)
        super().__init__(
            target, tls=tls, token=token, timeout_s=timeout_s, config=config, transport=transport
        )

    def _further(self) -> dict[str, Any]:
        return {"labels": self._labels}

    def score(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> list[Result]:
        """See `AsyncRewardClient.score`."""
        return self._run(lambda client: client.score(items, timeout_s=timeout_s, on_error=on_error))

    def score_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Result:
        """See `AsyncRewardClient.score_one`; items of other threads share its call."""
        return self._run(lambda c: c.score_one(item, timeout_s=timeout_s, on_error=on_error))

    def submit(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Future[list[Result]]:
        """Starts `score` without waiting.

        `await asyncio.wrap_future(client.submit(items))` waits on any event loop, without a thread.
        """
        return self._submit(lambda c: c.score(items, timeout_s=timeout_s, on_error=on_error))

    def submit_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Future[Result]:
        """Starts `score_one` without waiting; see `submit`."""
        return self._submit(lambda c: c.score_one(item, timeout_s=timeout_s, on_error=on_error))

    def stream(
        self,
        items: Iterable[Item | Sequence[Item]],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> Iterator[Result]:
        """See `AsyncRewardClient.stream`. Results arrive while a thread waits for the next item."""
        taken: Any = taken_in_thread(items)
        return self._stream(lambda c: c.stream(taken, timeout_s=timeout_s, on_error=on_error))

    def list_verifiers(self, *, timeout_s: float | None = None) -> ServerInfo:
        """See `AsyncRewardClient.list_verifiers`."""
        return self._run(lambda client: client.list_verifiers(timeout_s=timeout_s))
