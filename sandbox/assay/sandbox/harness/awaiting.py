"""Top-level await: one event loop for all cells, which holds no descriptors while no cell runs.

Its tasks wait between cells and go on in the next one that awaits, also in a copy of the process.
A loop with open connections keeps its descriptors.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

_LAST_WORDS_S = 1.0


class Awaiting:
    """Runs coroutines in the main thread. `asyncio` is loaded by the first."""

    def __init__(self) -> None:
        self._loop: Any = None

    def complete(self, coroutine: Coroutine[Any, Any, object]) -> object:
        """The coroutine's value. Raises what it raises; KeyboardInterrupt cancels it."""
        import asyncio  # noqa: PLC0415 - few programs await

        if self._loop is None or self._loop.is_closed():
            self._loop = _resting_loop(asyncio)
        loop = self._loop
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait([task], timeout=_LAST_WORDS_S))
            if task.done() and not task.cancelled():
                task.exception()  # it has been seen
            raise


def _resting_loop(asyncio: Any) -> Any:
    from selectors import DefaultSelector  # noqa: PLC0415 - `asyncio` has loaded it

    class _Loop(asyncio.SelectorEventLoop):  # type: ignore[misc]
        """An event loop whose selector and own sockets are there while it runs."""

        _resting = False

        def run_forever(self) -> None:
            self._wake()
            try:
                super().run_forever()
            finally:
                self._rest()

        def _close_self_pipe(self) -> None:
            if not self._resting:
                super()._close_self_pipe()

        def _wake(self) -> None:
            if self._resting:
                self._resting = False
                self._selector = DefaultSelector()
                self._make_self_pipe()

        def _rest(self) -> None:
            alone = len(self._selector.get_map()) <= 1 and not self._signal_handlers
            if alone and not self.is_closed() and not self.is_running():
                self._close_self_pipe()
                self._selector.close()
                self._resting = True

        def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
            if self._resting and not self.is_closed():
                self._wake()
            return super()._add_reader(fd, callback, *args)

        def _add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
            if self._resting and not self.is_closed():
                self._wake()
            return super()._add_writer(fd, callback, *args)

    return _Loop()
