r"""The asynchronous client of a reward server: batches, splits, retries, deadlines; any transport.

    async with AsyncRewardClient("127.0.0.1:50051") as client:
        result = await client.score_one(Item("\\boxed{4}", reference="4", task="math"))

What holds, whatever happens on the way: every item gets exactly one result, in the items' order; a
result is matched to its item by id; a judgement is never made up. The reasons for a fault that the
client itself finds: UNREACHABLE, DEADLINE_EXCEEDED, QUEUE_FULL and their kin when the retries end,
ITEM_TOO_LARGE and UNSUPPORTED_INPUT before anything is sent, MISSING_RESULT when the server's
answer leaves an item out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.api.reward.v1 import reward_pb2
from assay.clients.batching import MicroBatcher, Waiting, plan_calls
from assay.clients.config import ClientConfig
from assay.clients.convert import fault_of_error, make_fault, server_info_from_proto
from assay.clients.life import ClientLife, check_timeout
from assay.clients.matching import check_id, encode, match_results, name_items
from assay.clients.retry import call_with_retries
from assay.clients.streaming import score_stream
from assay.clients.transport import GrpcTransport, Transport
from assay.clients.types import Fault, Item, Result, ServerInfo
from assay.rpc import tracing
from assay.rpc.errors import CallError, ConfigError
from assay.rpc.reasons import Reason
from assay.rpc.tls import ClientTls

OnError = Literal["fault", "raise"]
Outcome = Result | CallError


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """An item of a `score_one` caller: its message and the id that the caller knows."""

    message: reward_pb2.Item
    item_id: str


class AsyncRewardClient(ClientLife[Transport, ServerInfo]):
    """Scores items on a reward server. Belongs to the event loop that first uses it.

    Args:
        target: the server's address, "host:port"; or its replicas, "dns:///name:port" or
            "ip:port,ip:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, retries included, in seconds.
        config: batching and retries.
        transport: what carries messages instead of gRPC; then `target` only names it in errors.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        config: ClientConfig | None = None,
        transport: Transport | None = None,
    ) -> None:
        check_client(target, transport, timeout_s)
        super().__init__(
            transport or GrpcTransport(target, tls=tls, token=token),
            target=target,
            server="the scorer",
            timeout_s=timeout_s,
            config=config,
        )
        self._numbers = itertools.count()
        self._batcher: MicroBatcher[_Outgoing, Outcome] = MicroBatcher(
            self._send_batch, self._config.micro_batch_items, self._config.micro_batch_wait_s
        )

    async def score(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> list[Result]:
        """Scores a list of items, in as many calls as the server's limits ask for.

        Args:
            items: what to score. Those without an id are numbered from 0.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: what becomes of a call that failed after its retries: a fault of each of its
                items, or an exception.

        Returns:
            One result for each item, in the items' order. No items: no results.

        Raises:
            BadRequestError: Ids are not unique, or too long.
            CallError: A call failed, and on_error is "raise".
            ConfigError: The client is closed, or belongs to another event loop.
        """
        deadline_s = self._begin(timeout_s)
        batch = list(items)
        ids = name_items(batch)
        if not batch:
            return []
        encoded = [encode(item, item_id) for item, item_id in zip(batch, ids, strict=True)]
        messages = [message for message in encoded if isinstance(message, reward_pb2.Item)]
        with tracing.span("score", {"assay.items": len(batch)}) as span:
            outcomes = iter(await self._score_messages(messages, deadline_s))
            results = []
            for item_id, message in zip(ids, encoded, strict=True):
                outcome = Result(item_id, message) if isinstance(message, Fault) else next(outcomes)
                results.append(_settle(outcome, item_id, on_error))
            if span.recording:
                span.note({"assay.faults": sum(result.fault is not None for result in results)})
        return results

    async def score_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Result:
        """Scores one item, in one call with those of other concurrent callers (64 items or 2 ms).

        Items that are judged against others of their group belong into one `score`, not here.

        Args:
            item: what to score. Ids of different callers may be equal.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: what becomes of a call that failed after its retries: a fault, or an
                exception.

        Raises:
            BadRequestError: The id is too long.
            CallError: The call failed, and on_error is "raise".
            ConfigError: The client is closed, or belongs to another event loop.
        """
        deadline_s = self._begin(timeout_s)
        item_id = item.id or str(next(self._numbers))
        check_id(item_id)
        message = encode(item, item_id)
        if isinstance(message, Fault):
            return Result(item_id, message)
        outcome: Outcome
        try:
            outcome = await self._batcher.submit(_Outgoing(message, item_id), deadline_s)
        except TimeoutError:
            outcome = self._late()
        return _settle(outcome, item_id, on_error)

    def stream(
        self,
        items: AsyncIterable[Item | Sequence[Item]],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
        on_retry: Callable[[CallError], None] = lambda _error: None,
    ) -> AsyncIterator[Result]:
        """Scores items as they come and yields results as they are ready, in any order.

        Args:
            items: what to score, as rollouts end. A sequence travels whole: the samples of one
                group. Items without an id are numbered from 0.
            timeout_s: the whole time that the stream may take, in seconds. None: the client's.
            on_error: what becomes of the items without a result when the stream breaks: faults, or
                an exception.
            on_retry: called with each failure after which the stream is opened again.

        Raises:
            BadRequestError: Ids are not unique over the stream, or too long.
            CallError: The stream broke, and on_error is "raise".
            ConfigError: The client is closed, or belongs to another event loop.
        """
        return self._stream(items, timeout_s, on_error, on_retry)

    async def _stream(
        self,
        items: AsyncIterable[Item | Sequence[Item]],
        timeout_s: float | None,
        on_error: OnError,
        on_retry: Callable[[CallError], None],
    ) -> AsyncIterator[Result]:
        deadline_s = self._begin(timeout_s)
        info = await self._server_info(deadline_s)
        results = score_stream(
            self._transport,
            items,
            info.limits,
            self._config,
            deadline_s,
            raises=on_error == "raise",
            on_retry=on_retry,
        )
        async for result in results:
            yield result

    async def list_verifiers(self, *, timeout_s: float | None = None) -> ServerInfo:
        """Asks what the server judges, and its limits.

        Raises:
            CallError: The call failed after its retries.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        return await self._refresh_info(timeout_s)

    async def close(self) -> None:
        """Ends every call: who still waits gets a fault, CANCELLED. May be called twice."""
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
        return server_info_from_proto(
            await self._transport.list_verifiers(request, timeout_s=timeout_s)
        )

    async def _score_messages(
        self, messages: Sequence[reward_pb2.Item], deadline_s: float
    ) -> list[Outcome]:
        """The outcome of each message, in order. Ids are unique."""
        if not messages:
            return []
        try:
            info = await self._server_info(deadline_s)
        except CallError as error:
            return [error] * len(messages)
        plan = plan_calls(
            [message.ByteSize() for message in messages],
            [message.group_id for message in messages],
            [bool(m.group_id) and _needs_group(info, m) for m in messages],
            max_items=min(info.limits.max_items, self._config.max_call_items),
            max_message_bytes=info.limits.max_message_bytes,
            max_item_bytes=info.limits.max_item_bytes,
        )
        outcomes: dict[int, Outcome] = {}
        for index in plan.too_large:
            size, limit = messages[index].ByteSize(), info.limits.max_item_bytes
            text = f"the item has {size} bytes, and this server takes {limit}; shorten it"
            outcomes[index] = Result(messages[index].id, make_fault(Reason.ITEM_TOO_LARGE, text))
        for index in plan.groups_too_large:
            group = messages[index].group_id
            text = f"the group {group!r} does not fit into one call; make it smaller"
            outcomes[index] = Result(messages[index].id, make_fault(Reason.BATCH_TOO_LARGE, text))
        calls = [self._call([messages[i] for i in batch], deadline_s) for batch in plan.batches]
        for batch, answers in zip(plan.batches, await asyncio.gather(*calls), strict=True):
            outcomes.update(zip(batch, answers, strict=True))
        return [outcomes[index] for index in range(len(messages))]

    async def _call(self, messages: list[reward_pb2.Item], deadline_s: float) -> Sequence[Outcome]:
        """One call with its retries; its failure is the outcome of each of its items."""
        request = reward_pb2.BatchScoreRequest(items=messages)

        async def attempt(remaining_s: float) -> reward_pb2.BatchScoreResponse:
            return await self._transport.batch_score(request, timeout_s=remaining_s)

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
        return match_results(messages, response.results)

    async def _send_batch(self, batch: list[Waiting[_Outgoing, Outcome]]) -> None:
        """Scores what `score_one` callers gathered; ids that clash are replaced on the wire."""
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
        outcomes = await self._score_messages(messages, deadline_s)
        for caller, outcome in zip(waiting, outcomes, strict=True):
            if caller.answer.done():
                continue
            if isinstance(outcome, Result):
                outcome = dataclasses.replace(outcome, id=caller.value.item_id)  # noqa: PLW2901  # the caller's own id
            caller.answer.set_result(outcome)


def check_client(target: str, transport: object, timeout_s: float) -> None:
    """Checks what a client, awaited or not, is made with.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """
    if not target and transport is None:
        raise ConfigError("no address of a reward server; pass one, such as '127.0.0.1:50051'")
    check_timeout(timeout_s)


def _needs_group(info: ServerInfo, message: reward_pb2.Item) -> bool:
    """Whether an item's judgement needs its group; yes where the server does not say."""
    verifier = info.find(message.verifier, message.task)
    return verifier is None or verifier.needs_group


def _settle(outcome: Outcome, item_id: str, on_error: OnError) -> Result:
    if isinstance(outcome, Result):
        return outcome
    if on_error == "raise":
        raise outcome
    return Result(item_id, fault_of_error(outcome))
