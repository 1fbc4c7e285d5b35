"""The asynchronous client of sessions: `AsyncSessionClient`, and `AsyncSession` that it makes.

async with AsyncSessionClient("127.0.0.1:50052") as client:
async with await client.create() as session:
result = await session.execute("6 * 7")
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TypeVar, overload

from assay.clients.config import RetryPolicy
from assay.clients.sessions import calls
from assay.clients.sessions.carrier import SessionCarrier
from assay.clients.sessions.session import AsyncSession
from assay.clients.sessions.types import (
    SessionLimits,
    SessionsInfo,
)

T = TypeVar("T")
_CLOSE_S = 5.0
_PROBE_S = 5.0
_PROBE = RetryPolicy(max_attempts=4, base_s=0.2, cap_s=1.0)
_SETTLE_S = 0.02
_LEAST_RENEWAL_S = 0.2

_log = logging.getLogger(__name__)


class AsyncSessionClient(SessionCarrier):
    """Opens sessions in a sandbox. Belongs to the event loop that first uses it.

    Closing it closes the sessions that it made, except detached ones. Further arguments are those
    of `AsyncRewardClient`.

    Args:
        target: a server, or replicas ("dns:///sandbox:50052", "10.0.0.1:50052,10.0.0.2:50052"):
            new sessions go to them by turns, and each session's calls to its own.
        timeout_s: for each call, and for a cell besides its limit on the clock.
        keep_alive: renews the leases of the sessions that it made or attached.
    """

    @overload
    async def create(
        self,
        language: str = ...,
        *,
        count: None = None,
        files: Mapping[str, bytes | str] | None = ...,
        environment: Mapping[str, str] | None = ...,
        limits: SessionLimits | None = ...,
        lease_s: float | None = ...,
        timeout_s: float | None = ...,
    ) -> AsyncSession: ...

    @overload
    async def create(
        self,
        language: str = ...,
        *,
        count: int,
        files: Mapping[str, bytes | str] | None = ...,
        environment: Mapping[str, str] | None = ...,
        limits: SessionLimits | None = ...,
        lease_s: float | None = ...,
        timeout_s: float | None = ...,
    ) -> list[AsyncSession]: ...

    async def create(
        self,
        language: str = "python",
        *,
        count: int | None = None,
        files: Mapping[str, bytes | str] | None = None,
        environment: Mapping[str, str] | None = None,
        limits: SessionLimits | None = None,
        lease_s: float | None = None,
        timeout_s: float | None = None,
    ) -> AsyncSession | list[AsyncSession]:
        """Opens a session of "python" or "bash"; with `count` so many, all or none, as a list.

        `files` are those of the working directory, by relative path. It lives for `lease_s` without
        a call about it or a renewal. Waits for a place as long as `timeout_s` says.

        Raises:
            OverloadedError: no place was free in time.
            BadRequestError: a limit above the server's, a wrong path, an unknown language.
        """
        handles = await self.make(
            calls.create(
                language=language,
                count=count,
                files=files or {},
                environment=environment or {},
                limits=limits or SessionLimits(),
                lease_s=lease_s,
            ),
            timeout_s,
        )
        made = [AsyncSession(self, handle) for handle in handles]
        return made[0] if count is None else made

    async def attach(
        self, session_id: str, replica: str = "", *, timeout_s: float | None = None
    ) -> AsyncSession:
        """A session that was made elsewhere, by its `id` and `replica`. Its lease begins anew.

        Closing the client does not close it.

        Raises:
            BadRequestError: SESSION_NOT_FOUND.
            SessionLost: no replica of this name answers.
        """
        return AsyncSession(self, await self.find(session_id, replica, timeout_s))

    async def describe(self, *, timeout_s: float | None = None) -> SessionsInfo:
        """What a replica serves, with which walls and limits, and how many sessions fit."""
        return await self._refresh_info(timeout_s)
