"""Sessions in tests: a service over the real wire, with a host that does as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from assay.kit.channels import open_channel
from assay.kit.errors import CallError, call_error, status_sent
from assay.kit.pool.link import Command
from assay.kit.serving import RunningServer, ServeConfig, start
from assay.sandbox.service import session_service
from assay.sandbox.sessions.core import SessionSettings
from assay.sandbox.sessions.requests import SessionRules
from assay.sandbox.sessions.service import Sessions
from assay.sandbox.sessions.settings import Allowance

TIMEOUT_S = 30.0
USUAL = Allowance()
RULES = SessionRules(USUAL, USUAL, 60.0, 600.0)
_TESTS = str(Path(__file__).resolve().parent)
new_stub: Any = session_pb2_grpc.SessionServiceStub  # its stubs know synchronous channels only


def scripted(script: str = "") -> Command:
    """The host of `sessions_host`."""
    path = os.pathsep.join([_TESTS, *filter(None, sys.path)])
    arguments = ("--script", script) if script else ()
    return Command("the host", "sessions_host", arguments, {**os.environ, "PYTHONPATH": path})


def settings(**changes: Any) -> SessionSettings:
    """Of a small service."""
    usual: dict[str, Any] = {
        "replica": "here:1",
        "rules": RULES,
        "places": 8,
        "per_tenant": 0,
        "cells": 4,
        "waiting_cells": 100,
        "drain_s": 0.0,
    }
    return SessionSettings(**(usual | changes))


class Caller:
    """Calls the methods over gRPC; a failed one raises its CallError."""

    def __init__(self, channel: grpc.aio.Channel, replica: str = "", token: str = "") -> None:
        self.stub = new_stub(channel)
        self._metadata = [("assay-replica", replica)] if replica else []
        self._metadata += [("authorization", f"Bearer {token}")] if token else []

    async def call(self, method: str, request: Any, timeout_s: float = TIMEOUT_S) -> Any:
        try:
            return await getattr(self.stub, method)(
                request, timeout=timeout_s, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise _error(error) from error

    def begin(self, session_id: str, code: str, timeout_s: float = TIMEOUT_S) -> Any:
        """A cell, as gRPC's own call."""
        request = session_pb2.ExecuteRequest(session_id=session_id, code=code)
        return self.stub.Execute(request, timeout=timeout_s, metadata=self._metadata)

    async def events(self, call: Any) -> list[session_pb2.ExecuteResponse]:
        try:
            return [event async for event in call]
        except grpc.aio.AioRpcError as error:
            raise _error(error) from error

    async def run(
        self, session_id: str, code: str, timeout_s: float = TIMEOUT_S
    ) -> session_pb2.CellResult:
        events = await self.events(self.begin(session_id, code, timeout_s))
        assert [event.HasField("result") for event in events].count(True) == 1
        return events[-1].result

    async def open(self, count: int = 1, **fields: Any) -> list[str]:
        request = session_pb2.CreateRequest(count=count, **fields)
        return [one.id for one in (await self.call("Create", request)).sessions]

    async def close(self, *ids: str) -> None:
        await self.call("Close", session_pb2.CloseRequest(session_ids=ids))

    async def described(self) -> session_pb2.DescribeSessionsResponse:
        request = session_pb2.DescribeSessionsRequest()
        response: session_pb2.DescribeSessionsResponse
        response = await self.call("DescribeSessions", request)
        return response


def _error(error: grpc.aio.AioRpcError) -> CallError:
    """What the server said; of gRPC itself, its code."""
    status = status_sent(error)
    if status is None:
        return CallError(error.code().name, error.details() or "", code=error.code())
    return call_error(status)


async def refused(awaited: Any) -> CallError:
    """How a call is refused."""
    try:
        await awaited
    except CallError as error:
        return error
    raise AssertionError("the call was not refused")


def counted(sessions: Sessions) -> Counter[str]:
    """The metrics by name, over all labels."""
    found: Counter[str] = Counter()
    for collector in sessions.metrics.collectors:
        for family in collector.collect():
            for sample in family.samples:
                found[sample.name.removeprefix("assay_sandbox_session")] += int(sample.value)
    return found


async def comes_true(ask: Callable[[], Awaitable[bool]]) -> None:
    """Asks until the answer is yes."""
    ends_s = time.monotonic() + TIMEOUT_S
    while not await ask():
        assert time.monotonic() < ends_s, "it did not come true"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(
    sessions: Sessions, config: ServeConfig | None = None
) -> AsyncIterator[tuple[RunningServer, Caller]]:
    """Served on a free port, and a caller of it."""
    async with (
        await start([session_service(sessions)], config or ServeConfig()) as server,
        open_channel(server.address) as channel,
    ):
        yield server, Caller(channel)
