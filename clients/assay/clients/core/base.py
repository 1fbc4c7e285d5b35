"""The life of an asynchronous client: its connection, its server's description, its end."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.core.channel import GrpcTransport, Transport
from assay.clients.core.retry import call_with_retries
from assay.kit.errors import CallError, ConfigError, refuse
from assay.kit.reasons import Reason
from assay.kit.tls import ClientTls

I = TypeVar("I")  # noqa: E741  # a server's description


class BaseClient(ABC, Generic[I]):
    """An asynchronous client. Belongs to the event loop that first uses it.

    A subclass asks for the server's description, and has a method for each kind of call. The
    arguments and errors are those of `AsyncRewardClient`.
    """

    server: ClassVar[str]
    """The kind of server, for errors: "sandbox"."""
    port: ClassVar[int]
    """The server's usual port, for errors."""
    default_timeout_s: ClassVar[float] = 60.0

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.target = target
        self.timeout_s = self.check(target, transport, timeout_s)
        self._transport = transport or GrpcTransport(target, tls=tls, token=token)
        self._config = config or ClientConfig()
        self._info: I | None = None
        self._info_lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

    @classmethod
    def check(cls, target: str, transport: object, timeout_s: float | None) -> float:
        """Checks a client's arguments; returns its time-out in seconds.

        Raises:
            ConfigError: Neither target nor transport is given, or the time-out is not positive.
        """
        if not target and transport is None:
            raise ConfigError(
                f"no address of a {cls.server}; pass one, such as '127.0.0.1:{cls.port}'"
            )
        seconds = cls.default_timeout_s if timeout_s is None else timeout_s
        check_timeout(seconds)
        return seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def wait_ready(self, timeout_s: float = 60.0) -> I:
        """Waits up to `timeout_s` seconds until the server answers.

        Raises:
            UnavailableError: It did not answer in time.
            CallError: It refuses the call.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        deadline_s = self._begin(timeout_s)
        patient = RetryPolicy(base_s=0.05, cap_s=1.0)
        self._info = await self._ask_info(deadline_s, patient)
        return self._info

    async def close(self) -> None:
        """Ends every call: waiting callers get a fault, CANCELLED. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        await self._transport.close()

    @abstractmethod
    async def _fetch_info(self, timeout_s: float) -> I:
        """Asks for the server's description, once."""

    def _begin(self, timeout_s: float | None) -> float:
        loop = asyncio.get_running_loop()
        if self._closed.is_set():
            raise ConfigError("the client is closed; make a new one")
        if self._loop not in (None, loop):
            raise ConfigError("the client belongs to another event loop; make one for each loop")
        self._loop = loop
        seconds = self.timeout_s if timeout_s is None else timeout_s
        check_timeout(seconds)
        return loop.time() + seconds

    async def _refresh_info(self, timeout_s: float | None) -> I:
        deadline_s = self._begin(timeout_s)
        retry = self._config.retry
        policy = retry.to_be_met() if self._info is None else retry
        self._info = await self._ask_info(deadline_s, policy)
        return self._info

    async def _ask_info(self, deadline_s: float, policy: RetryPolicy) -> I:
        return await call_with_retries(self._fetch_info, policy, deadline_s, self._sleep)

    async def _server_info(self, deadline_s: float) -> I:
        """Concurrent callers share one request."""
        if self._info is None:
            try:
                async with asyncio.timeout_at(deadline_s + 1.0), self._info_lock:
                    if self._info is None:
                        policy = self._config.retry.to_be_met()
                        self._info = await self._ask_info(deadline_s, policy)
            except TimeoutError:
                raise self._late() from None
        return self._info

    async def _sleep(self, delay_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._closed.wait()

    def _late(self) -> CallError:
        return refuse(
            Reason.DEADLINE_EXCEEDED,
            f"{self.target or f'the {self.server}'} did not answer in time; allow more time or "
            "send less",
        )


def check_timeout(timeout_s: float) -> None:
    """Raises ConfigError for a time-out that is not positive."""
    if not timeout_s > 0:
        raise ConfigError(f"the time-out is {timeout_s} s; pass a positive number of seconds")
