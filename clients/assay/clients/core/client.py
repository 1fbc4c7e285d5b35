"""The common part of the asynchronous clients of batches: calls, and the matching of outcomes.

Every item gets exactly one outcome, in the items' order, matched by id. The client itself makes
these faults: UNREACHABLE, DEADLINE_EXCEEDED, QUEUE_FULL and similar ones when the retries end;
ITEM_TOO_LARGE, BATCH_TOO_LARGE and UNSUPPORTED_INPUT before anything is sent; MISSING_RESULT when
the answer leaves an item out; INTERNAL when it contradicts itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import grpc

from assay.clients.config import ClientConfig
from assay.clients.core.base import BaseClient, I
from assay.clients.core.batching import framed_bytes, plan_calls
from assay.clients.core.channel import Transport
from assay.clients.core.retry import call_with_retries
from assay.clients.core.window import Gate, Window
from assay.clients.faults import fault_of_error, make_fault
from assay.clients.types import Fault
from assay.kit.durations import seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.limits import MAX_ITEM_ID_BYTES
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

OnError = Literal["fault", "raise"]
_LOOKED_AT = 32
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class CallLimits(Protocol):
    """The limits of one call to a server."""

    @property
    def max_items(self) -> int:
        """Items of one call."""

    @property
    def max_message_bytes(self) -> int:
        """Bytes of one message."""

    @property
    def max_item_bytes(self) -> int:
        """Bytes of one item."""


class Named(Protocol):
    """An item that may have an id."""

    @property
    def id(self) -> str:
        """Empty for none."""


def _as_it_is(_id: str, fault: Fault) -> Any:
    return fault


@dataclass(frozen=True, slots=True)
class CallKind(Generic[R_co]):
    """One kind of call: how its items are written, sent and read.

    Attributes:
        method: as `Transport.call` takes it.
        unsendable: exceptions of `encode` for an item that no message can hold.
        alike: a key, equal for items that should travel in one call; empty or None for none.
        whole: whether an item's judgement needs all items of its key beside it.
    """

    method: str
    encode: Callable[[Any, str], Any]
    request: Callable[[list[Any]], Any]
    decode: Callable[[Any, Any], R_co]
    fault: Callable[[str, Fault], R_co] = _as_it_is
    unsendable: tuple[type[Exception], ...] = (ValueError, TypeError)
    alike: Callable[[Any], str] | None = None
    whole: Callable[[Any], bool] | None = None

    def write(self, item: Any, item_id: str, noun: str) -> Any:
        """An item's message, or its fault where no message can hold it."""
        try:
            return self.encode(item, item_id)
        except self.unsendable as error:
            text = " ".join(str(error).split())[:200]
            return make_fault(Reason.UNSUPPORTED_INPUT, f"the {noun} cannot be sent: {text}")


class ServiceClient(BaseClient[I]):
    """An asynchronous client of a service that takes batches."""

    noun: ClassVar[str] = "item"
    """What is sent, for errors."""

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(
            target, tls=tls, token=token, timeout_s=timeout_s, config=config, transport=transport
        )
        self._gate = Gate(Window(self._config.max_concurrent_calls))

    @abstractmethod
    def _limits_of(self, info: I) -> CallLimits:
        """The limits of one call."""

    async def _run(
        self, kind: CallKind[R], items: Sequence[Named], timeout_s: float | None, on_error: OnError
    ) -> list[R]:
        deadline_s = self._begin(timeout_s)
        ids = name_all(items, self.noun)
        written = [
            kind.write(item, item_id, self.noun) for item, item_id in zip(items, ids, strict=True)
        ]
        outcomes = iter(
            await self._send_all(
                kind, [one for one in written if not isinstance(one, Fault)], deadline_s
            )
        )
        return [
            kind.fault(item_id, message)
            if isinstance(message, Fault)
            else settle(kind, next(outcomes), item_id, on_error)
            for item_id, message in zip(ids, written, strict=True)
        ]

    async def _send_all(
        self, kind: CallKind[R], messages: Sequence[Any], deadline_s: float
    ) -> list[R | CallError]:
        if not messages:
            return []
        try:
            limits = self._limits_of(await self._server_info(deadline_s))
        except CallError as error:
            return [error] * len(messages)
        sizes = [message.ByteSize() for message in messages]
        room = limits.max_message_bytes - kind.request([]).ByteSize()
        alike, whole = kind.alike, kind.whole
        plan = plan_calls(
            sizes,
            [""] * len(messages) if alike is None else [alike(message) for message in messages],
            [False] * len(messages) if whole is None else [whole(message) for message in messages],
            max_items=min(limits.max_items, self._config.max_call_items),
            max_message_bytes=room,
            max_item_bytes=limits.max_item_bytes,
        )
        outcomes: dict[int, R | CallError] = {}
        for index in plan.too_large:
            size = sizes[index]
            most = min(limits.max_item_bytes, max(0, room - framed_bytes(size) + size))
            text = f"the {self.noun} has {size} bytes, and this server takes {most}; shorten it"
            outcomes[index] = kind.fault(
                messages[index].id, make_fault(Reason.ITEM_TOO_LARGE, text)
            )
        for index in plan.groups_too_large:
            group = messages[index].group_id
            text = f"the group {group!r} does not fit into one call; make it smaller"
            outcomes[index] = kind.fault(
                messages[index].id, make_fault(Reason.BATCH_TOO_LARGE, text)
            )
        calls = [
            self._call(kind, [messages[i] for i in batch], deadline_s) for batch in plan.batches
        ]
        for batch, answers in zip(plan.batches, await asyncio.gather(*calls), strict=True):
            outcomes.update(zip(batch, answers, strict=True))
        return [outcomes[index] for index in range(len(messages))]

    async def _call(
        self, kind: CallKind[R], messages: list[Any], deadline_s: float
    ) -> Sequence[R | CallError]:
        request = kind.request(messages)
        place = self._gate.place()

        async def attempt(_remaining_s: float) -> Any:
            return await self._attempt(kind.method, request, place, deadline_s)

        try:
            response = await call_with_retries(attempt, self._config.retry, deadline_s, self._sleep)
        except CallError as error:
            return [error] * len(messages)
        return match_all(kind, messages, response.results, self.noun)

    async def _attempt(self, method: str, request: Any, place: int, deadline_s: float) -> Any:
        gate, loop = self._gate, asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline_s):
                    number = await stack.enter_async_context(gate.pass_through(place))
            except TimeoutError:
                raise self._late() from None
            began_s = loop.time()
            remaining_s = max(deadline_s - began_s, 0.001)
            try:
                response = await self._transport.call(method, request, timeout_s=remaining_s)
            except CallError as error:
                if is_congestion(error):
                    gate.window.refused(number)
                raise
            took_s = max(loop.time() - began_s, 1e-9)
            waited = min(1.0, mean_wait_s(response.results) / took_s)
            gate.window.answered(number, waited, gate.in_flight)
            return response


