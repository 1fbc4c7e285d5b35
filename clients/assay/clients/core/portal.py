"""The common part of the synchronous clients: an asynchronous client on an event loop in a thread.

Threads may share a synchronous client. It survives a fork: the child opens a loop and a connection
of its own at its first call, and never touches the parent's. It can be pickled; the copy connects
anew. It closes at the end of its `with`, or of the process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import gc
import os
import queue
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from assay.clients.config import ClientConfig
from assay.clients.core.base import BaseClient
from assay.clients.core.channel import Transport
from assay.kit.errors import ConfigError
from assay.kit.tls import ClientTls

_CLOSE_S = 5.0


T = TypeVar("T")
C = TypeVar("C", bound=BaseClient[Any])
I = TypeVar("I")  # noqa: E741  # a server's description


class LoopThread:
    """An event loop in a thread. Belongs to one process.

    Args:
        name: of the thread.
        on_itself: what `run` raises on the loop's own thread.
    """

    def __init__(self, name: str, on_itself: str) -> None:
        self.pid = os.getpid()
        self._on_itself = on_itself
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for it; interrupting the wait cancels it.

        Raises:
            RuntimeError: the caller is the loop itself, which would wait for ever.
        """
        if self.is_own_thread:
            work.close()
            raise RuntimeError(self._on_itself)
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is on the loop's thread, as a finalizer may be."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine on the loop; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and awaits it on another."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Ends the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()


class Portal(LoopThread, Generic[C]):
    """An event loop in a thread, and the client that runs on it."""

    def __init__(self, make_client: Callable[[], C]) -> None:
        super().__init__("assay-client", "a blocking client is called on its own event loop")
        self.client = self.run(_in_loop(make_client))

    def close(self) -> None:
        """Closes the client and ends the thread."""
        self.submit(self._shut_down()).result()
        super().close()

    async def _shut_down(self) -> None:
        """Closes the client and lets the calls of other threads end."""
        await self.client.close()
        others = asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}
        if others:
            _, stuck = await asyncio.wait(others, timeout=_CLOSE_S)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)


async def _in_loop(make: Callable[[], T]) -> T:
    return make()


class SyncClient(Generic[C, I]):
    """A synchronous client. A subclass names the asynchronous one, and has its methods.

    Arguments and errors are those of the asynchronous client, but `transport` is a function that
    makes one, called once in each process. It must be picklable if the client is to be.
    """

    _asynchronous: ClassVar[type[BaseClient[Any]]]

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        config: ClientConfig | None = None,
        transport: Callable[[], Transport] | None = None,
    ) -> None:
        self.target = target
        self.timeout_s = self._asynchronous.check(target, transport, timeout_s)
        self._tls = tls
        self._token = token
        self._config = config or ClientConfig()
        self._make_transport = transport
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._portal: Portal[C] | None = None
        self._closed = False
        _living.add(self)

    def __getstate__(self) -> dict[str, Any]:
        inner = {"_lock", "_portal", "_closed"}
        return {name: value for name, value in self.__dict__.items() if name not in inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every call: waiting callers get a fault, CANCELLED. May be called twice."""
        with self._lock:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None and portal.pid == os.getpid():
            portal.close()

    def wait_ready(self, timeout_s: float = 60.0) -> I:
        """See `BaseClient.wait_ready`."""
        found: I = self._run(lambda client: client.wait_ready(timeout_s))
        return found

    def _open(self) -> Portal[C]:
        with self._lock:
            if self._closed:
                raise ConfigError("the client is closed; make a new one")
            if self._portal is None or self._portal.pid != os.getpid():
                self._portal = Portal(self._make_client)
            return self._portal

    def _run(self, ask: Callable[[C], Coroutine[Any, Any, T]]) -> T:
        portal = self._open()
        return portal.run(ask(portal.client))

    def _submit(self, ask: Callable[[C], Coroutine[Any, Any, T]]) -> Future[T]:
        portal = self._open()
        return portal.submit(ask(portal.client))

    def _stream(self, results: Callable[[C], AsyncIterator[T]]) -> Iterator[T]:
        portal = self._open()
        found = results(portal.client)
        try:
            while (result := portal.run(_next(found))) is not None:
                yield result
        finally:
            portal.run(_close(found))

    def _further(self) -> dict[str, Any]:
        """Arguments that the asynchronous client takes besides."""
        return {}

    def _make_client(self) -> C:
        made: Any = self._asynchronous(
            self.target,
            tls=self._tls,
            token=self._token,
            timeout_s=self.timeout_s,
            config=self._config,
            transport=self._make_transport() if self._make_transport else None,
            **self._further(),
        )
        return cast("C", made)

    def _forget_parent(self) -> None:
        """In a forked child: a fresh lock; the parent's portal is kept aside, never destroyed."""
        self._lock = threading.Lock()
        if self._portal is not None:
            _of_parents.append(self._portal)
            self._portal = None


async def _next(results: AsyncIterator[T]) -> T | None:
    return await anext(results, None)


async def _close(results: Any) -> None:
    await results.aclose()


async def taken_in_thread(items: Iterable[T]) -> AsyncIterator[T]:
    """The items of a blocking iterable, each taken when it is asked for, without blocking the loop.

    The end of the process does not wait for this thread, unlike those of `asyncio.to_thread`: a
    source may wait for an item that never comes.
    """
    end = object()
    iterator = iter(items)
    places: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()

    def take() -> None:
        while (place := places.get()) is not None:
            if place.set_running_or_notify_cancel():
                try:
                    place.set_result(next(iterator, end))
                except BaseException as error:  # noqa: BLE001  # the caller's own; it gets it back
                    place.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(take,), name="assay-source", daemon=True).start()
    try:
        while True:
            place: Future[Any] = Future()
            places.put(place)
            item = await asyncio.wrap_future(place)
            if item is end:
                return
            yield item
    finally:
        places.put(None)


_living: weakref.WeakSet[SyncClient[Any, Any]] = weakref.WeakSet()
_of_parents: list[Portal[Any]] = []


def _close_all() -> None:
    for client in list(_living):
        client.close()


def _forget_parents() -> None:
    # gRPC's asyncio objects, once the collector of a child ends them, wait for ever for a thread
    # that only the parent has. Garbage of before the fork is left to the parent.
    gc.freeze()
    for client in list(_living):
        client._forget_parent()  # noqa: SLF001  # the hook is part of the class


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_parents)
