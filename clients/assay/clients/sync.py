"""The synchronous client: an `AsyncRewardClient` on an event loop of its own, in a thread.

It may be shared by threads, survives a fork (the child gets a loop and a connection of its own at
its first call, and never touches the parent's), and can be pickled (the copy connects anew). It
closes at the end of its `with`, or of the process.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from assay.clients.client import AsyncRewardClient, OnError, check_client
from assay.clients.config import ClientConfig
from assay.clients.threads import BlockingGrpcTransport
from assay.clients.transport import Transport
from assay.clients.types import Item, Result, ServerInfo
from assay.rpc.errors import ConfigError
from assay.rpc.tls import ClientTls

T = TypeVar("T")
_CLOSE_S = 5.0


class _Portal:
    """An event loop in a thread, and the client that lives on it. Of one process."""

    def __init__(self, make_client: Callable[[], AsyncRewardClient]) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="assay-client", daemon=True
        )
        self._thread.start()
        self.client = self.run(_in_loop(make_client))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for it; an interrupted wait cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Closes the client and ends the thread."""
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _shut_down(self) -> None:
        """Closes the client and lets the calls of other threads end: nobody waits for ever."""
        await self.client.close()
        others = asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}
        if others:
            _, stuck = await asyncio.wait(others, timeout=_CLOSE_S)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)


async def _in_loop(make: Callable[[], T]) -> T:
    return make()


class RewardClient:
    """Scores items on a reward server, synchronously. The methods are those of `AsyncRewardClient`.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, retries included, in seconds.
        config: batching and retries.
        transport: makes what carries messages instead of gRPC; called once in each process. Must be
            picklable if the client is to be.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        config: ClientConfig | None = None,
        transport: Callable[[], Transport] | None = None,
    ) -> None:
        check_client(target, transport, timeout_s)
        self.target = target
        self.timeout_s = timeout_s
        self._tls = tls
        self._token = token
        self._config = config or ClientConfig()
        self._make_transport = transport
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._portal: _Portal | None = None
        self._closed = False
        _living.add(self)

    def __getstate__(self) -> dict[str, Any]:
        inner = {"_lock", "_portal", "_closed"}
        return {name: value for name, value in self.__dict__.items() if name not in inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __enter__(self) -> RewardClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def score(
        self, items: Iterable[Item], *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> list[Result]:
        """Scores a list of items; see `AsyncRewardClient.score`."""
        portal = self._open()
        return portal.run(portal.client.score(items, timeout_s=timeout_s, on_error=on_error))

    def score_one(
        self, item: Item, *, timeout_s: float | None = None, on_error: OnError = "fault"
    ) -> Result:
        """Scores one item, together with those of other threads; see `AsyncRewardClient`."""
        portal = self._open()
        return portal.run(portal.client.score_one(item, timeout_s=timeout_s, on_error=on_error))

    def stream(
        self,
        items: Iterable[Item | Sequence[Item]],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> Iterator[Result]:
        """Scores items as they come, yields results as they are ready; see `AsyncRewardClient`.

        The items are taken in a thread of their own, so that results come while the next item is
        still awaited.
        """
        portal = self._open()
        results = portal.client.stream(
            _taken_in_thread(items), timeout_s=timeout_s, on_error=on_error
        )
        try:
            while (result := portal.run(_next(results))) is not None:
                yield result
        finally:
            portal.run(_close(results))

    def list_verifiers(self, *, timeout_s: float | None = None) -> ServerInfo:
        """Asks what the server judges, and its limits; see `AsyncRewardClient.list_verifiers`."""
        portal = self._open()
        return portal.run(portal.client.list_verifiers(timeout_s=timeout_s))

    def wait_ready(self, timeout_s: float = 60.0) -> ServerInfo:
        """Waits until the server answers; see `AsyncRewardClient.wait_ready`."""
        portal = self._open()
        return portal.run(portal.client.wait_ready(timeout_s))

    def close(self) -> None:
        """Ends every call: who still waits gets a fault, CANCELLED. May be called twice."""
        with self._lock:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None and portal.pid == os.getpid():
            portal.close()

    def _open(self) -> _Portal:
        """The portal of this process."""
        with self._lock:
            if self._closed:
                raise ConfigError("the client is closed; make a new one")
            if self._portal is None or self._portal.pid != os.getpid():
                self._portal = _Portal(self._make_client)
            return self._portal

    def _make_client(self) -> AsyncRewardClient:
        make = self._make_transport
        wire = (
            make() if make else BlockingGrpcTransport(self.target, tls=self._tls, token=self._token)
        )
        return AsyncRewardClient(
            self.target, timeout_s=self.timeout_s, config=self._config, transport=wire
        )

    def _forget_parent(self) -> None:
        """In a forked child: a fresh lock; the parent's portal is put away, never destroyed."""
        self._lock = threading.Lock()
        if self._portal is not None:
            _of_parents.append(self._portal)
            self._portal = None


async def _next(results: AsyncIterator[T]) -> T | None:
    return await anext(results, None)


async def _close(results: Any) -> None:
    await results.aclose()


async def _taken_in_thread(items: Iterable[T]) -> AsyncIterator[T]:
    """The items of a blocking iterable, without blocking the loop."""
    end = object()
    iterator = iter(items)
    while (item := await asyncio.to_thread(next, iterator, end)) is not end:
        yield item  # type: ignore[misc]  # the sentinel is gone, which mypy does not see


_living: weakref.WeakSet[RewardClient] = weakref.WeakSet()
_of_parents: list[_Portal] = []


def _close_all() -> None:
    for client in list(_living):
        client.close()


def _forget_parents() -> None:
    for client in list(_living):
        client._forget_parent()  # noqa: SLF001  # the hook is part of the class


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_parents)
