"""`--reload`: a server starts anew when a file of its verifiers has changed and can be used."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from assay.kit.watching import FileWatch, Reloadable
from assay.reward_server.files import FileVerifier, read_source, read_verifiers

_log = logging.getLogger(__name__)


class Renewal:
    """Waits for changed verifiers. The workers import a file once, so the process is replaced.

    Make it before the server is announced: what is registered with atexit later, as the end of
    stderr's detour, comes before the new process.
    """

    def __init__(self, texts: Sequence[str], found: Iterable[FileVerifier]) -> None:
        self._texts = tuple(texts)
        self._due = asyncio.Event()
        self._flags: list[str] | None = None
        files = sorted({Path(file) for one in found for file in one.source.files})
        self.reloadable = Reloadable("verifiers", FileWatch(files), self._read, self._take)
        atexit.register(self._replace_process)

    async def wait(self) -> None:
        """Returns when the server is to start anew."""
        await self._due.wait()

    def end(self, **ports: int) -> None:
        """The server has ended for it: at its exit the process is replaced, on the same ports."""
        self._flags = [
            word
            for name, port in ports.items()
            for word in (f"--{name.replace('_', '-')}", str(port))
        ]

    def _read(self) -> Sequence[FileVerifier]:
        return read_verifiers(self._texts)

    async def _take(self, found: Any) -> str:
        names = ", ".join(f"{one.spec.name} {one.spec.version}" for one in found)
        self._due.set()
        return f"{names}; the server starts anew"

    def _replace_process(self) -> None:
        if self._flags is not None:
            sys.stdout.flush()
            command = [sys.executable, *sys.orig_argv[1:], *self._flags]
            os.execv(sys.executable, command)  # noqa: S606  # no shell is wanted


def read_with_renewal(texts: Sequence[str]) -> tuple[list[FileVerifier], Renewal]:
    """The verifiers of files, and what waits for a change since they were read.

    Raises:
        ConfigError: as `read_verifiers`.
    """
    while True:
        before = _contents(texts)
        found = read_verifiers(texts)
        renewal = Renewal(texts, found)
        if _contents(texts) == before:
            return found, renewal


def _contents(texts: Sequence[str]) -> list[bytes]:
    return [read_source(text).path.read_bytes() for text in texts]
