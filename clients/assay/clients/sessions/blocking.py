"""The blocking client of sessions: `SessionClient`, and `Session` that it makes.

    with SessionClient("127.0.0.1:50052") as client, client.create() as session:
        print(session.execute("6 * 7").plain)

Calls about a session go out from the caller's thread, without the event loop of the portal: that
saves a quarter of a millisecond each. What failed is settled on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from assay.clients.config import ClientConfig
from assay.clients.core.channel import GrpcTransport, Transport
from assay.clients.core.portal import SyncClient
from assay.clients.sessions import calls
from assay.clients.sessions.calls import Ask, CellReader, Effort, Handle
from assay.clients.sessions.client import AsyncSessionClient
from assay.clients.sessions.folders import read_folder, write_folder
from assay.clients.sessions.types import (
    CellEvent,
    CellResult,
    SessionFiles,
    SessionLimits,
    SessionsInfo,
)
from assay.kit.errors import CallError
from assay.kit.tls import ClientTls

T = TypeVar("T")


class SessionClient(SyncClient[AsyncSessionClient, SessionsInfo]):
    """Opens sessions in a sandbox, with the methods of `AsyncSessionClient`.

    Threads may share it; it survives a fork and can be pickled, and so do its sessions. Its
    arguments are those of `AsyncSessionClient`.
    """

    _asynchronous = AsyncSessionClient

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Callable[[], Transport] | None = None,
        keep_alive: bool = False,
    ) -> None:
        self._keep_alive = keep_alive
        super().__init__(
            target, tls=tls, token=token, timeout_s=timeout_s, config=config, transport=transport
        )

    def _further(self) -> dict[str, Any]:
        return {"keep_alive": self._keep_alive}

    @overload
    def create(
        self,
        language: str = ...,
        *,
        count: None = None,
        files: Mapping[str, bytes | str] | None = ...,
        environment: Mapping[str, str] | None = ...,
        limits: SessionLimits | None = ...,
        lease_s: float | None = ...,
        timeout_s: float | None = ...,
    ) -> Session: ...

    @overload
    def create(
        self,
        language: str = ...,
        *,
        count: int,
        files: Mapping[str, bytes | str] | None = ...,
        environment: Mapping[str, str] | None = ...,
        limits: SessionLimits | None = ...,
        lease_s: float | None = ...,
        timeout_s: float | None = ...,
    ) -> list[Session]: ...

    def create(
        self,
        language: str = "python",
        *,
        count: int | None = None,
        files: Mapping[str, bytes | str] | None = None,
        environment: Mapping[str, str] | None = None,
        limits: SessionLimits | None = None,
        lease_s: float | None = None,
        timeout_s: float | None = None,
    ) -> Session | list[Session]:
        """See `AsyncSessionClient.create`."""
        request = calls.create(
            language=language,
            count=count,
            files=files or {},
            environment=environment or {},
            limits=limits or SessionLimits(),
            lease_s=lease_s,
        )
        handles = self._run(lambda client: client.make(request, timeout_s))
        made = [Session(self, handle) for handle in handles]
        return made[0] if count is None else made

    def attach(
        self, session_id: str, replica: str = "", *, timeout_s: float | None = None
    ) -> Session:
        """See `AsyncSessionClient.attach`."""
        return Session(self, self._run(lambda c: c.find(session_id, replica, timeout_s)))

    def describe(self, *, timeout_s: float | None = None) -> SessionsInfo:
        """See `AsyncSessionClient.describe`."""
        return self._run(lambda client: client.describe(timeout_s=timeout_s))

    # What sessions ask for.

    def carry(self, handle: Handle, ask: Ask[T], timeout_s: float | None = None) -> T:
        """Makes a call about a session."""
        client = self._open().client
        effort = client.effort(ask, timeout_s)
        while True:
            handle.check()
            wire = client.transport_of(handle)
            if not isinstance(wire, GrpcTransport):
                return self._run(lambda c: c.carry(handle, ask, timeout_s))
            try:
                response = wire.call_blocking(
                    ask.method, ask.request, timeout_s=effort.left_s, metadata=handle.metadata
                )
            except CallError as error:
                self._recover(handle, ask, error, effort)
            else:
                handle.unsettled = False
                return ask.read(response)

    def events(
        self, handle: Handle, ask: Ask[Any], timeout_s: float | None = None
    ) -> Generator[CellEvent, None, None]:
        """Runs a cell."""
        client = self._open().client
        effort = client.effort(ask, timeout_s)
        while True:
            handle.check()
            reader = CellReader()
            wire = client.transport_of(handle)
            if not isinstance(wire, GrpcTransport):
                yield from self._stream(lambda c: c.events(handle, ask, timeout_s))
                return
            try:
                with handle.running():
                    responses = wire.receive_blocking(
                        ask.method, ask.request, timeout_s=effort.left_s, metadata=handle.metadata
                    )
                    with closing(responses):
                        for message in responses:
                            yield reader.read(message)
                    reader.check()
                return
            except CallError as error:
                self._recover(handle, ask, error, effort)

    def hold(self, handles: list[Handle]) -> None:
        """Closes sessions at the end."""
        self._run(lambda client: client.keep(handles))

    def let_go(self, handle: Handle) -> None:
        """Leaves a session open at the end."""
        self._open().client.let_go(handle)

    def end(self, handle: Handle) -> None:
        """Closes a session; a finalizer on the client's own thread does not wait for it."""
        portal = self._open()
        if portal.is_own_thread:
            portal.submit(portal.client.end(handle))
        else:
            portal.run(portal.client.end(handle))

    def _recover(self, handle: Handle, ask: Ask[Any], error: CallError, effort: Effort) -> None:
        self._run(lambda client: client.recover(handle, ask, error, effort))


