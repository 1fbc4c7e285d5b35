"""The seam of the clients: a client is policy, a transport carries one message.

`GrpcTransport` is the wire for one event loop, `LocalTransport` a scorer in this very process;
`assay.clients.threads` has the wire for processes that fork. Whatever the transport, a call that
fails raises `CallError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from typing import Protocol, TypeVar

import grpc

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients.failures import carry, closed_error
from assay.clients.threads import BlockingGrpcTransport
from assay.rpc.channels import open_channel
from assay.rpc.errors import refuse
from assay.rpc.reasons import Reason
from assay.rpc.tls import ClientTls

T = TypeVar("T")


class Transport(Protocol):
    """Carries messages to a reward server. Used on one event loop."""

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Carries one batch.

        Raises:
            CallError: The call as a whole failed.
        """

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """Asks what the server judges.

        Raises:
            CallError: The call failed.
        """

    def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Carries a stream of chunks; ends when the requests have ended and all is answered.

        Raises:
            CallError: The stream broke. Responses that came before stay valid.
        """

    async def close(self) -> None:
        """Ends every call and lets go of the server."""


class Scorer(Protocol):
    """A reward server without its network, such as assay.reward_server's RewardScorer."""

    async def start(self) -> None:
        """Gets ready to score."""

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Scores a batch."""

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """Says what it judges."""

    def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Scores a stream."""

    async def close(self) -> None:
        """Ends its workers."""


class GrpcTransport:
    """The wire, over grpc.aio, opened at the first call, on the event loop of that call."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._target = target
        self._tls = tls
        self._token = token
        self._channel: grpc.aio.Channel | None = None
        self._streams: BlockingGrpcTransport | None = None
        self._closed = False

    def _stub(self) -> reward_pb2_grpc.RewardServiceAsyncStub:
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._channel = open_channel(self._target, tls=self._tls, token=self._token)
        return reward_pb2_grpc.RewardServiceStub(self._channel)

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Carries one batch; see `Transport`."""
        return await carry(self._stub().BatchScore, request, timeout_s, self._target)

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """Asks what the server judges; see `Transport`."""
        return await carry(self._stub().ListVerifiers, request, timeout_s, self._target)

    async def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Carries a stream; see `Transport`.

        Over gRPC's blocking channel: grpc.aio (1.85) loses the status of a stream that the server
        ends while a message is being written, and says "Internal error from Core" instead.
        """
        if self._closed:
            raise closed_error()
        if self._streams is None:
            self._streams = BlockingGrpcTransport(self._target, tls=self._tls, token=self._token)
        stream = self._streams.stream_score(requests, timeout_s=timeout_s)
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        self._closed = True
        if self._streams is not None:
            await self._streams.close()
        if self._channel is not None:
            await self._channel.close()
            self._channel = None


class LocalTransport:
    """A scorer in this process, which the transport owns.

    It is started at the first call and closed with the transport.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._started: asyncio.Future[None] | None = None

    async def _ready(self) -> Scorer:
        if self._started is None:
            self._started = asyncio.ensure_future(self._scorer.start())
        await asyncio.shield(self._started)
        return self._scorer

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Scores one batch; see `Transport`."""
        scorer = await self._ready()
        return await _in_time(scorer.batch_score(request, timeout_s=timeout_s), timeout_s)

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """Asks what the scorer judges; see `Transport`."""
        scorer = await self._ready()
        return await _in_time(scorer.list_verifiers(request, timeout_s=timeout_s), timeout_s)

    async def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        """Scores a stream; see `Transport`."""
        scorer = await self._ready()
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        responses = aiter(scorer.stream_score(requests, timeout_s=timeout_s))
        try:
            while True:
                try:
                    remaining_s = deadline_s - asyncio.get_running_loop().time()
                    response = await _in_time(anext(responses), remaining_s)
                except StopAsyncIteration:
                    return
                yield response
        finally:
            if isinstance(responses, AsyncGenerator):
                await responses.aclose()

    async def close(self) -> None:
        """Closes the scorer."""
        if self._started is not None:
            self._started = None
            await self._scorer.close()


async def _in_time(work: Awaitable[T], timeout_s: float) -> T:
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError as error:
        raise refuse(Reason.DEADLINE_EXCEEDED, "the scorer did not answer in time") from error
