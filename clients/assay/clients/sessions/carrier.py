"""The way of each call about sessions: to its replica, again where that is safe, closed at the end.

Retried is what is certain to have had no effect (no session fits, the call never left, another
replica holds the session), and calls that may be repeated by their nature. Never a cell that may
have begun, unless the caller passes `retry=True`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, NoReturn, TypeVar

import grpc

from assay.api.session.v1 import session_pb2
from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.core.base import BaseClient, check_timeout
from assay.clients.core.channel import Transport
from assay.clients.core.retry import call_with_retries, is_retryable, next_delay_s
from assay.clients.sessions import calls, convert
from assay.clients.sessions.calls import Ask, CellReader, Effort, Handle
from assay.clients.sessions.errors import (
    LeaseExpired,
    SessionLost,
    error_of,
    is_certain,
    replica_gone,
)
from assay.clients.sessions.replicas import Replicas, grpc_opener
from assay.clients.sessions.types import (
    CellEvent,
    SessionLimits,
    SessionsInfo,
)
from assay.kit.errors import CallError, ConfigError
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

T = TypeVar("T")
_CLOSE_S = 5.0
_PROBE_S = 5.0
_PROBE = RetryPolicy(max_attempts=4, base_s=0.2, cap_s=1.0)
_SETTLE_S = 0.02
_LOOK_AGAIN_S = 1.0
_LEAST_RENEWAL_S = 0.2

_log = logging.getLogger(__name__)


class SessionCarrier(BaseClient[SessionsInfo]):
    """What the faces of sessions have in common; see `AsyncSessionClient`."""

    server = "sandbox"
    port = 50052

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Transport | None = None,
        keep_alive: bool = False,
    ) -> None:
        super().__init__(target, timeout_s=timeout_s, config=config, transport=transport)
        opener = (lambda _: transport) if transport else grpc_opener(target, tls, token)
        self._replicas = Replicas(target if transport is None else "", opener)
        self._held: dict[str, Handle] = {}
        self._owned: dict[str, Handle] = {}
        self._room: dict[str, int] = {}
        self._looked_s = float("-inf")
        self._keep_alive = keep_alive
        self._keeper: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Closes its sessions and ends every call. May be called twice."""
        if self._closed.is_set():
            return
        if self._keeper is not None:
            self._keeper.cancel()
        owned, self._owned = list(self._owned.values()), {}
        with contextlib.suppress(CallError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.gather(
                    *(self._end(group) for group in calls.together(owned)), return_exceptions=True
                )
        await super().close()
        await self._replicas.close()

    async def make(
        self, request: session_pb2.CreateRequest, timeout_s: float | None
    ) -> list[Handle]:
        """Opens sessions at the next replica that has room."""
        deadline_s = self._begin(timeout_s)
        await self._server_info(deadline_s)

        async def try_each(remaining_s: float) -> list[Handle]:
            refusals: list[CallError] = []
            count = request.count or 1
            for address in await self._by_room(count):
                transport = self._replicas.transport(address)
                try:
                    response = await transport.call(
                        f"{calls.SERVICE}.Create", request, timeout_s=remaining_s
                    )
                    self._room[address] = self._room.get(address, 0) - count
                    return [calls.handle_of(one, address) for one in response.sessions]
                except CallError as error:
                    if not _goes_elsewhere(error):
                        raise
                    refusals.append(error)
            raise min(refusals, key=lambda error: error.retry_after_s or 1e9)

        policy = self._config.retry
        handles = await call_with_retries(
            try_each, policy, deadline_s, self._sleep, retryable=_goes_elsewhere
        )
        self.hold(handles, owned=True)
        return handles

    async def find(self, session_id: str, replica: str, timeout_s: float | None) -> Handle:
        """What is known of a session that was made elsewhere."""
        self._begin(timeout_s)
        address = await self._address_of(replica)
        if address is None:
            raise replica_gone(replica, f"nobody of this name answers at {self.target}")
        handle = Handle(session_id, replica, address, SessionLimits(), 0.0)
        found = await self.carry(handle, calls.renew([handle]), timeout_s)
        calls.renewed(handle, found)
        self.hold([found[session_id]], owned=False)
        return found[session_id]

    def hold(self, handles: Iterable[Handle], *, owned: bool) -> None:
        """Keeps sessions alive where that is wanted, and closes owned ones at the end."""
        for handle in handles:
            self._held[handle.id] = handle
            if owned:
                self._owned[handle.id] = handle
        if self._keep_alive and self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def keep(self, handles: Iterable[Handle]) -> None:
        """Holds copies of a session."""
        self.hold(handles, owned=True)

    def let_go(self, handle: Handle) -> None:
        """Neither renews a session nor closes it at the end."""
        self._held.pop(handle.id, None)
        self._owned.pop(handle.id, None)

    def transport_of(self, handle: Handle) -> Transport:
        """The channel to a session's replica; from any thread."""
        return self._replicas.transport(handle.address)

    def effort(self, ask: Ask[Any], timeout_s: float | None) -> Effort:
        """A call's time."""
        seconds = self.timeout_s if timeout_s is None else timeout_s
        check_timeout(seconds)
        return Effort(time.monotonic() + seconds + ask.extra_s)

    async def carry(self, handle: Handle, ask: Ask[T], timeout_s: float | None = None) -> T:
        """Makes a call about a session."""
        self._begin(timeout_s)
        effort = self.effort(ask, timeout_s)
        while True:
            handle.check()
            try:
                response = await self.transport_of(handle).call(
                    ask.method, ask.request, timeout_s=effort.left_s, metadata=handle.metadata
                )
            except CallError as error:
                await self.recover(handle, ask, error, effort)
            else:
                handle.unsettled = False
                return ask.read(response)

    async def events(
        self, handle: Handle, ask: Ask[Any], timeout_s: float | None = None
    ) -> AsyncGenerator[CellEvent, None]:
        """Runs a cell."""
        self._begin(timeout_s)
        effort = self.effort(ask, timeout_s)
        while True:
            handle.check()
            reader = CellReader()
            try:
                with handle.running():
                    responses = self.transport_of(handle).receive(
                        ask.method, ask.request, timeout_s=effort.left_s, metadata=handle.metadata
                    )
                    async with aclosing(responses):
                        async for message in responses:
                            yield reader.read(message)
                    reader.check()
                return
            except CallError as error:
                await self.recover(handle, ask, error, effort)

    async def recover(
        self, handle: Handle, ask: Ask[Any], error: CallError, effort: Effort
    ) -> None:
        """Returns when a failed call may be made again.

        Raises:
            AssayError: it may not.
        """
        effort.failures += 1
        if error.reason == Reason.WRONG_REPLICA:
            await self._move(handle, error, effort)
            return
        if error.reason == Reason.SESSION_BUSY and handle.unsettled and effort.left_s > _SETTLE_S:
            await asyncio.sleep(_SETTLE_S)
            return
        if error.code is grpc.StatusCode.UNAVAILABLE:
            await self._check_replica(handle)
        if is_certain(error) or (ask.again and is_retryable(error)):
            delay_s = next_delay_s(
                self._config.retry, effort.failures, effort.left_s, 0.5, error.retry_after_s
            )
            if delay_s is not None:
                await self._sleep(delay_s)
                return
        found = error_of(error)
        if isinstance(found, SessionLost | LeaseExpired):
            self._give_up(handle, found)
        raise found from error

    async def end(self, handle: Handle) -> None:
        """Closes a session. Where its replica does not answer, its lease ends it."""
        if handle.closed:
            return
        handle.closed = True
        self.let_go(handle)
        with contextlib.suppress(CallError):
            await self._end([handle])

    async def _end(self, handles: Sequence[Handle]) -> None:
        ask = calls.close(handles)
        await self.transport_of(handles[0]).call(
            ask.method, ask.request, timeout_s=_CLOSE_S, metadata=handles[0].metadata
        )

    def _give_up(self, handle: Handle, why: SessionLost | LeaseExpired) -> None:
        handle.over = why
        self.let_go(handle)

    async def _check_replica(self, handle: Handle) -> None:
        """After a broken call.

        Raises:
            SessionLost: its replica is gone, and the session with it.
        """
        ask = calls.renew([handle])
        transport = self.transport_of(handle)

        async def look(remaining_s: float) -> Any:
            return await transport.call(
                ask.method, ask.request, timeout_s=remaining_s, metadata=handle.metadata
            )

        deadline_s = asyncio.get_running_loop().time() + _PROBE_S
        try:
            found = ask.read(await call_with_retries(look, _PROBE, deadline_s, self._sleep))
        except CallError as error:
            if error.reason == Reason.WRONG_REPLICA:
                self._lose(handle, "another one stands in its place")
            if error.code is grpc.StatusCode.UNAVAILABLE and error.reason != Reason.DRAINING:
                self._lose(handle, f"nobody answers at {handle.address or 'its address'} any more")
            return
        if handle.id not in found:
            self._lose(handle, "it was restarted, and knows the session no more")

    def _lose(self, handle: Handle, why: str) -> NoReturn:
        lost = replica_gone(handle.replica, why)
        self._give_up(handle, lost)
        raise lost

    async def _move(self, handle: Handle, error: CallError, effort: Effort) -> None:
        wanted = error.metadata.get("replica", "")
        address = None
        if wanted and not effort.moved and (self._replicas.several or wanted != handle.replica):
            address = await self._address_of(wanted)
        if address is None:
            self._lose(
                handle,
                "another replica answers; where it still runs, name all replicas as the target, or "
                "a proxy that follows assay-replica",
            )
        effort.moved = True
        handle.replica, handle.address = wanted, address

    async def _address_of(self, replica: str) -> str | None:
        """The address of a replica by its name; that of the only one without asking."""
        addresses = await self._replicas.addresses()
        if not self._replicas.several:
            return addresses[0]
        names = await asyncio.gather(*map(self._name_at, addresses))
        return next(
            (one for one, name in zip(addresses, names, strict=True) if name == replica), None
        )

    async def _name_at(self, address: str) -> str:
        try:
            return (await self._look_at(address, _PROBE_S)).replica
        except CallError:
            return ""

    async def _by_room(self, count: int) -> list[str]:
        """The addresses by turns, those last that have no room: there a call waits for some."""
        addresses = await self._replicas.addresses()
        if not self._replicas.several:
            return addresses
        if time.monotonic() - self._looked_s > _LOOK_AGAIN_S:
            self._looked_s = time.monotonic()
            rooms = await asyncio.gather(*map(self._room_at, addresses))
            self._room = dict(zip(addresses, rooms, strict=True))
        return sorted(addresses, key=lambda address: self._room.get(address, count) < count)

    async def _room_at(self, address: str) -> int:
        try:
            info = await self._look_at(address, _LOOK_AGAIN_S)
        except CallError:
            return 0
        return info.capacity - info.open

    async def _look_at(self, address: str, timeout_s: float) -> SessionsInfo:
        response = await self._replicas.transport(address).call(
            f"{calls.SERVICE}.DescribeSessions",
            session_pb2.DescribeSessionsRequest(),
            timeout_s=timeout_s,
        )
        return convert.info_from_proto(response)

    async def _fetch_info(self, timeout_s: float) -> SessionsInfo:
        failure: CallError | None = None
        for address in await self._replicas.addresses():
            try:
                return await self._look_at(address, timeout_s)
            except CallError as error:
                failure = error
        raise failure or ConfigError(f"{self.target} names no server")

    async def _keep(self) -> None:
        """Renews leases for as long as the client lives."""
        while True:
            held = list(self._held.values())
            least_s = min((one.lease_s for one in held if one.lease_s), default=3.0)
            await asyncio.sleep(max(_LEAST_RENEWAL_S, least_s / 3))
            for group in calls.together(self._held.values()):
                await self._renew_group(group)

    async def _renew_group(self, group: Sequence[Handle]) -> None:
        ask = calls.renew(group)
        try:
            response = await self.transport_of(group[0]).call(
                ask.method, ask.request, timeout_s=_PROBE_S, metadata=group[0].metadata
            )
        except CallError as error:
            _log.debug("leases at %s were not renewed: %s", group[0].address, error)
            return
        there = ask.read(response)
        for handle in group:
            if handle.id not in there:
                self._held.pop(handle.id, None)


def _goes_elsewhere(error: CallError) -> bool:
    """Whether another replica, or the same one later, may take what this one did not."""
    return is_certain(error) or error.reason == Reason.DRAINING
