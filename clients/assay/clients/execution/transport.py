"""The seam of the execution clients: a client is policy, a transport carries one message.

`GrpcExecutionTransport` is the wire for one event loop, `BlockingExecutionTransport` the wire for
processes that fork (see `assay.clients.threads`). Whatever the transport, a call that fails raises
`CallError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

import grpc

from assay.api.execution.v1 import execution_pb2, execution_pb2_grpc
from assay.clients.failures import carry, closed_error
from assay.clients.threads import BlockingWire
from assay.rpc.channels import open_channel
from assay.rpc.tls import ClientTls

SERVICE = "sandbox"


class ExecutionTransport(Protocol):
    """Carries messages to a sandbox. Used on one event loop."""

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        """Carries one batch of programs.

        Raises:
            CallError: The call as a whole failed.
        """

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        """Carries one batch of programs under test.

        Raises:
            CallError: The call as a whole failed.
        """

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        """Asks what the sandbox runs.

        Raises:
            CallError: The call failed.
        """

    def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        """Carries a stream of chunks; ends when the requests have ended and all is answered.

        Raises:
            CallError: The stream broke. Responses that came before stay valid.
        """

    async def close(self) -> None:
        """Ends every call and lets go of the server."""


class BlockingExecutionTransport:
    """The wire, over gRPC's blocking channel, opened at the first call, in its process."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._wire = BlockingWire(target, tls=tls, token=token, service=SERVICE)

    def _stub(self) -> execution_pb2_grpc.ExecutionServiceStub:
        return execution_pb2_grpc.ExecutionServiceStub(self._wire.channel())

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        """Carries one batch of programs; see `ExecutionTransport`."""
        response: execution_pb2.ExecuteResponse = await self._wire.call(
            self._stub().Execute, request, timeout_s
        )
        return response

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        """Carries one batch of programs under test; see `ExecutionTransport`."""
        response: execution_pb2.RunTestsResponse = await self._wire.call(
            self._stub().RunTests, request, timeout_s
        )
        return response

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        """Asks what the sandbox runs; see `ExecutionTransport`."""
        response: execution_pb2.ListLanguagesResponse = await self._wire.call(
            self._stub().ListLanguages, request, timeout_s
        )
        return response

    async def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        """Carries a stream; see `ExecutionTransport`."""
        stream = self._wire.stream(
            self._stub().StreamRunTests, execution_pb2.StreamRunTestsRequest, requests, timeout_s
        )
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        await self._wire.close()


class GrpcExecutionTransport:
    """The wire, over grpc.aio, opened at the first call, on the event loop of that call."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._target = target
        self._tls = tls
        self._token = token
        self._channel: grpc.aio.Channel | None = None
        self._streams: BlockingExecutionTransport | None = None
        self._closed = False

    def _stub(self) -> execution_pb2_grpc.ExecutionServiceAsyncStub:
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._channel = open_channel(self._target, tls=self._tls, token=self._token)
        return execution_pb2_grpc.ExecutionServiceStub(self._channel)

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        """Carries one batch of programs; see `ExecutionTransport`."""
        response: execution_pb2.ExecuteResponse = await self._call(
            self._stub().Execute, request, timeout_s
        )
        return response

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        """Carries one batch of programs under test; see `ExecutionTransport`."""
        response: execution_pb2.RunTestsResponse = await self._call(
            self._stub().RunTests, request, timeout_s
        )
        return response

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        """Asks what the sandbox runs; see `ExecutionTransport`."""
        response: execution_pb2.ListLanguagesResponse = await self._call(
            self._stub().ListLanguages, request, timeout_s
        )
        return response

    async def _call(self, method: Any, request: object, timeout_s: float) -> Any:
        return await carry(method, request, timeout_s, self._target, SERVICE)

    async def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        """Carries a stream, over gRPC's blocking channel; see `assay.clients.transport`."""
        if self._closed:
            raise closed_error()
        if self._streams is None:
            self._streams = BlockingExecutionTransport(
                self._target, tls=self._tls, token=self._token
            )
        stream: Any = self._streams.stream_run_tests(requests, timeout_s=timeout_s)
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
