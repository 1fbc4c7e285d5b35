"""The seam of the judging clients: a client is policy, a transport carries one message.

`GrpcJudgeTransport` is the wire for one event loop, `BlockingJudgeTransport` the wire for processes
that fork (see `assay.clients.threads`). Whatever the transport, a call that fails raises
`CallError`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, cast

import grpc

from assay.api.judge.v1 import judge_pb2_grpc
from assay.api.process.v1 import process_pb2_grpc
from assay.clients.failures import carry, closed_error
from assay.clients.threads import BlockingWire
from assay.rpc.channels import open_channel
from assay.rpc.tls import ClientTls

SERVICE = "genrm"
Method = Literal[
    "JudgeResponses",
    "JudgePairs",
    "JudgeGroups",
    "ListJudgeModels",
    "ScoreSteps",
    "ScoreSelfVerification",
    "ListProcessModels",
]
_PROCESS = frozenset({"ScoreSteps", "ScoreSelfVerification", "ListProcessModels"})


class JudgeTransport(Protocol):
    """Carries messages to a judge service. Used on one event loop."""

    async def call(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """Carries one request of `method` (JudgeService, ProcessRewardService) to its response.

        Raises:
            CallError: The call as a whole failed.
        """

    async def close(self) -> None:
        """Ends every call and lets go of the server."""


class BlockingJudgeTransport:
    """The wire, over gRPC's blocking channel, opened at the first call, in its process."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._wire = BlockingWire(target, tls=tls, token=token, service=SERVICE)

    async def call(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """Carries one request; see `JudgeTransport`."""
        return await self._wire.call(_method(self._wire.channel(), method), request, timeout_s)

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        await self._wire.close()


class GrpcJudgeTransport:
    """The wire, over grpc.aio, opened at the first call, on the event loop of that call."""

    def __init__(
        self, target: str, *, tls: ClientTls | None = None, token: str | None = None
    ) -> None:
        self._target = target
        self._tls = tls
        self._token = token
        self._channel: grpc.aio.Channel | None = None
        self._closed = False

    async def call(self, method: Method, request: Any, *, timeout_s: float) -> Any:
        """Carries one request; see `JudgeTransport`."""
        if self._closed:
            raise closed_error()
        if self._channel is None:
            self._channel = open_channel(self._target, tls=self._tls, token=self._token)
        ask = _method(self._channel, method)
        return await carry(ask, request, timeout_s, self._target, SERVICE)

    async def close(self) -> None:
        """Closes the channel; running calls end with CANCELLED."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()
            self._channel = None


def _method(channel: grpc.Channel | grpc.aio.Channel, method: Method) -> Any:
    """The method of the service that has it, on this channel."""
    either = cast("grpc.Channel", channel)  # the stubs take both kinds
    if method in _PROCESS:
        return getattr(process_pb2_grpc.ProcessRewardServiceStub(either), method)
    return getattr(judge_pb2_grpc.JudgeServiceStub(either), method)
