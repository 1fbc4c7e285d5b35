"""Keeps something alive that may die: makes it anew, with pauses, while its users wait.

After three failures in a row users are refused at once; it is still tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from assay.genrm.engines.base import EngineError
from assay.kit.errors import AssayError
from assay.kit.reasons import Reason

_FAILURES = 3
_PAUSE_S = 0.5
_MAX_PAUSE_S = 60.0

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Revival(Generic[T]):
    """One living thing at a time, belonging to one event loop.

    `make` raises AssayError where it cannot; `end` takes one dead or alive; `dead` says whether one
    died unnoticed; `revived` is called when a new one has replaced a dead one.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Awaitable[T]],
        end: Callable[[T], Awaitable[None]],
        dead: Callable[[T], bool] = lambda _: False,
        revived: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._make = make
        self._end = end
        self._dead = dead
        self._revived = revived
        self._current: T | None = None
        self._changed = asyncio.Condition()
        self._work: asyncio.Task[None] | None = None
        self._failures = 0
        self._reason = ""
        self._closed = False

    async def start(self) -> None:
        """Makes the first one.

        Raises:
            AssayError: of `make`.
        """
        self._current = await self._make()

    async def living(self) -> T:
        """The living one; waits while one is being made.

        Raises:
            EngineError: ENGINE_DIED: closed, or it failed to come back several times.
        """
        if self._current is not None and self._dead(self._current):
            self.died(self._current)
        async with self._changed:
            await self._changed.wait_for(self._settled)
        if self._current is None:
            raise EngineError(
                Reason.ENGINE_DIED,
                f"model {self._name} is closed"
                if self._closed
                else f"model {self._name} died and cannot be started: {self._reason}",
            )
        return self._current

    def died(self, one: T) -> None:
        """Notes that this one is dead; repeated calls make one new one."""
        if self._closed or one is not self._current:
            return
        _log.error("model %s: its engine died; starting it anew", self._name)
        self._current = None
        self._work = asyncio.create_task(self._revive(one))

    async def close(self) -> None:
        """Ends the living one; whoever waits gets ENGINE_DIED."""
        self._closed = True
        current, self._current = self._current, None
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            self._work = None
        async with self._changed:
            self._changed.notify_all()
        if current is not None:
            await self._end(current)

    def _settled(self) -> bool:
        return self._current is not None or self._closed or self._failures >= _FAILURES

    async def _revive(self, dead: T) -> None:
        await self._end(dead)
        self._failures = 0
        while True:
            try:
                made = await self._make()
            except AssayError as error:
                self._failures += 1
                self._reason = str(error)
                _log.error("model %s: attempt %d: %s", self._name, self._failures, error)
                async with self._changed:
                    self._changed.notify_all()
                await asyncio.sleep(min(_PAUSE_S * 2.0**self._failures, _MAX_PAUSE_S))
                continue
            self._current = made
            self._failures = 0
            self._revived()
            _log.warning("model %s: its engine runs again", self._name)
            async with self._changed:
                self._changed.notify_all()
            return
