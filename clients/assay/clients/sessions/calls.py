"""The calls about a session as values: what is asked and how the answer is read. Pure.

Both clients carry them, the one on an event loop, the other in the caller's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.clients.sessions import convert
from assay.clients.sessions.types import (
    CellEvent,
    CellResult,
    DisplayValue,
    SessionFiles,
    SessionLimits,
)
from assay.kit.calls import REPLICA_KEY
from assay.kit.channels import Metadata
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import AssayError, CallError, ConfigError, refuse
from assay.kit.reasons import Reason

SERVICE = "assay.api.session.v1.SessionService"

_REQUEST_BYTES = 16 * 2**20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One call. `again`: it may be repeated. `extra_s`: the time that its work may take."""

    method: str
    request: Any
    read: Callable[[Any], T]
    again: bool = False
    extra_s: float = 0.0


@dataclass(slots=True)
class Handle:
    """What a client knows of a session.

    Attributes:
        address: of the server or the proxy that is asked about it.
        unsettled: a cell of it was cut off, and may still be on its way out.
        over: why it can answer no more.
    """

    id: str
    replica: str
    address: str
    limits: SessionLimits
    lease_s: float
    isolation_level: str = ""
    unsettled: bool = False
    closed: bool = False
    over: AssayError | None = None

    @property
    def metadata(self) -> Metadata:
        """What leads a call to its replica."""
        return ((REPLICA_KEY, self.replica),) if self.replica else ()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a cell: one that is left early is unsettled until the next call that is served."""
        whole = False
        try:
            yield
            whole = True
        except CallError as error:
            whole = error.reason != Reason.DEADLINE_EXCEEDED and not self.unsettled
            raise
        finally:
            self.unsettled = not whole

    def check(self) -> None:
        """Raises what ended it."""
        if self.closed:
            raise ConfigError(f"the session {self.id} is closed; make a new one")
        if self.over is not None:
            raise self.over.with_traceback(None)


@dataclass(slots=True)
class Effort:
    """What was tried for a call. `deadline_s` is by the monotonic clock."""

    deadline_s: float
    failures: int = 0
    moved: bool = False

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, more than 0."""
        return max(self.deadline_s - time.monotonic(), 0.001)


class CellReader:
    """Reads the messages of one cell."""

    def __init__(self) -> None:
        self._displays: list[DisplayValue] = []
        self._done = False

    def read(self, message: session_pb2.ExecuteResponse) -> CellEvent:
        """A message as an event."""
        if message.HasField("output"):
            return convert.piece_from_proto(message.output)
        if message.HasField("display"):
            self._displays.append(convert.display_from_proto(message.display))
            return self._displays[-1]
        self._done = True
        return convert.result_from_proto(message.result, self._displays)

    def check(self) -> None:
        """Raises ServerError, MISSING_RESULT, where the stream ended without a result."""
        if not self._done:
            raise refuse(Reason.MISSING_RESULT, "the server ended a cell without its result")


def result_of(last: CellEvent | None) -> CellResult:
    """The last event of a cell."""
    if not isinstance(last, CellResult):
        raise refuse(Reason.MISSING_RESULT, "the server ended a cell without its result")
    return last


def handle_of(session: session_pb2.Session, address: str) -> Handle:
    """A session as the server names it."""
    return Handle(
        id=session.id,
        replica=session.replica,
        address=address,
        limits=convert.limits_from_proto(session.limits),
        lease_s=seconds_of(session.lease_left),
        isolation_level=session.isolation_level,
    )


def create(
    *,
    language: str,
    count: int | None,
    files: Mapping[str, bytes | str],
    environment: Mapping[str, str],
    limits: SessionLimits,
    lease_s: float | None,
) -> session_pb2.CreateRequest:
    """The request of new sessions."""
    _check_count(count)
    request = session_pb2.CreateRequest(
        language=language,
        count=count or 0,
        files=convert.files_to_proto(files),
        environment=environment,
        limits=convert.limits_to_proto(limits),
    )
    _set_seconds(request.lease, "lease_s", lease_s)
    return request


def execute(
    handle: Handle, code: str, wall_s: float | None, cpu_s: float | None, *, again: bool
) -> Ask[Any]:
    """A cell. Its answer is a stream, see `CellReader`."""
    request = session_pb2.ExecuteRequest(session_id=handle.id, code=code)
    _set_seconds(request.wall_time, "wall_s", wall_s)
    _set_seconds(request.cpu_time, "cpu_s", cpu_s)
    extra_s = wall_s or handle.limits.cell_wall_time_s or 0.0
    return Ask(f"{SERVICE}.Execute", request, lambda _: None, again, extra_s)


def put_files(handle: Handle, files: Mapping[str, bytes | str]) -> Iterable[Ask[None]]:
    """Files to write, in as many calls as their size wants."""
    batch: list[execution_pb2.SourceFile] = []
    size = 0
    for file in convert.files_to_proto(files):
        if batch and size + len(file.content) > _REQUEST_BYTES:
            yield _put(handle, batch)
            batch, size = [], 0
        batch.append(file)
        size += len(file.content)
    if batch:
        yield _put(handle, batch)


