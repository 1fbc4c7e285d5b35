"""The life of an asynchronous client: its loop, its deadlines, what it knows of its server."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from assay.clients.config import ClientConfig
from assay.clients.retry import RetryPolicy, call_with_retries
from assay.rpc.errors import CallError, ConfigError, refuse
from assay.rpc.reasons import Reason


class Closable(Protocol):
    """What carries messages."""

    async def close(self) -> None:
        """Ends every call and lets go of the server."""


I = TypeVar("I")  # noqa: E741  # what a server says of itself
T = TypeVar("T", bound=Closable)


class ClientLife(ABC, Generic[T, I]):
    """What every asynchronous client is. Belongs to the event loop that first uses it.

    A subclass says how the server is asked about itself.

    Args:
        transport: what carries messages.
        target: the server's address, for errors; may be empty.
        server: what the server is, for errors: "the sandbox".
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.

    Raises:
        ConfigError: The time-out is not positive.
    """

    def __init__(
        self,
        transport: T,
        *,
        target: str,
        server: str,
        timeout_s: float,
        config: ClientConfig | None,
    ) -> None:
        check_timeout(timeout_s)
        self.target = target
        self.timeout_s = timeout_s
        self._transport = transport
        self._server = server
        self._config = config or ClientConfig()
        self._slots = asyncio.Semaphore(self._config.max_concurrent_calls)
        self._info: I | None = None
        self._info_lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

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
        """Waits until the server answers.

        Args:
            timeout_s: how long to wait, in seconds.

        Raises:
            UnavailableError: It did not answer in time.
            CallError: It answers, and refuses.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        deadline_s = self._begin(timeout_s)
        patient = RetryPolicy(base_s=0.05, cap_s=1.0)
        self._info = await self._ask_info(deadline_s, patient)
        return self._info

    async def close(self) -> None:
        """Ends every call: who still waits gets a fault, CANCELLED. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        await self._transport.close()

    @abstractmethod
    async def _fetch_info(self, timeout_s: float) -> I:
        """Asks the server about itself, once."""

    async def _refresh_info(self, timeout_s: float | None) -> I:
        """Asks the server about itself anew, with retries."""
        deadline_s = self._begin(timeout_s)
        retry = self._config.retry
        policy = retry.to_be_met() if self._info is None else retry
        self._info = await self._ask_info(deadline_s, policy)
        return self._info

    def _begin(self, timeout_s: float | None) -> float:
        """Checks that the client may be used here; gives the deadline by the loop's clock."""
        loop = asyncio.get_running_loop()
        if self._closed.is_set():
            raise ConfigError("the client is closed; make a new one")
        if self._loop not in (None, loop):
            raise ConfigError("the client belongs to another event loop; make one for each loop")
        self._loop = loop
        seconds = self.timeout_s if timeout_s is None else timeout_s
        check_timeout(seconds)
        return loop.time() + seconds

    async def _ask_info(self, deadline_s: float, policy: RetryPolicy) -> I:
        return await call_with_retries(self._fetch_info, policy, deadline_s, self._sleep)

    async def _sleep(self, delay_s: float) -> None:
        """Waits, or returns early when the client is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._closed.wait()

    async def _server_info(self, deadline_s: float) -> I:
        """What the server says of itself; concurrent callers wait for one question."""
        if self._info is None:
            try:
                async with asyncio.timeout_at(deadline_s + 1.0), self._info_lock:
                    if self._info is None:
                        policy = self._config.retry.to_be_met()
                        self._info = await self._ask_info(deadline_s, policy)
            except TimeoutError:
                raise self._late() from None
        return self._info

    def _late(self) -> CallError:
        return refuse(
            Reason.DEADLINE_EXCEEDED,
            f"{self.target or self._server} did not answer in time; allow more time or send less",
        )


def check_timeout(timeout_s: float) -> None:
    """Raises ConfigError for a time-out that is not positive."""
    if not timeout_s > 0:
        raise ConfigError(f"the time-out is {timeout_s} s; pass a positive number of seconds")
