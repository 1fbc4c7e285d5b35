"""What the synchronous clients share: an asynchronous client on an event loop in a thread.

A synchronous client may be shared by threads, survives a fork (the child gets a loop and a
connection of its own at its first call, and never touches the parent's), and can be pickled (the
copy connects anew). It closes at the end of its `with`, or of the process.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from assay.rpc.errors import ConfigError

_CLOSE_S = 5.0


class Closable(Protocol):
    """An asynchronous client."""

    async def close(self) -> None:
        """Ends every call."""


T = TypeVar("T")
C = TypeVar("C", bound=Closable)


class Portal(Generic[C]):
    """An event loop in a thread, and the client that lives on it. Of one process."""

    def __init__(self, make_client: Callable[[], C]) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="assay-client", daemon=True
        )
        self._thread.start()
        self.client = self.run(_in_loop(make_client))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for it; an interrupted wait cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine on the loop; to cancel the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

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


class SyncClient(Generic[C]):
    """The life of a synchronous client. A subclass makes the asynchronous one."""

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
        """Ends every call: who still waits gets a fault, CANCELLED. May be called twice."""
        with self._lock:
            self._closed = True
            portal, self._portal = self._portal, None
        if portal is not None and portal.pid == os.getpid():
            portal.close()

    def _open(self) -> Portal[C]:
        """The portal of this process."""
        with self._lock:
            if self._closed:
                raise ConfigError("the client is closed; make a new one")
            if self._portal is None or self._portal.pid != os.getpid():
                self._portal = Portal(self._make_client)
            return self._portal

    def _make_client(self) -> C:
        """The asynchronous client, with a wire that survives a fork."""
        raise RuntimeError(f"{type(self).__name__} does not say how its client is made")

    def _forget_parent(self) -> None:
        """In a forked child: a fresh lock; the parent's portal is put away, never destroyed."""
        self._lock = threading.Lock()
        if self._portal is not None:
            _of_parents.append(self._portal)
            self._portal = None


_living: weakref.WeakSet[SyncClient[Any]] = weakref.WeakSet()
_of_parents: list[Portal[Any]] = []


def _close_all() -> None:
    for client in list(_living):
        client.close()


def _forget_parents() -> None:
    # gRPC's asyncio objects, once the collector of a child ends them, wait for ever for a thread
    # that only the parent has. What was garbage at the fork is the parent's to collect.
    gc.freeze()
    for client in list(_living):
        client._forget_parent()  # noqa: SLF001  # the hook is part of the class


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_parents)