def _put(handle: Handle, files: Iterable[execution_pb2.SourceFile]) -> Ask[None]:
    request = session_pb2.PutFilesRequest(session_id=handle.id, files=files)
    return Ask(f"{SERVICE}.PutFiles", request, lambda _: None)


def get_files(handle: Handle, paths: Iterable[str]) -> Ask[dict[str, bytes]]:
    """Files to read."""
    if isinstance(paths, str):
        raise ConfigError("get_files takes a list of paths; put the one path into a list")
    request = session_pb2.GetFilesRequest(session_id=handle.id, paths=paths)
    if not request.paths:
        raise ConfigError("get_files was given no path; list_files lists all")
    return Ask(
        f"{SERVICE}.GetFiles", request, lambda r: {f.path: f.content for f in r.files}, again=True
    )


def list_files(handle: Handle) -> Ask[SessionFiles]:
    """A listing."""
    request = session_pb2.GetFilesRequest(session_id=handle.id)
    return Ask(f"{SERVICE}.GetFiles", request, convert.files_from_proto, again=True)


def in_portions(files: SessionFiles) -> Iterable[list[str]]:
    """The paths of a listing's files in portions that fit into an answer each."""
    portion: list[str] = []
    size = 0
    for file in files:
        if portion and size + file.size_bytes > _REQUEST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(file.path)
        size += file.size_bytes
    if portion:
        yield portion


def checkpoint(handle: Handle) -> Ask[str]:
    """The name of a new checkpoint."""
    request = session_pb2.CheckpointRequest(session_id=handle.id)
    return Ask(f"{SERVICE}.Checkpoint", request, lambda r: str(r.checkpoint_id))


def rollback(handle: Handle, checkpoint_id: str) -> Ask[None]:
    """Back to a checkpoint."""
    request = session_pb2.RollbackRequest(session_id=handle.id, checkpoint_id=checkpoint_id)
    return Ask(f"{SERVICE}.Rollback", request, lambda _: None)


def drop(handle: Handle, checkpoint_id: str) -> Ask[None]:
    """A checkpoint to free."""
    request = session_pb2.DropCheckpointsRequest(
        session_id=handle.id, checkpoint_ids=[checkpoint_id]
    )
    return Ask(f"{SERVICE}.DropCheckpoints", request, lambda _: None, again=True)


def fork(
    handle: Handle, count: int, checkpoint_id: str, lease_s: float | None, *, reseed: bool
) -> Ask[list[Handle]]:
    """Copies."""
    _check_count(count)
    request = session_pb2.ForkRequest(
        session_id=handle.id, count=count, checkpoint_id=checkpoint_id, reseed=reseed
    )
    _set_seconds(request.lease, "lease_s", lease_s)
    return Ask(
        f"{SERVICE}.Fork", request, lambda r: [handle_of(s, handle.address) for s in r.sessions]
    )


def renew(handles: Iterable[Handle], lease_s: float | None = None) -> Ask[Mapping[str, Handle]]:
    """Leases to extend; the answer holds the sessions that are there, by id."""
    listed = list(handles)
    request = session_pb2.RenewRequest(session_ids=[one.id for one in listed])
    _set_seconds(request.lease, "lease_s", lease_s)
    address = listed[0].address
    return Ask(
        f"{SERVICE}.Renew",
        request,
        lambda r: {s.id: handle_of(s, address) for s in r.sessions},
        again=True,
    )


def renewed(handle: Handle, found: Mapping[str, Handle]) -> float:
    """The lease of a session after its renewal, in seconds."""
    if handle.id not in found:
        raise refuse(
            Reason.SESSION_NOT_FOUND,
            f"no session has the id {handle.id}: it ended, or is another tenant's",
        )
    handle.lease_s = found[handle.id].lease_s
    return handle.lease_s


def close(handles: Iterable[Handle]) -> Ask[None]:
    """Sessions to end."""
    request = session_pb2.CloseRequest(session_ids=[one.id for one in handles])
    return Ask(f"{SERVICE}.Close", request, lambda _: None, again=True)


def together(handles: Iterable[Handle]) -> list[list[Handle]]:
    """Those that one call may name: of one replica at one address."""
    groups: dict[tuple[str, str], list[Handle]] = {}
    for handle in handles:
        groups.setdefault((handle.address, handle.replica), []).append(handle)
    return list(groups.values())


def _check_count(count: int | None) -> None:
    if count is not None and count < 1:
        raise ConfigError(f"{count} sessions were asked for; ask for 1 or more")


def _set_seconds(message: Any, name: str, seconds: float | None) -> None:
    if seconds is None:
        return
    if not 0 < seconds < 2**53:
        raise ConfigError(f"{name} is {seconds}; pass a positive number of seconds")
    fill_duration(message, seconds)
