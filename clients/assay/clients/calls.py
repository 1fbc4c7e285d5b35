"""What the clients of batches share: splits, retries, deadlines, and who gets which outcome.

What holds, whatever happens on the way: every item gets exactly one outcome, in the items' order;
an outcome is matched to its item by id; what a server did not say is never made up. The reasons for
a fault that the client itself finds are those of `assay.clients.client`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from assay.clients.batching import framed_bytes, plan_calls
from assay.clients.client import OnError
from assay.clients.config import ClientConfig
from assay.clients.convert import fault_of_error, make_fault
from assay.clients.life import ClientLife, Closable
from assay.clients.matching import check_id
from assay.clients.retry import call_with_retries
from assay.clients.types import Fault
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason


class CallLimits(Protocol):
    """What one call to a server may hold."""

    @property
    def max_items(self) -> int:
        """Most items of one call."""

    @property
    def max_message_bytes(self) -> int:
        """Most bytes of one message."""

    @property
    def max_item_bytes(self) -> int:
        """Most bytes of one item."""


class Named(Protocol):
    """An item that may have an id."""

    @property
    def id(self) -> str:
        """The caller's name for it; empty for none."""


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
I = TypeVar("I", bound=CallLimits)  # noqa: E741  # what a server says of itself
T = TypeVar("T", bound=Closable)


@dataclass(frozen=True, slots=True)
class CallKind(Generic[R_co]):
    """One kind of call: how its items are written, sent and read.

    Attributes:
        encode: an item's message, under its id; raises ValueError or TypeError for an item that no
            message can hold.
        request: the request of some messages.
        send: carries a request within so many seconds.
        decode: what came of an item, from its message and its result.
        alike: equal for items that had better travel in one call; empty for none. None: no item
            has such a mate.
    """

    encode: Callable[[Any, str], Any]
    request: Callable[[list[Any]], Any]
    send: Callable[[Any, float], Any]
    decode: Callable[[Any, Any], R_co]
    alike: Callable[[Any], str] | None = None


class BatchClient(ClientLife[T, I]):
    """A client of batches. Belongs to the event loop that first uses it.

    A subclass says how the server is asked about itself, and has one method for each kind of call.

    Args:
        transport: what carries messages.
        target: the server's address, for errors; may be empty.
        server: what the server is, for errors: "the sandbox".
        noun: what is sent to it, for errors: "job".
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.

    Raises:
        ConfigError: The time-out is not positive.
    """

    def __init__(
        self,
        transport: T,
        *,
        target: str,
        server: str,
        noun: str,
        timeout_s: float,
        config: ClientConfig | None,
    ) -> None:
        super().__init__(
            transport, target=target, server=server, timeout_s=timeout_s, config=config
        )
        self._noun = noun

    async def _run(
        self, kind: CallKind[R], items: Sequence[Named], timeout_s: float | None, on_error: OnError
    ) -> list[R | Fault]:
        """The outcome of each item, in order."""
        deadline_s = self._begin(timeout_s)
        ids = name_all(items, self._noun)
        outcomes: dict[int, R | Fault | CallError] = {}
        messages: dict[int, Any] = {}
        for index, (item, item_id) in enumerate(zip(items, ids, strict=True)):
            try:
                messages[index] = kind.encode(item, item_id)
            except (ValueError, TypeError) as error:
                text = " ".join(str(error).split())[:200]
                outcomes[index] = make_fault(
                    Reason.UNSUPPORTED_INPUT, f"the {self._noun} cannot be sent: {text}"
                )
        outcomes.update(await self._send_all(kind, messages, deadline_s))
        results: list[R | Fault] = []
        for index in range(len(items)):
            outcome = outcomes[index]
            if isinstance(outcome, CallError):
                if on_error == "raise":
                    raise outcome
                outcome = fault_of_error(outcome)
            results.append(outcome)
        return results

    async def _send_all(
        self, kind: CallKind[R], messages: dict[int, Any], deadline_s: float
    ) -> dict[int, R | Fault | CallError]:
        """Sends messages in calls that the server takes, at the same time."""
        if not messages:
            return {}
        try:
            info = await self._server_info(deadline_s)
        except CallError as error:
            return dict.fromkeys(messages, error)
        places = list(messages)
        sizes = [messages[place].ByteSize() for place in places]
        room = info.max_message_bytes - kind.request([]).ByteSize()
        plan = plan_calls(
            sizes,
            ["" if kind.alike is None else kind.alike(messages[place]) for place in places],
            [False] * len(places),
            max_items=min(info.max_items, self._config.max_call_items),
            max_message_bytes=room,
            max_item_bytes=info.max_item_bytes,
        )
        outcomes: dict[int, R | Fault | CallError] = {}
        for index in plan.too_large:
            limit = min(
                info.max_item_bytes, max(0, room - framed_bytes(sizes[index]) + sizes[index])
            )
            outcomes[places[index]] = make_fault(
                Reason.ITEM_TOO_LARGE,
                f"the {self._noun} has {sizes[index]} bytes, and this server takes {limit}; "
                "shorten it",
            )
        batches = [[places[index] for index in batch] for batch in plan.batches]
        calls = [self._call(kind, [messages[p] for p in batch], deadline_s) for batch in batches]
        for batch, answers in zip(batches, await asyncio.gather(*calls), strict=True):
            outcomes.update(zip(batch, answers, strict=True))
        return outcomes

    async def _call(
        self, kind: CallKind[R], messages: list[Any], deadline_s: float
    ) -> Sequence[R | Fault | CallError]:
        """One call with its retries; its failure is the outcome of each of its items."""
        request = kind.request(messages)

        async def attempt(remaining_s: float) -> Any:
            return await kind.send(request, remaining_s)

        try:
            async with asyncio.timeout_at(deadline_s):
                await self._slots.acquire()
        except TimeoutError:
            return [self._late()] * len(messages)
        try:
            response = await call_with_retries(attempt, self._config.retry, deadline_s, self._sleep)
        except CallError as error:
            return [error] * len(messages)
        finally:
            self._slots.release()
        return match_all(kind, messages, response.results, self._noun)


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


def match_all(
    kind: CallKind[R], sent: Sequence[Any], results: Iterable[Any], noun: str
) -> list[R | Fault]:
    """The outcome of each item, by id: unknown results are passed over, absent ones are faults."""
    by_id: dict[str, Any] = {}
    contradicted: set[str] = set()
    for result in results:
        if by_id.setdefault(result.id, result) != result:
            contradicted.add(result.id)
    matched: list[R | Fault] = []
    for message in sent:
        answer = by_id.get(message.id)
        if answer is None:
            matched.append(
                make_fault(Reason.MISSING_RESULT, f"the server answered without this {noun}")
            )
        elif message.id in contradicted:
            matched.append(
                make_fault(Reason.INTERNAL, f"the server answered this {noun} twice, differently")
            )
        else:
            matched.append(kind.decode(message, answer))
    return matched