def is_congestion(error: CallError) -> bool:
    """Whether the server is overloaded: it refused the call for now, or was too slow."""
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return error.retry_after_s is not None
    return error.code is grpc.StatusCode.DEADLINE_EXCEEDED


def mean_wait_s(results: Sequence[Any]) -> float:
    """Mean seconds of a call's items in the server's queue, over some 32 of them.

    Items that never queue (judged in place, from the cache) count with 0.
    """
    some = results[:: max(1, len(results) // _LOOKED_AT)]
    waits_s = [seconds_of(result.timings.queue) for result in some]
    return sum(waits_s) / max(1, len(waits_s))


def settle(kind: CallKind[R], outcome: R | CallError, item_id: str, on_error: OnError) -> R:
    """An item's outcome; for a failed call, its fault.

    Raises:
        CallError: the call failed, and on_error is "raise".
    """
    if not isinstance(outcome, CallError):
        return outcome
    if on_error == "raise":
        raise outcome
    return kind.fault(item_id, fault_of_error(outcome))


def check_id(item_id: str) -> None:
    """Raises BadRequestError for an id that is longer than 256 bytes."""
    if len(item_id.encode(errors="surrogatepass")) > MAX_ITEM_ID_BYTES:
        raise refuse(
            Reason.MISSING_ITEM_ID,
            f"the id {item_id[:40]!r}... is longer than {MAX_ITEM_ID_BYTES} bytes; shorten it",
        )


def name_all(items: Sequence[Named], noun: str) -> list[str]:
    """The id of each item: its own, or its position.

    Raises:
        BadRequestError: two items share an id, or an id is too long.
    """
    ids = [item.id or str(position) for position, item in enumerate(items)]
    for item_id, count in Counter(ids).items():
        if count > 1:
            raise refuse(
                Reason.DUPLICATE_ITEM_ID,
                f"{count} {noun}s have the id {item_id!r}; make ids unique, or leave them empty",
            )
        check_id(item_id)
    return ids


def match_all(kind: CallKind[R], sent: Sequence[Any], results: Iterable[Any], noun: str) -> list[R]:
    """The outcome of each item, by id: unknown results are skipped, absent ones are faults."""
    by_id, contradicted = answers_of(results)
    matched: list[R] = []
    for message in sent:
        answer = by_id.get(message.id)
        if answer is None:
            text = f"the server answered without this {noun}"
            matched.append(kind.fault(message.id, make_fault(Reason.MISSING_RESULT, text)))
        elif message.id in contradicted:
            matched.append(kind.fault(message.id, contradiction(noun)))
        else:
            matched.append(kind.decode(message, answer))
    return matched


def answers_of(results: Iterable[Any]) -> tuple[dict[str, Any], set[str]]:
    """The results of one message by id, and the ids that it answers twice, differently."""
    by_id: dict[str, Any] = {}
    contradicted: set[str] = set()
    for result in results:
        first = by_id.setdefault(result.id, result)
        if first is not result and first != result:
            contradicted.add(result.id)
    return by_id, contradicted


def contradiction(noun: str) -> Fault:
    """The fault of an item that was answered twice, differently."""
    return make_fault(Reason.INTERNAL, f"the server answered this {noun} twice, differently")
