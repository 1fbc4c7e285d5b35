"""A server of sessions for tests: real gRPC, real cells in this process, knobs that make it fail.

    with FakeSessionServer() as server, SessionClient(server.address) as client:
        assert client.create().execute("6 * 7").plain == 42

It is no sandbox, see `assay.clients.testing.cells`. Leaving its context fails when a knob was set
and never met.
"""

from __future__ import annotations

import asyncio
import itertools
import stat
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import grpc

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from assay.clients.testing.cells import STREAMS, CannotCopyError, Cells
from assay.clients.testing.served import FakeServer, nothing_to_test
from assay.kit.calls import REPLICA_KEY
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.kit.serving import Service
from assay.kit.tls import ServerTls

_NAME = session_pb2.DESCRIPTOR.services_by_name["SessionService"].full_name
_WALL_S = 10.0
_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class SessionKnobs:
    """The failures of the server, all off by default. Each one set must be met before it closes.

    Attributes:
        full: refuses this many calls of Create and Fork with SESSIONS_FULL,
        retry_after_s: with this wait in seconds. It need not be met.
        unavailable: refuses this many cells with UNAVAILABLE before they begin,
        cut: breaks this many off with UNAVAILABLE after they have run,
        lose: loses the sessions of this many instead,
        kill: and ends the sessions of this many, as if they had died of signal 9.
        hang: this many cells never answer, until they are cancelled.
        expire: this many calls find their session's lease expired.
        hold_up: this many checkpoints and forks find "2 threads" and "a socket" in the way.
        die: this many cells end the server at once.
        delay_s: every cell takes this much longer.
    """

    full: int = 0
    retry_after_s: float = 0.01
    unavailable: int = 0
    cut: int = 0
    lose: int = 0
    kill: int = 0
    hang: int = 0
    expire: int = 0
    hold_up: int = 0
    die: int = 0
    delay_s: float = 0.0

    def to_meet(self) -> set[str]:
        """Names of the knobs that are set."""
        return {f.name for f in fields(self) if f.name != "retry_after_s" and getattr(self, f.name)}


@dataclass
class _Living:
    """One session."""

    id: str
    lease_s: float
    limits: session_pb2.SessionLimits
    cells: Cells = field(default_factory=Cells)
    points: dict[str, Cells] = field(default_factory=dict)
    touched_s: float = field(default_factory=time.monotonic)
    busy: bool = False
    ended: str = ""


