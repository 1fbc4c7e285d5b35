"""One channel to a service: one message each way, many back (`receive`), many both ways (`stream`).

A method has its full name in the contract, "assay.api.reward.v1.RewardService.BatchScore"; its
messages follow from the descriptor, so one channel serves every service. A call that fails raises
`CallError` with any transport.

The wire is gRPC's blocking channel, awaited from an event loop. Compared with grpc.aio (1.85) it
takes the same CPU and less time (docs/understand/results/services.md); a forked child can open it
anew; and it keeps the status of a stream that the server ends while a message is being written. A
stream of responses is read by a thread that is kept for the next one: as fast as one response.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import aclosing
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass

from assay.clients.core.failures import call_span, closed_error, error_of_call, new_request_id
from assay.clients.core.readers import CallAside, Readers
from assay.kit.calls import METADATA_KEY, snake_case
from assay.kit.channels import Metadata, open_blocking_channel
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.kit.spans import TraceSpan
from assay.kit.tls import ClientTls

T = TypeVar("T")
_CHUNKS_AHEAD = 4


class Transport(Protocol):
    """Carries messages to a service. Used on one event loop."""

    async def call(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Any:
        """Sends one message to the method "package.Service.Method" and returns the response.

        Raises:
            CallError: The call as a whole failed.
        """

    def receive(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> AsyncGenerator[Any, None]:
        """Sends one message and yields the responses; closing the iterator cancels the call.

        Raises:
            CallError: The stream broke. Earlier responses stay valid.
        """

    def stream(
        self, method: str, requests: AsyncIterator[Any], *, timeout_s: float
    ) -> AsyncIterator[Any]:
        """Carries a stream until the requests have ended and all are answered.

        Raises:
            CallError: The stream broke. Earlier responses stay valid.
        """

    async def close(self) -> None:
        """Ends every call and closes the connection."""


class Method(NamedTuple):
    """A method of the contract, as gRPC takes it."""

    service: str
    path: str
    kind: str
    serialise: Callable[[Any], bytes]
    parse: Callable[[bytes], Any]


@lru_cache(maxsize=64)
def describe(method: str) -> Method:
    """A method of the contract, by its full name; the generated module must be imported.

    Raises:
        KeyError: there is no such method.
    """
    found = descriptor_pool.Default().FindMethodByName(method)
    many = "stream_stream" if found.client_streaming else "unary_stream"
    return Method(
        found.containing_service.name,
        f"/{found.containing_service.full_name}/{found.name}",
        many if found.server_streaming else "unary_unary",
        GetMessageClass(found.input_type).SerializeToString,
        GetMessageClass(found.output_type).FromString,
    )


class GrpcTransport:
    """The wire. Its channel is opened at the first call, in the process of that call.

    `target` is the server's address, or its replicas; see `assay.kit.channels`.
    """

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._target = target
        self._tls = tls
        self._token = token
        self._channel: grpc.Channel | None = None
        self._fixed: Metadata = ()
        self._calls: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._readers = Readers()
        self._closed = False

    async def call(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Any:
        """See `Transport`; the event loop is not blocked."""
        ask, found = self._open(method), describe(method)
        request_id = new_request_id()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        with call_span(found.path, request_id) as span:
            sent = self._metadata(request_id, span, metadata)
            call = ask.future(request, timeout=timeout_s, metadata=sent)
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
                raise self._failure(error, request_id, found.service) from error

    async def stream(
        self, method: str, requests: AsyncIterator[Any], *, timeout_s: float
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        ask, found = self._open(method), describe(method)
        request_id = new_request_id()
        bridge = _Bridge(requests)
        with call_span(found.path, request_id) as span:
            sent = self._metadata(request_id, span)
            call = ask(bridge.chunks(), timeout=timeout_s, metadata=sent)
            bridge.start()
            try:
                async for response in self._responses(call, bridge.incoming, request_id, found):
                    yield response
            finally:
                bridge.stop()
                call.cancel()

    async def receive(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        ask, found = self._open(method), describe(method)
        request_id = new_request_id()
        with call_span(found.path, request_id) as span:
            call = ask(
                request, timeout=timeout_s, metadata=self._metadata(request_id, span, metadata)
            )
            try:
                async for response in self._responses(call, asyncio.Queue(), request_id, found):
                    yield response
            finally:
                call.cancel()

    def call_blocking(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Any:
        """`call` without an event loop, from any thread."""
        ask, found = self._open(method), describe(method)
        request_id = new_request_id()
        with call_span(found.path, request_id) as span:
            sent = self._metadata(request_id, span, metadata)
            try:
                if not _is_interrupted_by_signals():
                    return ask(request, timeout=timeout_s, metadata=sent)
                begin = partial(ask.future, request, timeout=timeout_s, metadata=sent)
                call = CallAside(self._readers, begin, lambda made: (made.result(),))
                try:
                    [response] = call
                    return response
                finally:
                    call.cancel()
            except grpc.FutureCancelledError:
                raise closed_error() from None
            except grpc.RpcError as error:
                raise self._failure(error, request_id, found.service) from error

    def receive_blocking(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Generator[Any, None, None]:
        """`receive` without an event loop, from any thread."""
        ask, found = self._open(method), describe(method)
        request_id = new_request_id()
        with call_span(found.path, request_id) as span:
            sent = self._metadata(request_id, span, metadata)
            begin = partial(ask, request, timeout=timeout_s, metadata=sent)
            aside = _is_interrupted_by_signals()
            call: Any = CallAside(self._readers, begin, iter) if aside else begin()
            try:
                yield from call
            except grpc.RpcError as error:
                raise self._failure(error, request_id, found.service) from error
            finally:
                call.cancel()

    async def _responses(
        self, call: Any, incoming: asyncio.Queue[Any], request_id: str, found: Method
    ) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        self._readers.submit(lambda: _read(call, loop, incoming))
        while (entry := await incoming.get()) is not None:
            if isinstance(entry, grpc.RpcError):
                raise self._failure(entry, request_id, found.service) from entry
            if isinstance(entry, BaseException):
                raise entry
            yield entry

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        with self._opening:
            self._closed = True
            self._calls.clear()
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _open(self, method: str) -> Any:
        if (known := self._calls.get(method)) is not None:
            return known
        with self._opening:
            if self._closed:
                raise closed_error()
            if self._channel is None:
                self._channel, self._fixed = open_blocking_channel(
                    self._target, tls=self._tls, token=self._token
                )
            found = describe(method)
            make = getattr(self._channel, found.kind)
            self._calls[method] = make(found.path, found.serialise, found.parse)
            return self._calls[method]

    def _metadata(self, request_id: str, span: TraceSpan, more: Metadata = ()) -> Metadata:
        return (*self._fixed, *more, (METADATA_KEY, request_id), *span.headers())

    def _failure(self, error: Any, request_id: str, service: str) -> CallError:
        if self._closed and error.code() is grpc.StatusCode.CANCELLED:
            return closed_error()
        return error_of_call(error, self._target, request_id, service)


class Local(Protocol):
    """A service without its network, such as assay.reward_server's RewardScorer.

    A method is in snake case: `batch_score(request, *, timeout_s)` is a coroutine, a stream an
    asynchronous iterator.
    """

    async def start(self) -> None:
        """Gets ready to serve."""

    async def close(self) -> None:
        """Ends its workers."""


class LocalTransport:
    """A service in this process.

    Args:
        service: has one method for each method of the contract.
        owned: the service is started at the first call and closed with the transport; otherwise the
            caller does both.
    """

    def __init__(self, service: Local, *, owned: bool = True) -> None:
        self._service = service
        self._owned = owned
        self._started: asyncio.Future[None] | None = None

    async def _method(self, method: str) -> Any:
        if self._owned:
            if self._started is None:
                self._started = asyncio.ensure_future(self._service.start())
            await asyncio.shield(self._started)
        return getattr(self._service, snake_case(method))

    async def call(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Any:
        """See `Transport`; there is nobody to read the metadata."""
        serve = await self._method(method)
        return await _in_time(serve(request, timeout_s=timeout_s), timeout_s)

    def receive(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        return self._responses(method, request, timeout_s)

    def stream(
        self, method: str, requests: AsyncIterator[Any], *, timeout_s: float
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        return self._responses(method, requests, timeout_s)

    async def _responses(
        self, method: str, asked: Any, timeout_s: float
    ) -> AsyncGenerator[Any, None]:
        serve = await self._method(method)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        responses = aiter(serve(asked, timeout_s=timeout_s))
        try:
            while True:
                try:
                    response = await _in_time(anext(responses), deadline_s - loop.time())
                except StopAsyncIteration:
                    return
                yield response
        finally:
            if isinstance(responses, AsyncGenerator):
                await responses.aclose()

    async def close(self) -> None:
        """Closes the service, if it is owned."""
        if self._started is not None:
            self._started = None
            await self._service.close()


class ScriptedTransport:
    """A service as its own transport, for tests: a subclass has its methods, in snake case.

    It starts nothing and keeps no deadline; use `LocalTransport` for a working service.
    """

    async def call(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> Any:
        """See `Transport`."""
        return await getattr(self, snake_case(method))(request, timeout_s=timeout_s)

    def receive(
        self, method: str, request: Any, *, timeout_s: float, metadata: Metadata = ()
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        return self.stream(method, request, timeout_s=timeout_s)

    async def stream(
        self, method: str, requests: Any, *, timeout_s: float
    ) -> AsyncGenerator[Any, None]:
        """See `Transport`."""
        async with aclosing(
            getattr(self, snake_case(method))(requests, timeout_s=timeout_s)
        ) as responses:
            async for response in responses:
                yield response

    async def close(self) -> None:
        """Nothing to end."""


async def _in_time(work: Awaitable[T], timeout_s: float) -> T:
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError as error:
        raise refuse(Reason.DEADLINE_EXCEEDED, "the service did not answer in time") from error


class _Bridge:
    """The requests of a stream on their way from an event loop to gRPC's thread."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self.incoming: asyncio.Queue[Any]
        self.incoming = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._outgoing: queue.SimpleQueue[Any | None]
        self._outgoing = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_CHUNKS_AHEAD)
        self._requests = requests
        self._feeder: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._feeder = self._loop.create_task(self._feed())
        self._feeder.add_done_callback(self._hand_on_defect)

    def stop(self) -> None:
        if self._feeder is not None:
            self._feeder.cancel()
        self._outgoing.put(None)

    def chunks(self) -> Iterator[Any]:
        while (chunk := self._outgoing.get()) is not None:
            yield chunk
            _on_loop(self._loop, self._room.release)

    async def _feed(self) -> None:
        async for chunk in self._requests:
            await self._room.acquire()
            self._outgoing.put(chunk)
        self._outgoing.put(None)

    def _hand_on_defect(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.incoming.put_nowait(error)


def _read(call: Any, loop: asyncio.AbstractEventLoop, incoming: asyncio.Queue[Any]) -> None:
    """Hands a call's responses to a loop, then what broke it, or None."""
    end: BaseException | None = None
    try:
        for response in call:
            _on_loop(loop, partial(incoming.put_nowait, response))
    except grpc.RpcError as error:
        end = error
    _on_loop(loop, partial(incoming.put_nowait, end))


def _is_interrupted_by_signals() -> bool:
    """Whether a KeyboardInterrupt may come in this thread."""
    return threading.get_ident() == threading.main_thread().ident


def _on_loop(loop: asyncio.AbstractEventLoop, action: Any) -> None:
    """Runs a callback on the loop; does nothing where the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    _on_loop(loop, lambda: None if done.done() else done.set_result(None))
