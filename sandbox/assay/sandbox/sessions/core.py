"""The open sessions and their host: what the methods of the service stand on.

An effect whose caller goes away is awaited all the same, so that a session is free again only when
the host is done with it; what such a call made is ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from assay.api.session.v1 import session_pb2
from assay.kit.batch.requests import answer_by_s
from assay.kit.calls import tenant_var
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.pool.link import Command
from assay.kit.queue import QueueFull
from assay.kit.reasons import Reason
from assay.sandbox.sessions import wire
from assay.sandbox.sessions.entries import log_entry
from assay.sandbox.sessions.link import HostGone, HostLink
from assay.sandbox.sessions.metrics import CELL_ENDS, SessionMetrics
from assay.sandbox.sessions.registry import CLOSED, Ended, OpenSession, OpenSessions
from assay.sandbox.sessions.requests import SessionRules
from assay.sandbox.sessions.rooms import RETRY_S, FairRoom, SessionRoom

START_S = 20.0
COMES_BACK_S = 5.0
_AT_ONCE = 8
DOING = {
    wire.EXECUTE: "a cell runs",
    wire.PUT: "files are written",
    wire.GET: "files are read",
    wire.CHECKPOINT: "a checkpoint is made",
    wire.ROLLBACK: "it is rolled back",
    wire.FORK: "it is forked",
    wire.DROP: "checkpoints are dropped",
}
DRAINED = Ended("drained", "the server ended, and with it the session", "server-stopped")

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How sessions are kept.

    Attributes:
        replica: the name of this server.
        places: sessions that fit.
        per_tenant: the most of one tenant; 0 for no limit.
        cells: that compute at once; beside them as many other things are done.
        waiting_cells: that may wait for their turn.
        drain_s: how long open sessions may go on when the server stops.
        layers: the walls of this machine, where the host does not name its own.
        patience_s, refused_s: as for `HostLink`.
    """

    replica: str
    rules: SessionRules
    places: int
    per_tenant: int
    cells: int
    waiting_cells: int
    drain_s: float
    layers: tuple[str, ...] = ()
    patience_s: float = 120.0
    refused_s: float = 30.0


