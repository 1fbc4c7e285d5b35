"""The event loop that a run's episodes live on, in a thread of its own.

Tools run there while the engine draws for other episodes. Asynchronous ones share the loop, plain
ones run in its threads (assay.environments.running).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
_CLOSE_S = 60.0


class EpisodeLoop:
    """An event loop in a thread; closed once.

    Args:
        concurrency: how many `seat`s there are.
    """

    def __init__(self, concurrency: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._seats = asyncio.Semaphore(concurrency)
        self._running: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="episodes", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begins work on the loop, from any thread; raises RuntimeError where it is closed."""
        try:
            return asyncio.run_coroutine_threadsafe(self._noted(work), self._loop)
        except RuntimeError:
            work.close()
            raise

    async def _noted(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine of a loop runs in a task
        self._running.add(task)
        try:
            return await work
        finally:
            self._running.discard(task)

    @asynccontextmanager
    async def seat(self, waited: Callable[[float], None]) -> AsyncIterator[None]:
        """Waits until fewer than `concurrency` others have one; `waited` gets the seconds."""
        began = time.monotonic()
        async with self._seats:
            waited(time.monotonic() - began)
            yield

    def close(self) -> None:
        """Waits for what still runs, for a minute at most, and ends the loop and its thread."""
        if self._loop.is_closed():
            return
        try:
            self.submit(self._idle()).result(_CLOSE_S)
        except TimeoutError:
            pass  # a tool that hangs: its thread stays behind
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSE_S)

    async def _idle(self) -> None:
        others = self._running - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=1.0))
            self._loop.close()
