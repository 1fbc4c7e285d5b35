"""A session as the peers' shims use it: the blocking client, one for the process, cells in turn."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping

from assay.clients.sessions import CellEvent, CellResult, SessionClient, SessionLimits


class Line:
    """One session; threads that ask at once wait for one another."""

    def __init__(self, language: str, *, limits: SessionLimits | None = None) -> None:
        self._session = _client().create(language, limits=limits)
        self._one = threading.Lock()
        self.id = self._session.id

    def run(
        self,
        code: str,
        *,
        wall_s: float | None = None,
        watch: Callable[[CellEvent], object] | None = None,
    ) -> CellResult:
        """Runs a cell; `watch` sees what it writes and shows."""
        with self._one:
            return self._session.execute(code, wall_s=wall_s, on_event=watch)

    def put(self, files: Mapping[str, bytes]) -> None:
        """Writes files of the working directory."""
        with self._one:
            self._session.put_files(files)

    def get(self, path: str) -> bytes:
        """Reads a file of the working directory."""
        with self._one:
            return self._session.get_files([path])[path]

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def plain_text(result: CellResult) -> str:
    """The value as text; empty for none."""
    return result.value.text if result.value else ""


def traceback_of(result: CellResult) -> str:
    """What it raised, as the interpreter prints it."""
    return result.error.traceback if result.error else ""


@functools.cache
def _client() -> SessionClient:
    return SessionClient(os.environ.get("ASSAY_PEERS_TARGET", "127.0.0.1:50052"))
