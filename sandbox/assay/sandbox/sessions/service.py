"""The methods of session.proto: who may do what with which session, and when."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from importlib.metadata import version

from assay.api.session.v1 import session_pb2
from assay.kit.batch.requests import answer_by_s
from assay.kit.calls import REPLICA_KEY, add_log_fields, tenant_var
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.pool.link import Command
from assay.kit.reasons import Reason
from assay.sandbox.sessions import requests, wire
from assay.sandbox.sessions.cell import CellCall
from assay.sandbox.sessions.core import COMES_BACK_S, DOING, DRAINED, SessionCore, SessionSettings
from assay.sandbox.sessions.entries import note_cell, note_operation
from assay.sandbox.sessions.link import HostGone
from assay.sandbox.sessions.metrics import SessionMetrics
from assay.sandbox.sessions.registry import CLOSED, OpenSession


class Sessions:
    """Keeps sessions; arguments as for `SessionCore`."""

    def __init__(self, settings: SessionSettings, host: Command | str) -> None:
        self._core = SessionCore(settings, host)
        self._rules = settings.rules

    @property
    def metrics(self) -> SessionMetrics:
        """To be shown."""
        return self._core.metrics

    @property
    def host_pid(self) -> int | None:
        """For logs and tests."""
        return None if self._core.link is None else self._core.link.pid

    @property
    def host_restarts(self) -> int:
        """How often the host was started in place of one that died."""
        return 0 if self._core.link is None else self._core.link.restarts

    @property
    def places(self) -> int:
        """How many may be open."""
        return self._core.room.places

    @property
    def taken(self) -> int:
        """How many places are taken, also by sessions that are being made or ended."""
        return self._core.room.taken

    async def start(self) -> None:
        """Starts the host. Whatever becomes of that is said by the calls."""
        await self._core.start()

    async def linger(self) -> None:
        """Opens no more sessions, and waits until the open ones are closed or have had their time.

        For `assay.kit.serving.Service`.
        """
        await self._core.linger()

    async def stop(self) -> None:
        """Ends every session, and the host. May be called more than once."""
        await self._core.stop()

    def check(self, metadata: Mapping[str, str | bytes]) -> None:
        """Refuses a call that is meant for another replica.

        Raises:
            CallError: WRONG_REPLICA.
        """
        asked = metadata.get(REPLICA_KEY)
        if asked:
            text = asked if isinstance(asked, str) else asked.decode("ascii", "replace")
            self._core.registry.check_replica(text)

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
        core = self._core
        with self._counted("Create"):
            answer_s = answer_by_s(time.monotonic(), timeout_s)
            link = await core.open_link(answer_s)
            tenant = tenant_var.get()
            language = request.language or "python"
            if language not in link.ready.get("languages", ()):
                raise refuse(
                    Reason.UNKNOWN_LANGUAGE,
                    f"sessions have no language {language[:80]!r}; DescribeSessions lists them",
                )
            count = requests.count(request.count, core.room.most)
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
            await self._places(tenant, count, answer_s)

            async def open_them() -> list[OpenSession]:
                keys = [core.registry.key() for _ in range(count)]
                life, began_s = link.life, time.monotonic()
                try:
                    await core.make(link, keys, told.SerializeToString(), life)
                except BaseException:
                    core.room.give_back(tenant, count)
                    raise
                self.metrics.took("create", time.monotonic() - began_s)
                self.metrics.opened(language, "created", count)
                return [core.registry.add(key, tenant, language, limits, lease_s) for key in keys]

            made = await core.within(open_them(), answer_s, abandoned=core.close_all)
            add_log_fields(sessions=count)
            return session_pb2.CreateResponse(sessions=[core.told(one) for one in made])

    async def execute(
        self, request: session_pb2.ExecuteRequest, *, timeout_s: float
    ) -> AsyncGenerator[session_pb2.ExecuteResponse, None]:
        """Runs a cell; yields what it does, its result last."""
        core = self._core
        with self._counted("Execute"):
            arrived_s = time.monotonic()
            answer_s = answer_by_s(arrived_s, timeout_s)
            session = core.usable(request.session_id)
            told = requests.cell(request, session.limits)
            session.doing = DOING[wire.EXECUTE]
            try:
                await core.turn(core.turns, answer_s)
            except BaseException:
                core.free(session)
                raise
            wait_s = time.monotonic() - arrived_s
            if session.ended is not None or core.link is None:  # while it waited
                core.turns.give_back()
                raise (session.ended or DRAINED).error()

            def ended(
                cell: CellCall, outcome: session_pb2.CellResult | BaseException
            ) -> CallError | None:
                core.turns.give_back()
                core.free(session)
                if isinstance(outcome, BaseException):
                    return core.why(session, outcome)
                core.count_cell(session, outcome, wait_s, time.monotonic() - cell.started_s)
                return None

            payload = wire.pack(session.key, told.SerializeToString())
            cell = CellCall(core.link, payload, seconds_of(told.wall_time), ended)
            left_s = answer_s - time.monotonic()
            async with aclosing(cell.events(left_s)) as events:
                async for event in events:
                    if event.HasField("result"):
                        note_cell(session, event.result, arrived_s, wait_s)
                    yield event

    async def put_files(
        self, request: session_pb2.PutFilesRequest, *, timeout_s: float
    ) -> session_pb2.PutFilesResponse:
        """Writes files."""
        with self._counted("PutFiles"):
            session = self._core.usable(request.session_id)
            requests.check_files(request.files)
            told = session_pb2.PutFilesRequest(files=request.files)
            payload = await self._core.ask(session, wire.PUT, told, timeout_s)
            return session_pb2.PutFilesResponse.FromString(payload)

    async def get_files(
        self, request: session_pb2.GetFilesRequest, *, timeout_s: float
    ) -> session_pb2.GetFilesResponse:
        """Reads or lists files."""
        with self._counted("GetFiles"):
            session = self._core.usable(request.session_id, over=True)
            requests.check_paths(request.paths)
            told = session_pb2.GetFilesRequest(paths=request.paths)
            payload = await self._core.ask(session, wire.GET, told, timeout_s)
            return session_pb2.GetFilesResponse.FromString(payload)

    async def checkpoint(
        self, request: session_pb2.CheckpointRequest, *, timeout_s: float
    ) -> session_pb2.CheckpointResponse:
        """Keeps the state."""
        with self._counted("Checkpoint"):
            session = self._core.usable(request.session_id)
            told = session_pb2.CheckpointRequest()
            payload = await self._core.ask(session, wire.CHECKPOINT, told, timeout_s)
            response = session_pb2.CheckpointResponse.FromString(payload)
            self._took("checkpoint", session, seconds_of(response.took))
            return response

    async def rollback(
        self, request: session_pb2.RollbackRequest, *, timeout_s: float
    ) -> session_pb2.RollbackResponse:
        """Goes back to a checkpoint."""
        with self._counted("Rollback"):
            session = self._core.usable(request.session_id, over=True)
            told = session_pb2.RollbackRequest(checkpoint_id=request.checkpoint_id)

            def back(_: bytes) -> None:
                session.over = ""

            payload = await self._core.ask(session, wire.ROLLBACK, told, timeout_s, done=back)
            response = session_pb2.RollbackResponse.FromString(payload)
            self._took("rollback", session, seconds_of(response.took))
            return response

    async def fork(
        self, request: session_pb2.ForkRequest, *, timeout_s: float
    ) -> session_pb2.ForkResponse:
        """Copies a session."""
        core = self._core
        with self._counted("Fork"):
            answer_s = answer_by_s(time.monotonic(), timeout_s)
            over = bool(request.checkpoint_id)
            session = core.usable(request.session_id, over=over)
            link = await core.open_link(answer_s)
            count = requests.count(request.count, core.room.most)
            lease_s = self._rules.lease(request.lease, session.lease_s)
            told = session_pb2.ForkRequest(
                count=count, checkpoint_id=request.checkpoint_id, reseed=request.reseed
            )
            tenant, life = session.tenant, link.life
            await self._places(tenant, count, answer_s)
            keys = [core.registry.key() for _ in range(count)]
            made: list[OpenSession] = []

            def opened(_: bytes) -> None:
                if link.life != life:
                    raise HostGone("it died after it had made the copies")
                self.metrics.opened(session.language, "forked", count)
                made.extend(
                    core.registry.add(key, tenant, session.language, session.limits, lease_s)
                    for key in keys
                )

            async def copy() -> float:
                began_s = time.monotonic()
                try:
                    core.usable(request.session_id, over=over)  # it may have waited
                    payload = wire.pack_fork(session.key, keys, told.SerializeToString())
                    await core.alone(session, link, (wire.FORK, payload), opened)
                except BaseException:
                    core.forget(link, keys)
                    core.room.give_back(tenant, count)
                    raise
                return time.monotonic() - began_s

            took_s = await core.within(copy(), answer_s, abandoned=lambda _: core.close_all(made))
            response = session_pb2.ForkResponse(sessions=[core.told(one) for one in made])
            fill_duration(response.took, took_s)
            self._took("fork", session, took_s)
            add_log_fields(sessions=count)
            return response

    async def renew(
        self, request: session_pb2.RenewRequest, *, timeout_s: float
    ) -> session_pb2.RenewResponse:
        """Extends leases."""
        del timeout_s
        with self._counted("Renew"):
            response = session_pb2.RenewResponse()
            self._rules.lease(request.lease, self._rules.lease_s)  # checked before any is changed
            for session_id in request.session_ids:
                try:
                    session = self._core.registry.find(session_id, tenant_var.get())
                except CallError:
                    response.missing.append(session_id)
                    continue
                session.lease_s = self._rules.lease(request.lease, session.lease_s)
                self._core.registry.touch(session)
                response.sessions.append(self._core.told(session))
            return response

    async def drop_checkpoints(
        self, request: session_pb2.DropCheckpointsRequest, *, timeout_s: float
    ) -> session_pb2.DropCheckpointsResponse:
        """Frees checkpoints."""
        with self._counted("DropCheckpoints"):
            session = self._core.usable(request.session_id)
            told = session_pb2.DropCheckpointsRequest(checkpoint_ids=request.checkpoint_ids)
            payload = await self._core.ask(session, wire.DROP, told, timeout_s)
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
        with self._counted("Close"):
            ending = []
            for session_id in request.session_ids:
                with contextlib.suppress(CallError):
                    session = self._core.registry.find(session_id, tenant_var.get())
                    ending.append(self._core.end(session, CLOSED))
            if ending:
                left_s = answer_by_s(time.monotonic(), timeout_s) - time.monotonic()
                await asyncio.wait(ending, timeout=min(left_s, COMES_BACK_S))
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
            open=len(self._core.registry),
            replica=self._core.settings.replica,
            server_version=version("assay-rl-sandbox"),
        )
        fill_duration(response.default_lease, rules.lease_s)
        fill_duration(response.max_lease, rules.max_lease_s)
        if self._core.link is None or not self._core.link.up:
            response.no_copies_because = self._core.lack()
            return response
        ready = self._core.link.ready
        response.languages.extend(sorted(ready.get("languages", ())))
        response.isolation_layers.extend(ready.get("layers", self._core.settings.layers))
        response.copies = bool(ready.get("copies"))
        response.no_copies_because = "" if response.copies else str(ready.get("why_not", ""))
        response.capacity = self._core.room.places
        response.python_packages.update(ready.get("packages", {}))
        return response

    async def _places(self, tenant: str, count: int, answer_s: float) -> None:
        """Takes places for sessions, and a turn at the host, who makes them."""
        core = self._core
        await core.room.take(tenant, count, answer_s - time.monotonic())
        try:
            await core.turn(core.work, answer_s)
        except BaseException:
            core.room.give_back(tenant, count)
            raise

    def _took(self, operation: str, session: OpenSession, seconds: float) -> None:
        self.metrics.took(operation, seconds)
        note_operation(operation, session, seconds)

    @contextlib.contextmanager
    def _counted(self, method: str) -> Iterator[None]:
        try:
            yield
        except CallError as error:
            self.metrics.fault(method, error.reason)
            raise
