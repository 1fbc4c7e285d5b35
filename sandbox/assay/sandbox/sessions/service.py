"""The methods of session.proto: who may do what with which session, and when.

The host (`link`) does what is asked. An effect whose caller goes away is awaited all the same, so
that a session is free again only when the host is done with it; what such a call made is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar

from google.protobuf.message import Message

from assay.api.session.v1 import session_pb2
from assay.kit import tracing
from assay.kit.batch.requests import answer_by_s
from assay.kit.calls import REPLICA_KEY, add_log_fields, tenant_var
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.pool.link import Command
from assay.kit.queue import QueueFull
from assay.kit.reasons import Reason
from assay.kit.trails import Fact, item_stretch
from assay.sandbox.sessions import requests, wire
from assay.sandbox.sessions.cell import Cell
from assay.sandbox.sessions.link import HostLink, HostLost
from assay.sandbox.sessions.metrics import CELL_ENDS, SessionMetrics
from assay.sandbox.sessions.registry import CLOSED, Ended, Registry, Session
from assay.sandbox.sessions.requests import Rules
from assay.sandbox.sessions.rooms import RETRY_S, FairRoom, SessionRoom

_START_S = 20.0
_COMES_BACK_S = 5.0
_DOING = {
    wire.EXECUTE: "a cell runs",
    wire.PUT: "files are written",
    wire.GET: "files are read",
    wire.CHECKPOINT: "a checkpoint is made",
    wire.ROLLBACK: "it is rolled back",
    wire.FORK: "it is forked",
    wire.DROP: "checkpoints are dropped",
}
_DRAINED = Ended("drained", "the server ended, and with it the session", "server-stopped")

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How sessions are kept.

    Attributes:
        replica: the name of this server.
        places: sessions that fit.
        per_tenant: the most of one tenant; 0 for no limit.
        cells: that compute at once.
        waiting_cells: that may wait for their turn.
        drain_s: how long open sessions may go on when the server stops.
    """

    replica: str
    rules: Rules
    places: int
    per_tenant: int
    cells: int
    waiting_cells: int
    drain_s: float