class SessionCore:
    """Open sessions. Belongs to the event loop that starts it.

    Args:
        host: starts the host; text: why there is none.

    Attributes:
        turns, work: of cells, and of all else that the host does.
        link: the host; None before the start, after the end, and where there is none.
    """

    def __init__(self, settings: SessionSettings, host: Command | str) -> None:
        self.settings = settings
        self.metrics = SessionMetrics()
        self.link: HostLink | None = None
        self.registry = OpenSessions(settings.replica, self._expired)
        self.room = SessionRoom(settings.places, settings.per_tenant)
        self.turns = FairRoom(settings.cells, settings.waiting_cells)
        self.work = FairRoom(settings.cells, settings.waiting_cells)
        self._host = host
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ends_s: float | None = None  # of a drain, by the monotonic clock
        self._emptied = asyncio.Event()
        self.metrics.watch(
            is_open=lambda: len(self.registry),
            places=lambda: self.room.places if self.up else 0,
            computing=lambda: self.turns.taken,
            waiting=lambda: self.turns.waiting,
            up=lambda: self.up,
            restarts=lambda: 0 if self.link is None else self.link.restarts,
        )

    @property
    def up(self) -> bool:
        """The host is there."""
        return self.link is not None and self.link.up

    async def start(self) -> None:
        """Starts the host. Whatever becomes of that is said by the calls."""
        if self.link is not None or isinstance(self._host, str):
            _log.info("sessions are not served: %s", self.lack())
            return
        self.link = HostLink(
            self._host, self._all_lost, self.settings.patience_s, self.settings.refused_s
        )
        starting = self._spawn(self.link.start())
        await asyncio.wait({starting}, timeout=START_S)

    async def linger(self) -> None:
        """Opens no more sessions, and waits until the open ones are closed or have had their time.

        For `assay.kit.serving.Service`.
        """
        self._ends_s = time.monotonic() + self.settings.drain_s
        if len(self.registry) and self.settings.drain_s:
            _log.info(
                "%d sessions are open; they have %g s", len(self.registry), self.settings.drain_s
            )
            self._emptied.clear()
            await asyncio.wait({self._spawn(self._emptied.wait())}, timeout=self.settings.drain_s)

    async def stop(self) -> None:
        """Ends every session, and the host. May be called more than once."""
        self._ends_s = self._ends_s or time.monotonic()
        link, self.link = self.link, None
        lost = list(self.registry)
        for session in lost:
            self.end(session, DRAINED)
        if lost:
            _log.warning("%d open sessions were lost with the server", len(lost))
        if link is not None:
            await link.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def open_link(self, answer_s: float) -> HostLink:
        """The host, for a new session.

        Raises:
            CallError: DRAINING, NO_SESSIONS or STARTING.
        """
        if self._ends_s is not None:
            raise refuse(Reason.DRAINING, "the server is shutting down: it opens no more sessions")
        link = self.link
        if link is not None:
            await link.wait_up(min(COMES_BACK_S, answer_s - time.monotonic()))
            if link.up:
                return link
        if link is None or link.why_not:
            raise refuse(Reason.NO_SESSIONS, f"this server keeps no sessions: {self.lack()}")
        raise refuse(Reason.STARTING, self.lack(), retry_after_s=RETRY_S)

    def lack(self) -> str:
        """Why no session can be opened now."""
        if self.link is None:
            return self._host if isinstance(self._host, str) else "the service is not started"
        return self.link.why_not or "the host of sessions is being started"

    async def turn(self, room: FairRoom, answer_s: float) -> None:
        """Waits until a cell may compute, or the host do something else.

        Raises:
            CallError: QUEUE_FULL; nothing was done.
        """
        try:
            await room.take(1, answer_s - time.monotonic())
        except (QueueFull, TimeoutError) as error:
            late = isinstance(error, TimeoutError)
            text = "the call's deadline came before its turn" if late else "no more may wait"
            raise refuse(
                Reason.QUEUE_FULL,
                f"{room.waiting} others wait for their turn on this machine: {text}",
                retry_after_s=RETRY_S,
            ) from error

    def usable(self, session_id: str, *, over: bool = False) -> OpenSession:
        """A session of the current tenant that is free; it may be over where `over` says so.

        Raises:
            CallError: it is not there, not free, or over.
        """
        session = self.registry.find(session_id, tenant_var.get())
        if session.doing:
            raise refuse(Reason.SESSION_BUSY, f"the session is not free: {session.doing}")
        if session.over and not over:
            raise refuse(
                Reason.SESSION_ENDED,
                f"the program ended its session: {session.over}",
                end=session.over,
            )
        return session

    async def ask(
        self,
        session: OpenSession,
        kind: bytes,
        told: Message,
        timeout_s: float,
        done: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Has the host do something with a session that is free."""
        if self.link is None:
            raise DRAINED.error()
        answer_s = answer_by_s(time.monotonic(), timeout_s)
        session.doing = DOING[kind]
        try:
            await self.turn(self.work, answer_s)
        except BaseException:
            self.free(session)
            raise
        payload = wire.pack(session.key, told.SerializeToString())
        work = self.alone(session, self.link, (kind, payload), done)
        return await self.within(work, answer_s)

    async def alone(
        self,
        session: OpenSession,
        link: HostLink,
        frame: tuple[bytes, bytes],
        done: Callable[[bytes], None] | None,
    ) -> bytes:
        """Has the host do something with a session, and calls `done` while it is still busy."""
        session.doing = DOING[frame[0]]
        try:
            payload = await link.call(*frame).answer
            if done is not None:
                done(payload)
        except (HostGone, CallError) as error:
            raise self.why(session, error) from error
        finally:
            self.free(session)
        return payload

    async def within(
        self,
        work: Coroutine[Any, Any, _T],
        answer_s: float,
        abandoned: Callable[[_T], object] | None = None,
    ) -> _T:
        """What comes of some work, which goes on where its caller no longer waits.

        `abandoned` is then called with what came of it. Its turn is given back when it is done.
        """
        task = self._spawn(work)
        task.add_done_callback(lambda _: self.work.give_back())

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

    async def make(self, link: HostLink, keys: Sequence[int], body: bytes, life: int) -> None:
        """Has the host make sessions, all or none.

        Raises:
            CallError: they could not be made.
        """
        failures: list[BaseException] = []
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            calls = [link.call(wire.CREATE, wire.pack(key, body)).answer for key in some]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            failures += [one for one in outcomes if isinstance(one, BaseException)]
            if failures:
                break
        if link.life != life:
            failures.append(HostGone("it died"))
        if not failures:
            return
        await self.forget(link, keys)
        if isinstance(failures[0], HostGone):
            raise refuse(
                Reason.WORKER_DIED, f"the host of sessions is gone: {failures[0]}"
            ) from failures[0]
        raise failures[0]

    def forget(self, link: HostLink, keys: Sequence[int]) -> asyncio.Future[list[object]]:
        """Has the host end what it may have made of these."""
        closing = [link.call(wire.CLOSE, wire.pack(key)).answer for key in keys]
        return asyncio.gather(*closing, return_exceptions=True)

    def end(self, session: OpenSession, ended: Ended) -> asyncio.Task[None]:
        """Takes a session out at once; done when the host has ended it and its place is free."""
        if self.registry.end(session, ended):
            self.metrics.ended(session.language, ended.how)
            _log.info("a session ended", extra={"fields": log_entry(session, ended)})
        return self._spawn(self._clear(session))

    async def _clear(self, session: OpenSession) -> None:
        if session.cleared:
            return
        session.cleared = True
        try:
            if self.link is not None:
                await self.link.call(wire.CLOSE, wire.pack(session.key)).answer
        except (HostGone, CallError) as error:
            _log.debug("a session was not closed: %s", error)
        finally:
            self.room.give_back(session.tenant)
            if not len(self.registry):
                self._emptied.set()

    def close_all(self, sessions: Sequence[OpenSession]) -> None:
        """Ends what was made for a caller who has gone away."""
        for session in sessions:
            self.end(session, CLOSED)

    def _all_lost(self, how: str) -> None:
        sessions = list(self.registry)
        if sessions:
            _log.error("%d sessions were lost with their host", len(sessions))
        for session in sessions:
            self.end(session, Ended("lost", f"the host of sessions is gone: {how}", "host-died"))

    def _expired(self, session: OpenSession) -> None:
        text = f"nobody renewed the session's lease of {session.lease_s:g} s"
        self.end(session, Ended("lease-expired", text))

    def free(self, session: OpenSession) -> None:
        """What it did is done."""
        session.doing = ""
        if session.ended is None:
            self.registry.touch(session)

    def why(self, session: OpenSession, error: BaseException) -> CallError:
        """What the caller is told; what the host says of a session holds for later calls too."""
        if session.ended is not None:
            return session.ended.error()
        if isinstance(error, HostGone):
            gone = Ended("lost", f"the host of sessions is gone: {error}", error.cause)
            self.end(session, gone)
            return gone.error()
        if not isinstance(error, CallError):
            return refuse(Reason.INTERNAL, f"the service failed ({type(error).__name__})")
        if error.reason in {Reason.SESSION_LOST, Reason.SESSION_NOT_FOUND}:
            lost = Ended("lost", str(error), error.metadata.get("cause", "unknown-to-its-host"))
            self.end(session, lost)
            return lost.error()
        if error.reason == Reason.SESSION_ENDED:
            session.over = error.metadata.get("end", "died")
        return error

    def told(self, session: OpenSession) -> session_pb2.Session:
        """A session as its owner knows it."""
        ready: Mapping[str, Any] = {} if self.link is None else self.link.ready
        message = session_pb2.Session(
            id=session.id,
            replica=self.settings.replica,
            limits=session.limits.to_proto(),
            isolation_level=ready.get("level", ""),
        )
        left_s = session.expires_s - asyncio.get_running_loop().time()
        fill_duration(message.lease_left, max(0.0, left_s))
        if self._ends_s is not None:
            fill_duration(message.ends_in, max(0.0, self._ends_s - time.monotonic()))
        return message

    def count_cell(
        self, session: OpenSession, result: session_pb2.CellResult, wait_s: float, seconds: float
    ) -> None:
        """Notes a cell that has its result; `seconds` are from its turn to its end."""
        fill_duration(result.usage.queue_time, wait_s)
        end = CELL_ENDS.get(result.end, "unspecified")
        session.cells += 1
        session.cpu_s = seconds_of(result.usage.session_cpu_time)
        session.over = end if result.session_over else ""
        self.metrics.cell(session.language, end, wait_s, seconds)

    def _spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._seen)
        return task

    def _seen(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, CallError | HostGone):
            _log.error("a defect in sessions", exc_info=error)
