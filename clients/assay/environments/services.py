"""What environments ask of services: rewards (`RewardServices`) and a sandbox (`EpisodeSandbox`).

Both keep their client on an event loop in a thread of its own. So episodes of any loop may ask, and
the leases of sessions are renewed also while the caller's loop is busy with a step of training.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from assay.clients.core.base import BaseClient
from assay.clients.core.portal import Portal
from assay.clients.execution import AsyncExecutionClient, TestJob, TestResult
from assay.clients.faults import fault_of_error, make_fault
from assay.clients.reward import AsyncRewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.sessions import AsyncSession, AsyncSessionClient, SessionClient, SessionLimits
from assay.clients.types import Item, Parameter, Result
from assay.kit.errors import AssayError, CallError, ConfigError, StartupError
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

T = TypeVar("T")
C = TypeVar("C", bound=BaseClient[Any])
_READY_S = 60.0
_CALL_S = 600.0
"""A call may wait for its turn in a busy sandbox; the episode's own seconds cut it before."""


class LoopClient(Generic[C]):
    """A client on an event loop of its own; made at its first use, closed once.

    Args:
        make: the client, called on that loop.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._portal: Portal[C] | None = None
        self._closed = False

    async def ask(self, work: Callable[[C], Awaitable[T]]) -> T:
        """Runs `work` with the client; cancelling cancels it there too.

        Raises:
            ConfigError: it is closed.
        """
        portal = self._opened()

        async def run() -> T:
            return await work(portal.client)

        return await portal.awaited(run())

    def close(self) -> None:
        """Ends every call. May be called twice."""
        with self._lock:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None and portal.pid == os.getpid():
            portal.close()

    def _opened(self) -> Portal[C]:
        with self._lock:
            if self._closed:
                raise ConfigError("the services of the episodes are closed")
            if self._portal is None or self._portal.pid != os.getpid():
                self._portal = Portal(self._make)
            return self._portal


class RewardServices:
    """The reward server, under a run's verifier: the `Services` of environments.

    An item that names neither a verifier nor a task gets the run's, with its parameters. What
    cannot be judged is a fault, never an exception.

    Args:
        target: the reward server's address. Empty: one is started at the first item and stopped by
            `close`.
        verifier: of items that name none; or `task`.
        parameters: of that verifier.
        labels: of every item.
    """

    def __init__(
        self,
        target: str = "",
        *,
        verifier: str = "",
        task: str = "",
        parameters: Mapping[str, Parameter] | None = None,
        labels: Mapping[str, str] | None = None,
        token: str | None = None,
        tls: ClientTls | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._usual: dict[str, Any] = {
            "verifier": verifier,
            "task": task,
            "parameters": dict(parameters or {}),
        }
        self._target = target
        self._embedded: EmbeddedServices | None = None
        self._client = LoopClient(
            lambda: AsyncRewardClient(
                self._target, labels=labels, token=token, tls=tls, timeout_s=timeout_s
            )
        )
        self._starting = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def score(self, item: Item) -> Result:
        """See `assay.environments.environment.Services`."""
        if not (item.verifier or item.task):
            item = dataclasses.replace(item, **self._usual)
        try:
            if not self._target:
                await asyncio.to_thread(self._start)
            return await self._client.ask(lambda client: client.score_one(item))
        except CallError as error:
            return Result(item.id, fault_of_error(error))
        except AssayError as error:
            return Result(item.id, make_fault(Reason.UNREACHABLE, str(error)))

    def close(self) -> None:
        """Ends what is under way. May be called twice."""
        self._client.close()
        with self._starting:
            self._closed = True
            if self._embedded is not None:
                self._embedded.stop()

    def _start(self) -> None:
        with self._starting:
            if not (self._target or self._closed):
                self._embedded = EmbeddedServices(("reward",))
                self._embedded.start()
                self._target = self._embedded.address


class EpisodeSandbox:
    """The sandbox of a run's episodes: sessions, and tests outside of them; for any event loop."""

    def __init__(
        self, address: str, *, token: str | None = None, tls: ClientTls | None = None
    ) -> None:
        self.address = address
        self._sessions = LoopClient(
            lambda: AsyncSessionClient(
                address, token=token, tls=tls, timeout_s=_CALL_S, keep_alive=True
            )
        )
        self._runs = LoopClient(lambda: AsyncExecutionClient(address, token=token, tls=tls))

    async def open(
        self,
        language: str,
        *,
        files: Mapping[str, bytes | str] | None = None,
        limits: SessionLimits | None = None,
        wait_s: float = 600.0,
    ) -> AsyncSession:
        """A new session; waits for a place. Give up the wait, and what comes of it is closed.

        Raises:
            OverloadedError: no place was free within `wait_s`.
            CallError: it cannot be had.
        """

        async def make(client: AsyncSessionClient) -> AsyncSession:
            making = asyncio.ensure_future(
                client.create(language, files=files, limits=limits, timeout_s=wait_s)
            )
            try:
                return await asyncio.shield(making)
            except asyncio.CancelledError:
                making.add_done_callback(_close_late)
                raise

        return await self._sessions.ask(make)

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs a session's own methods where its client lives."""
        return await self._sessions.ask(lambda _: work())

    async def run_tests(
        self, jobs: Sequence[TestJob], *, timeout_s: float = 600.0
    ) -> list[TestResult]:
        """Tests programs in runs of their own: a report or a fault for each job."""
        return await self._runs.ask(lambda client: client.run_tests(jobs, timeout_s=timeout_s))

    def close(self) -> None:
        """Closes every session. May be called twice."""
        self._sessions.close()
        self._runs.close()


def _close_late(making: asyncio.Future[AsyncSession]) -> None:
    if not making.cancelled() and making.exception() is None:
        closing = asyncio.ensure_future(making.result().close())
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[None]] = set()


def _check(address: str, token: str | None, packages: Sequence[str]) -> None:
    with SessionClient(address, token=token) as client:
        try:
            info = client.wait_ready(_READY_S)
        except CallError as error:
            raise ConfigError(f"no sessions at the sandbox {address}: {error}") from error
    missing = [name for name in packages if name not in info.python_packages]
    if missing:
        there = ", ".join(sorted(info.python_packages)) or "none"
        raise ConfigError(
            f"the sandbox {address} has no package {', '.join(missing)}; it has: {there}; give it "
            "others as its operator (docs/use/packages.md)"
        )


@contextmanager
def open_sandbox(address: str = "", packages: Sequence[str] = ()) -> Iterator[EpisodeSandbox]:
    """A sandbox for the length of this context; one of its own where no address is given.

    Raises:
        ConfigError: it cannot be started or reached, keeps no sessions, or lacks a package.
    """
    embedded: EmbeddedServices | None = None
    token = os.environ.get("ASSAY_TOKEN") if address else None
    if not address:
        embedded = EmbeddedServices(("sandbox",))
        try:
            embedded.start()
        except StartupError as error:
            raise ConfigError(f"no sandbox could be started for the episodes: {error}") from error
        address = embedded.address_of("sandbox")
    sandbox = EpisodeSandbox(address, token=token)
    try:
        _check(address, token, packages)
        yield sandbox
    finally:
        sandbox.close()
        if embedded is not None:
            embedded.stop()