class Sessions:
    """Keeps sessions. Belongs to the event loop that starts it.

    Args:
        host: starts the host; text: why there is none.
    """

    def __init__(self, settings: SessionSettings, host: Command | str) -> None:
        self.metrics = SessionMetrics()
        self._settings = settings
        self._rules = settings.rules
        self._host = host
        self._why_not = host if isinstance(host, str) else "the service is not started"
        self._link: HostLink | None = None
        self._registry = Registry(settings.replica, self._expired)
        self._room = SessionRoom(settings.places, settings.per_tenant)
        self._turns = FairRoom(settings.cells, settings.waiting_cells)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ends_s: float | None = None  # of a drain, by the monotonic clock
        self._emptied = asyncio.Event()
        self.metrics.watch(
            is_open=lambda: len(self._registry),
            places=lambda: self._room.places if self._up else 0,
            computing=lambda: self._turns.taken,
            waiting=lambda: self._turns.waiting,
            up=lambda: self._up,
            restarts=lambda: self.host_restarts,
        )

    @property
    def _up(self) -> bool:
        return self._link is not None and self._link.up

    @property
    def host_pid(self) -> int | None:
        """For logs and tests."""
        return None if self._link is None else self._link.pid

    @property
    def host_restarts(self) -> int:
        """How often the host was started in place of one that died."""
        return 0 if self._link is None else self._link.restarts

    async def start(self) -> None:
        """Starts the host. Whatever becomes of that is said by the calls."""
        if self._link is not None or isinstance(self._host, str):
            if self._why_not:
                _log.info("sessions are not served: %s", self._why_not)
            return
        self._link = HostLink(self._host, self._all_lost)
        starting = self._spawn(self._link.start())
        await asyncio.wait({starting}, timeout=_START_S)

    async def linger(self) -> None:
        """Opens no more sessions, and waits until the open ones are closed or have had their time.

        For `assay.kit.serving.Service`.
        """
        self._ends_s = time.monotonic() + self._settings.drain_s
        if len(self._registry) and self._settings.drain_s:
            _log.info(
                "%d sessions are open; they have %g s", len(self._registry), self._settings.drain_s
            )
            self._emptied.clear()
            await asyncio.wait({self._spawn(self._emptied.wait())}, timeout=self._settings.drain_s)

    def check(self, metadata: Mapping[str, str | bytes]) -> None:
        """Refuses a call that is meant for another replica.

        Raises:
            CallError: WRONG_REPLICA.
        """
        asked = metadata.get(REPLICA_KEY)
        if asked:
            text = asked if isinstance(asked, str) else asked.decode("ascii", "replace")
            self._registry.check_replica(text)

    async def create(
        self, request: session_pb2.CreateRequest, *, timeout_s: float
    ) -> session_pb2.CreateResponse:
        """Opens sessions.

        Args:
            request: what they are to be.
            timeout_s: seconds until the caller's deadline; so for every method.

        Raises:
            CallError: see session.proto; so for every method.
        """
        with self._counted("create"):
            answer_s = answer_by_s(time.monotonic(), timeout_s)
            link = await self._open_link(answer_s)
            tenant = tenant_var.get()
            language = request.language or "python"
            if language not in link.ready.get("languages", ()):
                raise refuse(
                    Reason.UNKNOWN_LANGUAGE,
                    f"sessions have no language {language[:80]!r}; DescribeSessions lists them",
                )
            count = requests.count(request.count, self._room.most)
            requests.check_files(request.files)
            requests.check_environment(request.environment)
            limits = self._rules.limits(request.limits)
            lease_s = self._rules.lease(request.lease, self._rules.lease_s)
            told = session_pb2.CreateRequest(
                language=language,
                files=request.files,
                environment=request.environment,
                limits=limits.to_proto(),
            )
            await self._room.take(tenant, count, answer_s - time.monotonic())

            async def open_them() -> list[Session]:
                keys = [self._registry.key() for _ in range(count)]
                life, began_s = link.life, time.monotonic()
                try:
                    await self._made(link, keys, told.SerializeToString(), life)
                except BaseException:
                    self._room.give_back(tenant, count)
                    raise
                self.metrics.took("create", time.monotonic() - began_s)
                self.metrics.opened(language, "created", count)
                return [self._registry.add(key, tenant, language, limits, lease_s) for key in keys]

            made = await self._within(open_them(), answer_s, abandoned=self._close_all)
            add_log_fields(sessions=count)
            return session_pb2.CreateResponse(sessions=[self._told(one) for one in made])

    async def execute(
        self, request: session_pb2.ExecuteRequest, *, timeout_s: float
    ) -> AsyncGenerator[session_pb2.ExecuteResponse, None]:
        """Runs a cell; yields what it does, its result last."""
        with self._counted("execute"):
            arrived_s = time.monotonic()
            answer_s = answer_by_s(arrived_s, timeout_s)
            session = self._usable(request.session_id)
            told = requests.cell(request, session.limits)
            session.doing = _DOING[wire.EXECUTE]
            try:
                await self._turn(answer_s)
            except BaseException:
                self._free(session)
                raise
            wait_s = time.monotonic() - arrived_s
            if session.ended is not None or self._link is None:  # while it waited
                self._turns.give_back()
                raise (session.ended or _DRAINED).error()

            def ended(
                cell: Cell, outcome: session_pb2.CellResult | BaseException
            ) -> CallError | None:
                self._turns.give_back()
                self._free(session)
                if isinstance(outcome, BaseException):
                    return self._why(session, outcome)
                self._count_cell(session, outcome, wait_s, time.monotonic() - cell.started_s)
                return None

            payload = wire.pack(session.key, told.SerializeToString())
            cell = Cell(self._link, wire.EXECUTE, payload, ended)
            left_s = answer_s - time.monotonic()
            async with aclosing(cell.events(left_s)) as events:
                async for event in events:
                    if event.HasField("result"):
                        _note_cell(session, event.result, arrived_s, wait_s)
                    yield event

    async def put_files(
        self, request: session_pb2.PutFilesRequest, *, timeout_s: float
    ) -> session_pb2.PutFilesResponse:
        """Writes files."""
        with self._counted("put_files"):
            session = self._usable(request.session_id)
            requests.check_files(request.files)
            told = session_pb2.PutFilesRequest(files=request.files)
            payload = await self._ask(session, wire.PUT, told, timeout_s)
            return session_pb2.PutFilesResponse.FromString(payload)

    async def get_files(
        self, request: session_pb2.GetFilesRequest, *, timeout_s: float
    ) -> session_pb2.GetFilesResponse:
        """Reads or lists files."""
        with self._counted("get_files"):
            session = self._usable(request.session_id, over=True)
            requests.check_paths(request.paths)
            told = session_pb2.GetFilesRequest(paths=request.paths)
            payload = await self._ask(session, wire.GET, told, timeout_s)
            return session_pb2.GetFilesResponse.FromString(payload)

    async def checkpoint(
        self, request: session_pb2.CheckpointRequest, *, timeout_s: float
    ) -> session_pb2.CheckpointResponse:
        """Keeps the state."""
        with self._counted("checkpoint"):
            session = self._usable(request.session_id)
            told = session_pb2.CheckpointRequest()
            payload = await self._ask(session, wire.CHECKPOINT, told, timeout_s)
            response = session_pb2.CheckpointResponse.FromString(payload)
            self._took("checkpoint", session, seconds_of(response.took))
            return response

    async def rollback(
        self, request: session_pb2.RollbackRequest, *, timeout_s: float
    ) -> session_pb2.RollbackResponse:
        """Goes back to a checkpoint."""
        with self._counted("rollback"):
            session = self._usable(request.session_id, over=True)
            told = session_pb2.RollbackRequest(checkpoint_id=request.checkpoint_id)

            def back(_: bytes) -> None:
                session.over = ""

            payload = await self._ask(session, wire.ROLLBACK, told, timeout_s, done=back)
            response = session_pb2.RollbackResponse.FromString(payload)
            self._took("rollback", session, seconds_of(response.took))
            return response

    async def fork(
        self, request: session_pb2.ForkRequest, *, timeout_s: float
    ) -> session_pb2.ForkResponse:
        """Copies a session."""
        with self._counted("fork"):
            answer_s = answer_by_s(time.monotonic(), timeout_s)
            over = bool(request.checkpoint_id)
            session = self._usable(request.session_id, over=over)
            link = await self._open_link(answer_s)
            count = requests.count(request.count, self._room.most)
            lease_s = self._rules.lease(request.lease, session.lease_s)
            told = session_pb2.ForkRequest(
                count=count, checkpoint_id=request.checkpoint_id, reseed=request.reseed
            )
            tenant, life = session.tenant, link.life
            await self._room.take(tenant, count, answer_s - time.monotonic())
            keys = [self._registry.key() for _ in range(count)]
            made: list[Session] = []

            def opened(_: bytes) -> None:
                if link.life != life:
                    raise HostLost("it died after it had made the copies")
                self.metrics.opened(session.language, "forked", count)
                made.extend(
                    self._registry.add(key, tenant, session.language, session.limits, lease_s)
                    for key in keys
                )

            async def copy() -> bytes:
                try:
                    self._usable(request.session_id, over=over)  # it may have waited
                    payload = wire.pack_fork(session.key, keys, told.SerializeToString())
                    return await self._alone(session, link, (wire.FORK, payload), opened)
                except BaseException:
                    self._room.give_back(tenant, count)
                    raise

            payload = await self._within(
                copy(), answer_s, abandoned=lambda _: self._close_all(made)
            )
            response = session_pb2.ForkResponse.FromString(payload)
            del response.sessions[:]
            response.sessions.extend(self._told(one) for one in made)
            self._took("fork", session, seconds_of(response.took))
            add_log_fields(sessions=count)
            return response

    async def renew(
        self, request: session_pb2.RenewRequest, *, timeout_s: float
    ) -> session_pb2.RenewResponse:
        """Extends leases."""
        del timeout_s
        with self._counted("renew"):
            response = session_pb2.RenewResponse()
            self._rules.lease(request.lease, self._rules.lease_s)  # checked before any is changed
            for session_id in request.session_ids:
                try:
                    session = self._registry.find(session_id, tenant_var.get())
                except CallError:
                    response.missing.append(session_id)
                    continue
                session.lease_s = self._rules.lease(request.lease, session.lease_s)
                self._registry.touch(session)
                response.sessions.append(self._told(session))
            return response

    async def drop_checkpoints(
        self, request: session_pb2.DropCheckpointsRequest, *, timeout_s: float
    ) -> session_pb2.DropCheckpointsResponse:
        """Frees checkpoints."""
        with self._counted("drop_checkpoints"):
            session = self._usable(request.session_id)
            told = session_pb2.DropCheckpointsRequest(checkpoint_ids=request.checkpoint_ids)
            payload = await self._ask(session, wire.DROP, told, timeout_s)
            return session_pb2.DropCheckpointsResponse.FromString(payload)

    async def close(
        self, request: session_pb2.CloseRequest | None = None, *, timeout_s: float = math.inf
    ) -> session_pb2.CloseResponse:
        """Ends sessions, whatever they do; without a request all of them, and the host.

        The second, which frees what `start` took, may be called more than once.
        """
        if request is None:
            await self.stop()
            return session_pb2.CloseResponse()
        with self._counted("close"):
            ending = []
            for session_id in request.session_ids:
                with contextlib.suppress(CallError):
                    session = self._registry.find(session_id, tenant_var.get())
                    ending.append(self._end(session, CLOSED))
            if ending:
                left_s = answer_by_s(time.monotonic(), timeout_s) - time.monotonic()
                await asyncio.wait(ending, timeout=min(left_s, _COMES_BACK_S))
            return session_pb2.CloseResponse()

    async def describe_sessions(
        self, request: session_pb2.DescribeSessionsRequest, *, timeout_s: float
    ) -> session_pb2.DescribeSessionsResponse:
        """Says what is served."""
        del request, timeout_s
        rules = self._rules
        response = session_pb2.DescribeSessionsResponse(
            default_limits=rules.usual.to_proto(),
            max_limits=rules.most.to_proto(),
            open=len(self._registry),
            replica=self._settings.replica,
            server_version=version("assay-rl-sandbox"),
        )
        fill_duration(response.default_lease, rules.lease_s)
        fill_duration(response.max_lease, rules.max_lease_s)
        if self._link is None or not self._link.up:
            response.no_copies_because = self._lack()
            return response
        ready = self._link.ready
        response.languages.extend(sorted(ready.get("languages", ())))
        response.isolation_layers.extend(ready.get("layers", ()))
        response.copies = bool(ready.get("copies"))
        response.no_copies_because = "" if response.copies else str(ready.get("why_not", ""))
        response.capacity = self._room.places
        response.python_packages.update(ready.get("packages", {}))
        return response

    async def stop(self) -> None:
        """Ends every session, and the host. May be called more than once."""
        self._ends_s = self._ends_s or time.monotonic()
        link, self._link = self._link, None
        lost = list(self._registry)
        for session in lost:
            self._end(session, _DRAINED)
        if lost:
            _log.warning("%d open sessions were lost with the server", len(lost))
        if link is not None:
            await link.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _open_link(self, answer_s: float) -> HostLink:
        """The host, for a new session.

        Raises:
            CallError: DRAINING, NO_SESSIONS or STARTING.
        """
        if self._ends_s is not None:
            raise refuse(Reason.DRAINING, "the server is shutting down: it opens no more sessions")
        link = self._link
        if link is not None:
            await link.wait_up(min(_COMES_BACK_S, answer_s - time.monotonic()))
            if link.up:
                return link
        if link is None or link.why_not:
            raise refuse(Reason.NO_SESSIONS, f"this server keeps no sessions: {self._lack()}")
        raise refuse(Reason.STARTING, self._lack(), retry_after_s=RETRY_S)

    def _lack(self) -> str:
        if self._link is None:
            return self._why_not
        return self._link.why_not or "the host of sessions is being started"

    async def _turn(self, answer_s: float) -> None:
        try:
            await self._turns.take(1, answer_s - time.monotonic())
        except QueueFull as error:
            raise refuse(
                Reason.QUEUE_FULL,
                f"{self._turns.waiting} cells wait for their turn, the most that may",
                retry_after_s=RETRY_S,
            ) from error
        except TimeoutError as error:
            raise refuse(
                Reason.DEADLINE_EXCEEDED, "the call's deadline came before the cell had its turn"
            ) from error

    def _usable(self, session_id: str, *, over: bool = False) -> Session:
        """A session of the current tenant that is free; it may be over where `over` says so.

        Raises:
            CallError: it is not there, not free, or over.
        """
        session = self._registry.find(session_id, tenant_var.get())
        if session.doing:
            raise refuse(Reason.SESSION_BUSY, f"the session is not free: {session.doing}")
        if session.over and not over:
            raise refuse(
                Reason.SESSION_ENDED,
                f"the program ended its session: {session.over}",
                end=session.over,
            )
        return session

    async def _ask(
        self,
        session: Session,
        kind: bytes,
        told: Message,
        timeout_s: float,
        done: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Has the host do something with a session that is free."""
        if self._link is None:
            raise _DRAINED.error()
        answer_s = answer_by_s(time.monotonic(), timeout_s)
        session.doing = _DOING[kind]  # at once: the work begins in the next round of the loop
        payload = wire.pack(session.key, told.SerializeToString())
        work = self._alone(session, self._link, (kind, payload), done)
        return await self._within(work, answer_s)

    async def _alone(
        self,
        session: Session,
        link: HostLink,
        frame: tuple[bytes, bytes],
        done: Callable[[bytes], None] | None,
    ) -> bytes:
        session.doing = _DOING[frame[0]]
        try:
            payload = await link.call(*frame).answer
            if done is not None:
                done(payload)
        except (HostLost, CallError) as error:
            raise self._why(session, error) from error
        finally:
            self._free(session)
        return payload

    async def _within(
        self,
        work: Coroutine[Any, Any, _T],
        answer_s: float,
        abandoned: Callable[[_T], object] | None = None,
    ) -> _T:
        """What comes of some work, which goes on where its caller no longer waits.

        `abandoned` is then called with what came of it.
        """
        task = self._spawn(work)

        def drop(ended: asyncio.Task[_T]) -> None:
            if abandoned is not None and not ended.cancelled() and ended.exception() is None:
                abandoned(ended.result())

        try:
            async with asyncio.timeout(answer_s - time.monotonic()):
                return await asyncio.shield(task)
        except TimeoutError as error:
            task.add_done_callback(drop)
            raise refuse(
                Reason.DEADLINE_EXCEEDED, "the call's deadline came before it was done"
            ) from error
        except asyncio.CancelledError:
            task.add_done_callback(drop)
            raise

    async def _made(self, link: HostLink, keys: Sequence[int], body: bytes, life: int) -> None:
        """Has the host make sessions, all or none.

        Raises:
            CallError: they could not be made.
        """
        calls = [link.call(wire.CREATE, wire.pack(key, body)).answer for key in keys]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        failures = [one for one in outcomes if isinstance(one, BaseException)]
        if link.life != life:
            failures.append(HostLost("it died"))
        if not failures:
            return
        made = [key for key, one in zip(keys, outcomes, strict=True) if isinstance(one, bytes)]
        closing = [link.call(wire.CLOSE, wire.pack(key)).answer for key in made]
        await asyncio.gather(*closing, return_exceptions=True)
        if isinstance(failures[0], HostLost):
            raise refuse(
                Reason.WORKER_DIED, f"the host of sessions died: {failures[0]}"
            ) from failures[0]
        raise failures[0]

    def _end(self, session: Session, ended: Ended) -> asyncio.Task[None]:
        """Takes a session out at once; done when the host has ended it and its place is free."""
        if self._registry.end(session, ended):
            self.metrics.ended(session.language, ended.how)
            _log.info("a session ended", extra={"fields": _entry(session, ended)})
        return self._spawn(self._clear(session))

    async def _clear(self, session: Session) -> None:
        if session.cleared:
            return
        session.cleared = True
        try:
            if self._link is not None:
                await self._link.call(wire.CLOSE, wire.pack(session.key)).answer
        except (HostLost, CallError) as error:
            _log.debug("a session was not closed: %s", error)
        finally:
            self._room.give_back(session.tenant)
            if not len(self._registry):
                self._emptied.set()

    def _close_all(self, sessions: Sequence[Session]) -> None:
        """Ends what was made for a caller who has gone away."""
        for session in sessions:
            self._end(session, CLOSED)

    def _all_lost(self, how: str) -> None:
        sessions = list(self._registry)
        if sessions:
            _log.error("%d sessions were lost with their host", len(sessions))
        for session in sessions:
            self._end(session, Ended("lost", f"the host of sessions died: {how}", "host-died"))

    def _expired(self, session: Session) -> None:
        text = f"nobody renewed the session's lease of {session.lease_s:g} s"
        self._end(session, Ended("lease-expired", text))

    def _free(self, session: Session) -> None:
        session.doing = ""
        if session.ended is None:
            self._registry.touch(session)

    def _why(self, session: Session, error: BaseException) -> CallError:
        """What the caller is told; what the host says of a session holds for later calls too."""
        if session.ended is not None:
            return session.ended.error()
        if not isinstance(error, CallError):
            return Ended("lost", f"the host of sessions died: {error}", "host-died").error()
        if error.reason == Reason.SESSION_LOST:
            self._end(session, Ended("lost", str(error), error.metadata.get("cause", "host")))
        elif error.reason == Reason.SESSION_ENDED:
            session.over = error.metadata.get("end", "died")
        return error

    def _told(self, session: Session) -> session_pb2.Session:
        """A session as its owner knows it."""
        ready: Mapping[str, Any] = {} if self._link is None else self._link.ready
        message = session_pb2.Session(
            id=session.id,
            replica=self._settings.replica,
            limits=session.limits.to_proto(),
            isolation_level=ready.get("level", ""),
        )
        left_s = session.expires_s - asyncio.get_running_loop().time()
        fill_duration(message.lease_left, max(0.0, left_s))
        if self._ends_s is not None:
            fill_duration(message.ends_in, max(0.0, self._ends_s - time.monotonic()))
        return message

    def _count_cell(
        self, session: Session, result: session_pb2.CellResult, wait_s: float, seconds: float
    ) -> None:
        fill_duration(result.usage.queue_time, wait_s)
        end = CELL_ENDS.get(result.end, "unspecified")
        session.cells += 1
        session.cpu_s = seconds_of(result.usage.session_cpu_time)
        session.over = end if result.session_over else ""
        self.metrics.cell(session.language, end, wait_s, seconds)

    def _took(self, operation: str, session: Session, seconds: float) -> None:
        self.metrics.took(operation, seconds)
        add_log_fields(session=_mark(session))
        _trail(operation, time.monotonic() - seconds, 0.0, seconds, {})

    @contextlib.contextmanager
    def _counted(self, method: str) -> Iterator[None]:
        try:
            yield
        except CallError as error:
            self.metrics.fault(method, error.reason)
            raise

    def _spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._seen)
        return task

    def _seen(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, CallError | HostLost):
            _log.error("a defect in sessions", exc_info=error)


def _note_cell(
    session: Session, result: session_pb2.CellResult, arrived_s: float, wait_s: float
) -> None:
    """Puts a cell into the call's log line and trace."""
    end = CELL_ENDS.get(result.end, "unspecified")
    add_log_fields(session=_mark(session), end=end)
    facts: dict[str, Fact] = {
        "assay.end": end,
        "assay.runs.wall_s": seconds_of(result.usage.wall_time),
        "assay.runs.cpu_s": seconds_of(result.usage.cpu_time),
    }
    seconds = time.monotonic() - arrived_s - wait_s
    _trail(session.language, arrived_s, wait_s, seconds, facts)


def _trail(
    name: str, arrived_s: float, wait_s: float, seconds: float, facts: Mapping[str, Fact]
) -> None:
    trail = tracing.trail()
    if trail is not None:
        started_s = arrived_s + wait_s
        trail.add(
            *(arrived_s, started_s, seconds),
            fault=False,
            describe=lambda _: item_stretch(name, arrived_s, started_s, seconds, facts),
        )


def _mark(session: Session) -> str:
    """A session in logs: its id would give it away."""
    return hashlib.sha256(session.id.encode()).hexdigest()[:12]


def _entry(session: Session, ended: Ended) -> dict[str, object]:
    """What the log keeps of an ended session."""
    lived_s = asyncio.get_running_loop().time() - session.opened_s
    return {
        "session": _mark(session),
        "tenant": session.tenant,
        "language": session.language,
        "cells": session.cells,
        "cpu_s": round(session.cpu_s, 3),
        "lived_s": round(lived_s, 3),
        "end": ended.how,
        "over": session.over,
        "cause": ended.cause,
    }
