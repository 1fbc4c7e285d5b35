"""`AsyncSession`: a session, and `AsyncCheckpoint`: a state of one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from assay.clients.config import RetryPolicy
from assay.clients.sessions import calls
from assay.clients.sessions.calls import Handle
from assay.clients.sessions.carrier import SessionCarrier
from assay.clients.sessions.folders import read_folder, write_folder
from assay.clients.sessions.types import (
    CellEvent,
    CellResult,
    SessionFiles,
    SessionLimits,
)

T = TypeVar("T")
_CLOSE_S = 5.0
_PROBE_S = 5.0
_PROBE = RetryPolicy(max_attempts=4, base_s=0.2, cap_s=1.0)
_SETTLE_S = 0.02
_LEAST_RENEWAL_S = 0.2

_log = logging.getLogger(__name__)


class AsyncSession:
    """A session. Its context closes it; so does the end of its client."""

    def __init__(self, client: SessionCarrier, handle: Handle) -> None:
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def execute(
        self,
        code: str,
        *,
        wall_s: float | None = None,
        cpu_s: float | None = None,
        on_event: Callable[[CellEvent], object] | None = None,
        retry: bool = False,
        timeout_s: float | None = None,
    ) -> CellResult:
        """Runs a cell. Cancelling it interrupts the cell; the session goes on.

        `wall_s` and `cpu_s` are the cell's limits, at most the session's; `timeout_s` is for the
        call besides. `on_event` is called with each piece of output, each display, and the result.
        `retry`: the cell may run twice, so a broken call is made again.

        Raises:
            SessionEnded: the program ended the session earlier: no fault.
            SessionLost: a fault: drop the sample.
            CallError: it is not known whether the cell ran.
        """
        result: CellEvent | None = None
        ask = calls.execute(self._handle, code, wall_s, cpu_s, again=retry)
        async with aclosing(self._client.events(self._handle, ask, timeout_s)) as events:
            async for result in events:
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
    ) -> AsyncGenerator[CellEvent, None]:
        """Runs a cell; yields what it writes and shows as it does, and its result as the last."""
        ask = calls.execute(self._handle, code, wall_s, cpu_s, again=False)
        return self._client.events(self._handle, ask, timeout_s)

    async def put_files(self, files: Mapping[str, bytes | str]) -> None:
        """Writes files into the working directory, by relative path."""
        for ask in calls.put_files(self._handle, files):
            await self._client.carry(self._handle, ask)

    async def get_files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Reads files; one that is missing is left out."""
        return await self._client.carry(self._handle, calls.get_files(self._handle, paths))

    async def list_files(self) -> SessionFiles:
        """The files of the working directory, sorted by path."""
        return await self._client.carry(self._handle, calls.list_files(self._handle))

    async def put_folder(self, folder: Path | str, under: str = "") -> None:
        """Writes the files of a local folder, with its subfolders; links are left out."""
        await self.put_files(await asyncio.to_thread(read_folder, Path(folder), under))

    async def get_folder(self, folder: Path | str) -> list[Path]:
        """Writes all files of the session into a local folder. Existing ones are replaced."""
        written: list[Path] = []
        for paths in calls.in_portions(await self.list_files()):
            files = await self.get_files(paths)
            written += await asyncio.to_thread(write_folder, Path(folder), files)
        return written

    async def checkpoint(self) -> AsyncCheckpoint:
        """Keeps the session's state, memory and files, as it is now.

        Raises:
            CannotFork: its `holds` names what no copy can have.
        """
        name = await self._client.carry(self._handle, calls.checkpoint(self._handle))
        return AsyncCheckpoint(self._client, self._handle, name)

    async def rollback(self, point: AsyncCheckpoint | str) -> None:
        """Puts the session back to a checkpoint, which stays."""
        ask = calls.rollback(self._handle, point if isinstance(point, str) else point.id)
        await self._client.carry(self._handle, ask)

    async def fork(
        self,
        count: int = 1,
        *,
        of: AsyncCheckpoint | str = "",
        lease_s: float | None = None,
        reseed: bool = False,
    ) -> list[AsyncSession]:
        """Copies the session, or one of its checkpoints, into new ones.

        `reseed` gives each copy random numbers of its own.

        Raises:
            CannotFork: see `checkpoint`.
            OverloadedError: they do not fit.
        """
        name = of if isinstance(of, str) else of.id
        ask = calls.fork(self._handle, count, name, lease_s, reseed=reseed)
        handles = await self._client.carry(self._handle, ask)
        self._client.hold(handles, owned=True)
        return [AsyncSession(self._client, handle) for handle in handles]

    async def renew(self, lease_s: float | None = None) -> float:
        """Begins the lease anew, or replaces it; the seconds that it has."""
        ask = calls.renew([self._handle], lease_s)
        found = await self._client.carry(self._handle, ask)
        return calls.renewed(self._handle, found)

    def detach(self) -> None:
        """Leaves the session open at the end of the client."""
        self._client.let_go(self._handle)

    async def close(self) -> None:
        """Ends the session. May be called twice; its forks live on."""
        await self._client.end(self._handle)


class AsyncCheckpoint:
    """A state of a session, for `rollback` and `fork`."""

    def __init__(self, client: SessionCarrier, handle: Handle, checkpoint_id: str) -> None:
        self.id = checkpoint_id
        self._client = client
        self._handle = handle

    async def drop(self) -> None:
        """Frees it."""
        await self._client.carry(self._handle, calls.drop(self._handle, self.id))