@dataclass
class FakeSessionServer(FakeServer):
    """A server of sessions that runs cells in this process, and fails by `knobs`.

    Attributes:
        replica: its name.
        capacity: how many sessions fit.
        lease_s: of sessions that ask for none.
        port: 0 takes a free one.
        cells: the code of every cell that began.
        metadata: of each call about a session, with its method under "method".
        cancelled: cells that were cancelled.
    """

    knobs: SessionKnobs = field(default_factory=SessionKnobs)
    replica: str = "fake"
    capacity: int = 64
    lease_s: float = 60.0
    tls: ServerTls | None = None
    token: str | None = None
    port: int = 0
    cells: list[str] = field(default_factory=list)
    metadata: list[Mapping[str, str | bytes]] = field(default_factory=list)
    cancelled: int = 0
    living: dict[str, _Living] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def _service(self) -> Service:
        return Service(
            _NAME,
            lambda server: session_pb2_grpc.add_SessionServiceServicer_to_server(
                _Servicer(self), server
            ),
            nothing_to_test,
        )

    async def start(self) -> None:
        """Serves on the running loop."""
        STREAMS.acquire()
        await super().start()

    async def stop(self) -> None:
        """Stops at once; running calls are cut."""
        await super().stop()
        STREAMS.release()
        for one in self.living.values():
            self.forget(one)
        self.living.clear()

    @staticmethod
    def forget(session: _Living) -> None:
        """Frees what a session holds."""
        for cells in (session.cells, *session.points.values()):
            cells.discard()

    def open(
        self, request: session_pb2.CreateRequest | session_pb2.ForkRequest, copies: list[_Living]
    ) -> list[session_pb2.Session]:
        """Takes new sessions in, all or none."""
        if self.meets("full") or len(self.living) + len(copies) > self.capacity:
            for one in copies:
                self.forget(one)
            raise refuse(
                Reason.SESSIONS_FULL,
                f"{len(self.living)} of {self.capacity} sessions are open",
                retry_after_s=self.knobs.retry_after_s,
            )
        self.living.update({one.id: one for one in copies})
        return [self.described(one) for one in copies]

    def new(
        self, lease: Any, limits: session_pb2.SessionLimits, cells: Cells | None = None
    ) -> _Living:
        """A session that is not open yet."""
        lease_s = seconds_of(lease) or self.lease_s
        name = f"{self.replica}.{next(self._numbers)}"
        return _Living(name, lease_s, limits, cells if cells is not None else Cells())

    def described(self, session: _Living) -> session_pb2.Session:
        """As its owner knows it."""
        message = session_pb2.Session(
            id=session.id, replica=self.replica, limits=session.limits, isolation_level="none"
        )
        fill_duration(message.lease_left, session.lease_s)
        return message

    def find(self, session_id: str, context: _Context, *, ended: bool = False) -> _Living:
        """The session of a call, or the call's refusal; `ended`: also where it has ended."""
        sent = self.note(context)
        wanted = session_id.rpartition(".")[0]
        if self.replica not in (wanted, "") or sent.get(REPLICA_KEY, wanted) != wanted:
            raise refuse(Reason.WRONG_REPLICA, f"{wanted} holds the session", replica=wanted)
        session = self.living.get(session_id)
        if session is None:
            raise refuse(Reason.SESSION_NOT_FOUND, f"no session has the id {session_id}")
        late = session.touched_s + session.lease_s < time.monotonic()
        if late or self.meets("expire"):
            self.forget(self.living.pop(session_id))
            raise refuse(Reason.LEASE_EXPIRED, f"nobody renewed the lease of {session_id}")
        session.touched_s = time.monotonic()
        if session.ended and not ended:
            raise refuse(
                Reason.SESSION_ENDED, f"the session ended: {session.ended}", end=session.ended
            )
        return session

    def note(self, context: _Context) -> Mapping[str, str | bytes]:
        """Keeps the metadata of a call."""
        sent: dict[str, str | bytes] = dict(context.invocation_metadata() or ())
        self.metadata.append(sent)
        return sent

    def copied(self, session: _Living, cells: Cells) -> Cells:
        """A copy of a state, or the refusal."""
        if self.meets("hold_up"):
            raise refuse(
                Reason.CANNOT_FORK,
                "the session holds 2 threads; a socket",
                holds="2 threads\na socket",
            )
        if session.busy:
            raise refuse(Reason.SESSION_BUSY, "a cell runs")
        try:
            return cells.copy()
        except CannotCopyError as error:
            raise refuse(
                Reason.CANNOT_FORK, f"the session holds {error}", holds=str(error)
            ) from error

    @contextmanager
    def turn(self, session: _Living) -> Iterator[None]:
        """The one cell that a session runs."""
        if session.busy:
            raise refuse(Reason.SESSION_BUSY, "a cell runs")
        session.busy = True
        try:
            yield
        finally:
            session.busy = False

    async def strike(self, session: _Living) -> None:
        """The knobs of a cell that has not begun."""
        if self.meets("unavailable"):
            raise refuse(Reason.UNREACHABLE, "the fake is set to be unavailable")
        if self.meets("die"):
            await self.die()
        if self.meets("lose"):
            self.forget(self.living.pop(session.id))
            raise refuse(Reason.SESSION_LOST, "the fake is set to lose it", cause="host-died")
        if self.meets("hang"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.knobs.delay_s:
            self._met.add("delay_s")
            await asyncio.sleep(self.knobs.delay_s)

    def strike_after(self, session: _Living, result: session_pb2.CellResult) -> None:
        """The knobs of a cell that has run."""
        if self.meets("cut"):
            raise refuse(Reason.UNREACHABLE, "the fake is set to break off")
        if self.meets("kill"):
            result.end, result.signal = session_pb2.CELL_END_DIED, 9
            result.session_over = True
            result.ClearField("value")
        if result.session_over:
            session.ended = session_pb2.CellEnd.Name(result.end)


class _Servicer(session_pb2_grpc.SessionServiceServicer):
    def __init__(self, fake: FakeSessionServer) -> None:
        self._fake = fake

    async def Create(  # noqa: N802  # the names are the contract's
        self, request: session_pb2.CreateRequest, context: _Context
    ) -> session_pb2.CreateResponse:
        if request.language not in ("", "python"):
            raise refuse(Reason.UNKNOWN_LANGUAGE, f"the fake serves no {request.language}")
        limits = session_pb2.SessionLimits()
        fill_duration(limits.cell_wall_time, _WALL_S)
        for asked, value in request.limits.ListFields():
            if asked.message_type is None:
                setattr(limits, asked.name, value)
            else:
                getattr(limits, asked.name).CopyFrom(value)
        made = [self._fake.new(request.lease, limits) for _ in range(request.count or 1)]
        for session in made:
            session.cells.space["__environment__"] = dict(request.environment)
            _write(session.cells, request.files)
        return session_pb2.CreateResponse(sessions=self._fake.open(request, made))

    async def Execute(  # noqa: N802
        self, request: session_pb2.ExecuteRequest, context: _Context
    ) -> AsyncIterator[session_pb2.ExecuteResponse]:
        fake = self._fake
        session = fake.find(request.session_id, context)
        with fake.turn(session):
            await fake.strike(session)
            fake.cells.append(request.code)
            loop = asyncio.get_running_loop()
            queue: asyncio.Queue[session_pb2.ExecuteResponse] = asyncio.Queue()

            def emit(stream: int, data: bytes) -> None:
                kind = session_pb2.OutputStream.ValueType(stream)
                piece = session_pb2.OutputChunk(stream=kind, data=data)
                loop.call_soon_threadsafe(
                    queue.put_nowait, session_pb2.ExecuteResponse(output=piece)
                )

            wall_s = seconds_of(request.wall_time) or seconds_of(session.limits.cell_wall_time)
            running = loop.run_in_executor(None, session.cells.run, request.code, wall_s, emit)
            running.add_done_callback(lambda _: queue.put_nowait(session_pb2.ExecuteResponse()))
            try:
                while (message := await queue.get()).HasField("output"):
                    yield message
            except (asyncio.CancelledError, GeneratorExit):
                fake.cancelled += 1
                session.cells.interrupt(session_pb2.CELL_END_INTERRUPTED)
                await running
                raise
            result = await running
            fake.strike_after(session, result)
            yield session_pb2.ExecuteResponse(result=result)

    async def PutFiles(  # noqa: N802
        self, request: session_pb2.PutFilesRequest, context: _Context
    ) -> session_pb2.PutFilesResponse:
        _write(self._fake.find(request.session_id, context).cells, request.files)
        return session_pb2.PutFilesResponse()

    async def GetFiles(  # noqa: N802
        self, request: session_pb2.GetFilesRequest, context: _Context
    ) -> session_pb2.GetFilesResponse:
        folder = self._fake.find(request.session_id, context, ended=True).cells.folder
        response = session_pb2.GetFilesResponse()
        found = [one for one in folder.rglob("*") if one.is_file()]
        by_path = {one.relative_to(folder).as_posix(): one for one in found}
        for path in request.paths or sorted(by_path):
            if (one := by_path.get(path)) is not None:
                facts = one.stat()
                response.files.add(
                    path=path,
                    size_bytes=facts.st_size,
                    mode=stat.S_IMODE(facts.st_mode),
                    content=one.read_bytes() if request.paths else b"",
                )
        return response

    async def Checkpoint(  # noqa: N802
        self, request: session_pb2.CheckpointRequest, context: _Context
    ) -> session_pb2.CheckpointResponse:
        session = self._fake.find(request.session_id, context)
        name = f"c{next(self._fake._numbers)}"  # noqa: SLF001  # one thing
        session.points[name] = self._fake.copied(session, session.cells)
        return session_pb2.CheckpointResponse(checkpoint_id=name)

    async def Rollback(  # noqa: N802
        self, request: session_pb2.RollbackRequest, context: _Context
    ) -> session_pb2.RollbackResponse:
        session = self._fake.find(request.session_id, context, ended=True)
        made = self._fake.copied(session, _point(session, request.checkpoint_id))
        session.cells.discard()
        session.cells, session.ended = made, ""
        return session_pb2.RollbackResponse()

    async def Fork(  # noqa: N802
        self, request: session_pb2.ForkRequest, context: _Context
    ) -> session_pb2.ForkResponse:
        fake, name = self._fake, request.checkpoint_id
        session = fake.find(request.session_id, context, ended=bool(name))
        cells = _point(session, name) if name else session.cells
        made = [
            fake.new(request.lease, session.limits, fake.copied(session, cells))
            for _ in range(request.count or 1)
        ]
        return session_pb2.ForkResponse(sessions=fake.open(request, made))

    async def Renew(  # noqa: N802
        self, request: session_pb2.RenewRequest, context: _Context
    ) -> session_pb2.RenewResponse:
        response = session_pb2.RenewResponse()
        for name in request.session_ids:
            try:
                session = self._fake.find(name, context, ended=True)
            except CallError as error:
                if error.reason == Reason.WRONG_REPLICA:
                    raise
                response.missing.append(name)
                continue
            session.lease_s = seconds_of(request.lease) or session.lease_s
            response.sessions.append(self._fake.described(session))
        return response

    async def DropCheckpoints(  # noqa: N802
        self, request: session_pb2.DropCheckpointsRequest, context: _Context
    ) -> session_pb2.DropCheckpointsResponse:
        session = self._fake.find(request.session_id, context, ended=True)
        for name in request.checkpoint_ids:
            if (point := session.points.pop(name, None)) is not None:
                point.discard()
        return session_pb2.DropCheckpointsResponse()

    async def Close(  # noqa: N802
        self, request: session_pb2.CloseRequest, context: _Context
    ) -> session_pb2.CloseResponse:
        self._fake.note(context)
        for name in request.session_ids:
            if (session := self._fake.living.pop(name, None)) is not None:
                self._fake.forget(session)
        return session_pb2.CloseResponse()

    async def DescribeSessions(  # noqa: N802
        self, request: session_pb2.DescribeSessionsRequest, context: _Context
    ) -> session_pb2.DescribeSessionsResponse:
        fake = self._fake
        response = session_pb2.DescribeSessionsResponse(
            languages=["python"],
            copies=True,
            capacity=fake.capacity,
            open=len(fake.living),
            replica=fake.replica,
            server_version="fake",
        )
        fill_duration(response.default_limits.cell_wall_time, _WALL_S)
        fill_duration(response.default_lease, fake.lease_s)
        fill_duration(response.max_lease, 3600.0)
        return response


def _point(session: _Living, name: str) -> Cells:
    if (found := session.points.get(name)) is None:
        raise refuse(Reason.UNKNOWN_CHECKPOINT, f"the session has no checkpoint {name}")
    return found


def _write(cells: Cells, files: Any) -> None:
    for file in files:
        target = (cells.folder / file.path).resolve()
        if not target.is_relative_to(cells.folder.resolve()) or target == cells.folder.resolve():
            raise refuse(Reason.INVALID_PROGRAM, f"the path {file.path!r} leads out")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
