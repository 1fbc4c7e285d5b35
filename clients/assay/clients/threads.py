"""The wire for synchronous clients: gRPC's blocking channel, used from an event loop.

A forked child cannot use grpc.aio once the parent has: the thread that polls for it does not exist
in the child. gRPC's blocking channel can be opened anew there, so `assay.clients.sync` uses this
transport, in parent and child alike.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import grpc

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients.failures import call_span, closed_error, error_of_call, new_request_id
from assay.rpc.calls import METADATA_KEY
from assay.rpc.channels import Metadata, open_blocking_channel
from assay.rpc.errors import CallError
from assay.rpc.tls import ClientTls
from assay.rpc.tracing import Span

_CHUNKS_AHEAD = 4


class BlockingWire:
    """Calls over gRPC's blocking channel, which is opened at the first one, in its process.

    Args:
        target: the server's address.
        tls: as for `open_blocking_channel`.
        token: as for `open_blocking_channel`.
        service: which service answers there, for the text of errors.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        service: str = "reward",
    ) -> None:
        self._target = target
        self._tls = tls
        self._token = token
        self._service = service
        self._channel: grpc.Channel | None = None
        self._fixed: Metadata = ()
        self._closed = False

    def channel(self) -> grpc.Channel:
        """The channel, open.

        Raises:
            CallError: the wire is closed.
        """
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._channel, self._fixed = open_blocking_channel(
                self._target, tls=self._tls, token=self._token
            )
        return self._channel

    def _metadata(self, request_id: str, span: Span) -> Metadata:
        """The metadata of one call; the channel is open by now."""
        return (*self._fixed, (METADATA_KEY, request_id), *span.headers())

    async def call(self, method: Any, request: object, timeout_s: float) -> Any:
        """Starts a call, lets the event loop go on meanwhile, and gives its response.

        Raises:
            CallError: the call failed.
        """
        request_id = new_request_id()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        with call_span(request, request_id) as span:
            metadata = self._metadata(request_id, span)
            call = method.future(request, timeout=timeout_s, metadata=metadata)
            call.add_done_callback(lambda _: _tell(loop, done))
            try:
                await done
            except asyncio.CancelledError:
                call.cancel()
                raise
            try:
                return call.result()
            except grpc.FutureCancelledError:
                raise closed_error() from None
            except grpc.RpcError as error:
                raise self._failure(error, request_id) from error

    def _failure(self, error: Any, request_id: str) -> CallError:
        if self._closed and error.code() is grpc.StatusCode.CANCELLED:
            return closed_error()
        return error_of_call(error, self._target, request_id, self._service)

    async def stream(
        self, method: Any, kind: type[Any], requests: AsyncIterator[Any], timeout_s: float
    ) -> AsyncGenerator[Any, None]:
        """Carries a stream both ways.

        Args:
            method: of a stub.
            kind: the class of the requests.
            requests: what is sent.
            timeout_s: how long it may take.

        Raises:
            CallError: the stream broke.
        """
        request_id = new_request_id()
        bridge = _Bridge(requests)
        with call_span(kind, request_id) as span:
            metadata = self._metadata(request_id, span)
            call = method(bridge.chunks(), timeout=timeout_s, metadata=metadata)
            bridge.start(call)
            try:
                while (entry := await bridge.incoming.get()) is not None:
                    if isinstance(entry, grpc.RpcError):
                        raise self._failure(entry, request_id) from entry
                    if isinstance(entry, BaseException):
                        raise entry
                    yield entry
            finally:
                bridge.stop()
                call.cancel()

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class BlockingGrpcTransport:
    """The wire to a reward server, over gRPC's blocking channel."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._wire = BlockingWire(target, tls=tls, token=token)

    def _stub(self) -> reward_pb2_grpc.RewardServiceStub:
        return reward_pb2_grpc.RewardServiceStub(self._wire.channel())

    async def batch_score(
        self, request: reward_pb2.BatchScoreRequest, *, timeout_s: float
    ) -> reward_pb2.BatchScoreResponse:
        """Carries one batch; see `assay.clients.transport.Transport`."""
        response: reward_pb2.BatchScoreResponse = await self._wire.call(
            self._stub().BatchScore, request, timeout_s
        )
        return response

    async def list_verifiers(
        self, request: reward_pb2.ListVerifiersRequest, *, timeout_s: float
    ) -> reward_pb2.ListVerifiersResponse:
        """Asks what the server judges; see `assay.clients.transport.Transport`."""
        response: reward_pb2.ListVerifiersResponse = await self._wire.call(
            self._stub().ListVerifiers, request, timeout_s
        )
        return response

    async def stream_score(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], *, timeout_s: float
    ) -> AsyncGenerator[reward_pb2.StreamScoreResponse, None]:
        """Carries a stream; see `assay.clients.transport.Transport`."""
        stream = self._wire.stream(
            self._stub().StreamScore, reward_pb2.StreamScoreRequest, requests, timeout_s
        )
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        await self._wire.close()


class _Bridge:
    """One stream between an event loop and two threads: one sends chunks, one reads answers."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self.incoming: asyncio.Queue[Any]
        self.incoming = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._outgoing: queue.SimpleQueue[Any | None]
        self._outgoing = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_CHUNKS_AHEAD)
        self._requests = requests
        self._feeder: asyncio.Task[None] | None = None

    def start(self, call: Any) -> None:
        """Lets chunks out and answers in."""
        threading.Thread(target=self._read, args=(call,), name="assay-stream", daemon=True).start()
        self._feeder = self._loop.create_task(self._feed())
        self._feeder.add_done_callback(self._hand_on_defect)

    def stop(self) -> None:
        """Ends the feeding, and the thread that waits for a chunk."""
        if self._feeder is not None:
            self._feeder.cancel()
        self._outgoing.put(None)

    def chunks(self) -> Iterator[Any]:
        """What gRPC's sending thread takes."""
        while (chunk := self._outgoing.get()) is not None:
            yield chunk
            _on_loop(self._loop, self._room.release)

    def _read(self, call: Any) -> None:
        end: BaseException | None = None
        try:
            for response in call:
                self._put(response)
        except grpc.RpcError as error:
            end = error
        self._put(end)

    def _put(self, entry: Any) -> None:
        _on_loop(self._loop, lambda: self.incoming.put_nowait(entry))

    async def _feed(self) -> None:
        async for chunk in self._requests:
            await self._room.acquire()
            self._outgoing.put(chunk)
        self._outgoing.put(None)

    def _hand_on_defect(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.incoming.put_nowait(error)


def _on_loop(loop: asyncio.AbstractEventLoop, action: Any) -> None:
    """Runs a callback on the loop, or not at all where the loop is closed and nobody waits."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    _on_loop(loop, lambda: None if done.done() else done.set_result(None))