class Session:
    """A session, with the methods of `AsyncSession`. Its context closes it."""

    def __init__(self, client: SessionClient, handle: Handle) -> None:
        self._client = client
        self._handle = handle

    @property
    def id(self) -> str:
        """For `attach`, with `replica`."""
        return self._handle.id

    @property
    def replica(self) -> str:
        """The name of the replica that holds it."""
        return self._handle.replica

    @property
    def limits(self) -> SessionLimits:
        """What it may use; every field is set."""
        return self._handle.limits

    @property
    def lease_s(self) -> float:
        """How long it lives without a call about it."""
        return self._handle.lease_s

    @property
    def isolation_level(self) -> str:
        """How it is isolated, as for an Execution."""
        return self._handle.isolation_level

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def execute(
        self,
        code: str,
        *,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        on_event: Callable[[CellEvent], object] | None = None,
        retry: bool = False,
        timeout_s: float | None = None,
    ) -> CellResult:
        """See `AsyncSession.execute`; an exception in the caller's thread interrupts the cell."""
        result: CellEvent | None = None
        ask = calls.execute(self._handle, code, wall_s, cpu_s, again=retry)
        with closing(self._client.events(self._handle, ask, timeout_s)) as events:
            for result in events:
                if on_event is not None:
                    on_event(result)
        return calls.result_of(result)

    def stream(
        self,
        code: str,
        *,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        timeout_s: float | None = None,
    ) -> Generator[CellEvent, None, None]:
        """See `AsyncSession.stream`."""
        ask = calls.execute(self._handle, code, wall_s, cpu_s, again=False)
        return self._client.events(self._handle, ask, timeout_s)

    def put_files(self, files: Mapping[str, bytes | str]) -> None:
        """See `AsyncSession.put_files`."""
        for ask in calls.put_files(self._handle, files):
            self._client.carry(self._handle, ask)

    def get_files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """See `AsyncSession.get_files`."""
        return self._client.carry(self._handle, calls.get_files(self._handle, paths))

    def list_files(self) -> SessionFiles:
        """See `AsyncSession.list_files`."""
        return self._client.carry(self._handle, calls.list_files(self._handle))

    def put_folder(self, folder: Path | str, under: str = "") -> None:
        """See `AsyncSession.put_folder`."""
        self.put_files(read_folder(Path(folder), under))

    def get_folder(self, folder: Path | str) -> list[Path]:
        """See `AsyncSession.get_folder`."""
        written: list[Path] = []
        for paths in calls.in_portions(self.list_files()):
            written += write_folder(Path(folder), self.get_files(paths))
        return written

    def checkpoint(self) -> Checkpoint:
        """See `AsyncSession.checkpoint`."""
        name = self._client.carry(self._handle, calls.checkpoint(self._handle))
        return Checkpoint(self._client, self._handle, name)

    def rollback(self, point: Checkpoint | str) -> None:
        """See `AsyncSession.rollback`."""
        ask = calls.rollback(self._handle, point if isinstance(point, str) else point.id)
        self._client.carry(self._handle, ask)

    def fork(
        self,
        count: int = 1,
        *,
        of: Checkpoint | str = "",
        lease_s: float | None = None,
        reseed: bool = False,
    ) -> list[Session]:
        """See `AsyncSession.fork`."""
        name = of if isinstance(of, str) else of.id
        ask = calls.fork(self._handle, count, name, lease_s, reseed=reseed)
        handles = self._client.carry(self._handle, ask)
        self._client.hold(handles)
        return [Session(self._client, handle) for handle in handles]

    def renew(self, lease_s: float | None = None) -> float:
        """See `AsyncSession.renew`."""
        ask = calls.renew([self._handle], lease_s)
        return calls.renewed(self._handle, self._client.carry(self._handle, ask))

    def detach(self) -> None:
        """See `AsyncSession.detach`."""
        self._client.let_go(self._handle)

    def close(self) -> None:
        """See `AsyncSession.close`."""
        self._client.end(self._handle)


class Checkpoint:
    """A state of a session, for `rollback` and `fork`."""

    def __init__(self, client: SessionClient, handle: Handle, checkpoint_id: str) -> None:
        self.id = checkpoint_id
        self._client = client
        self._handle = handle

    def drop(self) -> None:
        """Frees it."""
        self._client.carry(self._handle, calls.drop(self._handle, self.id))
