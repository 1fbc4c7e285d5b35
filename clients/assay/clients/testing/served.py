"""What the fakes have in common: a real server, on the running loop or in a thread, and knobs."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Protocol, Self

from assay.kit.serving import RunningServer, ServeConfig, Service, start
from assay.kit.tls import ServerTls


class MustBeMet(Protocol):
    """Failures of a fake, each of which a test must meet."""

    def to_meet(self) -> set[str]:
        """Names of those that are set."""


class FakeServer(ABC):
    """A server for tests. `async with` serves on the running loop, `with` in a thread of its own.

    Leaving the context fails when a knob was set and never met: such a test proves nothing.
    """

    knobs: Any
    port: int
    tls: ServerTls | None
    token: str | None

    def __post_init__(self) -> None:
        self._met: set[str] = set()
        self._spent: dict[str, int] = {}
        self._running: RunningServer | None = None
        self._thread: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._dying: set[asyncio.Task[None]] = set()

    @abstractmethod
    def _service(self) -> Service:
        """What is served."""

    @property
    def address(self) -> str:
        """The address as "host:port"."""
        if self._running is None:
            raise RuntimeError("the fake server is not started; use it in a with")
        return self._running.address

    def verify(self) -> None:
        """Raises AssertionError when a knob was set and never met."""
        knobs: MustBeMet = self.knobs
        unmet = sorted(knobs.to_meet() - self._met)
        if unmet:
            raise AssertionError(
                f"the fake {self._service().name} has knobs that were set and never met: "
                f"{', '.join(unmet)}"
            )

    async def start(self) -> None:
        """Serves on the running loop."""
        config = ServeConfig(port=self.port, tls=self.tls, token=self.token, drain_s=0.0)
        self._running = await start([self._service()], config)

    async def stop(self) -> None:
        """Stops at once; running calls are cut."""
        await asyncio.gather(*self._dying)
        if self._running is not None:
            await self._running.stop(0.0)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()
        if error is None:
            self.verify()

    def __enter__(self) -> Self:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fake-server", daemon=True)
        thread.start()
        self._thread = loop, thread
        asyncio.run_coroutine_threadsafe(self.start(), loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            loop, thread = self._thread
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
        if error is None:
            self.verify()

    def meets(self, knob: str) -> bool:
        """Whether a counted knob strikes once more."""
        if self._spent.get(knob, 0) >= getattr(self.knobs, knob):
            return False
        self._spent[knob] = self._spent.get(knob, 0) + 1
        self._met.add(knob)
        return True

    async def die(self, *, back: bool = False) -> None:
        """Ends the server at once, to be `back` on its port; the call is never answered."""
        self._dying.add(asyncio.ensure_future(self._ended(back=back)))
        await asyncio.Event().wait()

    async def _ended(self, *, back: bool) -> None:
        if self._running is not None:
            await self._running.stop(0.0)
        if back:
            self.port = int(self.address.rpartition(":")[2])
            await self.start()


async def nothing_to_test() -> None:
    """The self-test of a fake."""
