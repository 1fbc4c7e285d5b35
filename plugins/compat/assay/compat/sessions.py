"""The sessions of the sandbox in this process, for formats that are served by them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.kit.durations import duration
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.sandbox.http import SandboxFront
from assay.sandbox.sessions.service import Sessions as SandboxSessions

_CLOSE_S = 10.0
_SETTLE_S = 0.02
_Response = TypeVar("_Response")


class Cell(NamedTuple):
    """What came of a cell.

    Attributes:
        result: how it ended.
        displays: what it showed before its value, in order.
    """

    result: session_pb2.CellResult
    displays: list[session_pb2.DisplayValue]


class LocalSessions:
    """Methods of `SessionService`, in this process and for the caller's tenant.

    Deadlines are by the clock of the loop. What fails raises CallError, with the reasons of
    session.proto. A session that is not free yet is waited for: nothing was done.
    """

    def __init__(self, front: SandboxFront) -> None:
        self._front = front
        self._limits: session_pb2.SessionLimits | None = None

    @property
    def _service(self) -> SandboxSessions:
        if self._front.sessions is None:
            raise refuse(Reason.NO_SESSIONS, "this server keeps no sessions")
        return self._front.sessions

    async def max_limits(self, due_s: float) -> session_pb2.SessionLimits:
        """The greatest limits that a session may have."""
        if self._limits is None:
            request = session_pb2.DescribeSessionsRequest()
            described = await self._service.describe_sessions(request, timeout_s=left(due_s))
            self._limits = described.max_limits
        return self._limits

    async def create(self, request: session_pb2.CreateRequest, due_s: float) -> session_pb2.Session:
        """Opens one session; waits until the deadline where all places are taken."""
        while True:
            try:
                created = await self._service.create(request, timeout_s=left(due_s))
            except CallError as error:
                pause_s = error.retry_after_s
                if pause_s is None or pause_s >= left(due_s):
                    raise
                await asyncio.sleep(max(pause_s, 0.01))
            else:
                session: session_pb2.Session = created.sessions[0]
                return session

    async def events(
        self, session_id: str, code: str, due_s: float, *, wall_s: float | None = None
    ) -> AsyncGenerator[session_pb2.ExecuteResponse, None]:
        """Runs a cell; the last event holds its result. Closing the generator interrupts it."""
        request = session_pb2.ExecuteRequest(session_id=session_id, code=code)
        if wall_s is not None:
            request.wall_time.CopyFrom(duration(wall_s))
        begun = False
        while True:
            try:
                running = self._service.execute(request, timeout_s=left(due_s))
                async with aclosing(running) as events:
                    async for event in events:
                        begun = True
                        yield event
            except CallError as error:
                if begun or not _is_settling(error, due_s):
                    raise
                await asyncio.sleep(_SETTLE_S)
            else:
                return

    async def run(
        self,
        session_id: str,
        code: str,
        due_s: float,
        *,
        wall_s: float | None = None,
    ) -> Cell:
        """Runs a cell to its end."""
        displays = []
        async with aclosing(self.events(session_id, code, due_s, wall_s=wall_s)) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "display":
                        displays.append(event.display)
                    case "result":
                        return Cell(event.result, displays)
        raise refuse(Reason.SESSION_LOST, "the cell has no result")

    async def put(self, request: session_pb2.PutFilesRequest, due_s: float) -> None:
        """Writes files."""
        await _settled(self._service.put_files, request, due_s)

    async def get(
        self, session_id: str, paths: list[str], due_s: float
    ) -> list[session_pb2.SessionFile]:
        """Reads files, or lists all of them."""
        request = session_pb2.GetFilesRequest(session_id=session_id, paths=paths)
        response = await _settled(self._service.get_files, request, due_s)
        return list(response.files)

    async def fork(
        self, request: session_pb2.ForkRequest, due_s: float
    ) -> list[session_pb2.Session]:
        """Copies a session."""
        response = await _settled(self._service.fork, request, due_s)
        return list(response.sessions)

    async def renew(
        self, session_ids: list[str], due_s: float, *, lease_s: float | None = None
    ) -> list[session_pb2.Session]:
        """Extends leases; what is gone is left out."""
        request = session_pb2.RenewRequest(session_ids=session_ids)
        if lease_s is not None:
            request.lease.CopyFrom(duration(lease_s))
        response = await self._service.renew(request, timeout_s=left(due_s))
        return list(response.sessions)

    async def anew(
        self, session_id: str, request: session_pb2.CreateRequest, due_s: float
    ) -> session_pb2.Session:
        """Another session with the files of one, which is closed."""
        paths = [file.path for file in await self.get(session_id, [], due_s)]
        files = await self.get(session_id, paths, due_s) if paths else []
        request.files.extend(
            execution_pb2.SourceFile(path=file.path, content=file.content) for file in files
        )
        await self.close([session_id])
        return await self.create(request, due_s)

    async def close(self, session_ids: list[str]) -> None:
        """Ends sessions, also where the caller has gone; one that it cannot end, its lease does."""
        request = session_pb2.CloseRequest(session_ids=session_ids)
        with suppress(CallError):
            await asyncio.shield(self._service.close(request, timeout_s=_CLOSE_S))


async def _settled(
    method: Callable[..., Coroutine[Any, Any, _Response]], request: Message, due_s: float
) -> _Response:
    while True:
        try:
            return await method(request, timeout_s=left(due_s))
        except CallError as error:
            if not _is_settling(error, due_s):
                raise
            await asyncio.sleep(_SETTLE_S)


def _is_settling(error: CallError, due_s: float) -> bool:
    """A cell that was interrupted, say, is on its way out."""
    return error.reason == Reason.SESSION_BUSY and left(due_s) > _SETTLE_S


def left(due_s: float) -> float:
    """Seconds until a deadline, above 0."""
    return max(0.001, due_s - asyncio.get_running_loop().time())
