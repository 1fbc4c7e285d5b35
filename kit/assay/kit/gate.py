"""The gate that every call passes: closed while the server starts and drains, open while it serves.

The drain waits for the running calls, and ends those that outstay it. One event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

import grpc

from assay.kit.errors import refuse
from assay.kit.reasons import Reason
from assay.kit.spans import TraceSpan

_BUSY_RETRY_S = 1.0
_EVICTION_S = 5.0


class Phase(Enum):
    """Where in its life the server is."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"


@dataclass(slots=True, eq=False)
class ServerCall:
    """One call in progress.

    Attributes:
        method: full name, as "/package.Service/Method".
        tenant: of its token; empty where none is needed.
        label: what metrics call the tenant.
        always_open: health and reflection: passes in every phase, and no drain waits for it.
        evicted: the drain ran out and the server ended the call.
        known: the server has this method, and let the caller in.
        headers: for its trace; None for a call that is in no trace.
        span: its own, while it runs.
    """

    method: str
    request_id: str
    always_open: bool
    tenant: str = ""
    label: str = ""
    task: asyncio.Task[Any] | None = None
    evicted: bool = False
    fields: dict[str, object] = field(default_factory=dict)
    known: bool = False
    headers: Mapping[str, str | bytes] | None = None
    span: TraceSpan = field(default_factory=TraceSpan)


class CallGate:
    """Admits calls, and drains.

    Args:
        max_concurrent_calls: above it a call is refused with QUEUE_FULL; health and reflection do
            not count.
        max_tenant_calls: above it a tenant's call is refused with QUOTA_EXCEEDED; 0 for no limit.
    """

    def __init__(self, max_concurrent_calls: int, max_tenant_calls: int = 0) -> None:
        self.phase = Phase.STARTING
        self._max_concurrent_calls = max_concurrent_calls
        self._max_tenant_calls = max_tenant_calls
        self._running: set[ServerCall] = set()
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self._lingering: tuple[str, ...] = ()

    @property
    def running(self) -> int:
        """Calls in progress, without health and reflection."""
        return sum(not call.always_open for call in tuple(self._running))

    def enter(self, call: ServerCall, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Admits a call of gRPC until its status is on the wire.

        Raises:
            UnavailableError: as `admit`.
            OverloadedError: as `admit`.
        """
        self.admit(call)
        # gRPC's type stubs ask for a class of their own here; at run time any function will do.
        context.add_done_callback(cast("Any", lambda _context: self.leave(call)))

    def admit(self, call: ServerCall) -> None:
        """Admits a call until `leave`; a drain may end the current task.

        Raises:
            UnavailableError: the server starts or drains.
            OverloadedError: too many calls are running, or too many of this tenant.
        """
        if not call.always_open:
            if self.phase is Phase.STARTING:
                raise refuse(Reason.STARTING, "the server is starting: its self-test is not done")
            if self.phase is Phase.DRAINING and not call.method.startswith(self._lingering):
                raise refuse(Reason.DRAINING, "the server is shutting down")
            if self.running >= self._max_concurrent_calls:
                raise refuse(
                    Reason.QUEUE_FULL,
                    f"{self._max_concurrent_calls} calls are running, the most that are taken",
                    retry_after_s=_BUSY_RETRY_S,
                )
            if self._max_tenant_calls and self._running_of(call.tenant) >= self._max_tenant_calls:
                raise refuse(
                    Reason.QUOTA_EXCEEDED,
                    f"{self._max_tenant_calls} calls of this tenant are running, its most",
                    retry_after_s=_BUSY_RETRY_S,
                )
        call.task = asyncio.current_task()
        self._running.add(call)

    def _running_of(self, tenant: str) -> int:
        return sum(not call.always_open and call.tenant == tenant for call in self._running)

    def leave(self, call: ServerCall) -> None:
        """Ends an admitted call."""
        self._running.discard(call)
        self._changed.set()

    def hurry(self) -> None:
        """Ends a drain now: running calls are cancelled."""
        self._hurry.set()

    def drain_but(self, services: Sequence[str]) -> None:
        """Refuses new calls but to these services, until `drain`."""
        self.phase = Phase.DRAINING
        self._lingering = tuple(f"/{name}/" for name in services)

    async def wait_or_hurry(
        self, work: asyncio.Future[Any], timeout_s: float | None = None
    ) -> None:
        """Waits for some work, and cancels it at `hurry` or when the time is over."""
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                {work, hurry}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hurry.cancel()
            work.cancel()

    async def drain(self, drain_s: float) -> int:
        """Refuses new calls, waits `drain_s` seconds for the running ones, and cancels the rest.

        Returns:
            How many calls were cancelled, without health and reflection.
        """
        self.drain_but(())
        if self.running and drain_s > 0 and not self._hurry.is_set():
            idle = asyncio.ensure_future(self._wait_until(counted_only=True))
            await self.wait_or_hurry(idle, drain_s)
        outstayed = [call for call in self._running if not call.always_open]
        for call in list(self._running):
            call.evicted = True
            if call.task is not None:
                call.task.cancel()
        # A handler that swallows its cancellation must not keep the server: gRPC ends its call
        # afterwards.
        ended = asyncio.ensure_future(self._wait_until(counted_only=False))
        await asyncio.wait({ended}, timeout=_EVICTION_S)
        ended.cancel()
        return len(outstayed)

    async def _wait_until(self, *, counted_only: bool) -> None:
        while self.running if counted_only else self._running:
            self._changed.clear()
            await self._changed.wait()
