"""Whether files have changed: in place, by a rename, or by a link's other target, as in Kubernetes.

A change counts when it has been stable for a second, so that half a file is not read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOK_S = 1.0
"""How often to look, and how long a change has to be stable."""


class FileWatch:
    """Says when one of some files has changed. Make it before the files are read."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._pending: object = None
        self._stamp, _ = self._look()

    def note(self) -> None:
        """Takes the files as they are for known, because they are about to be read."""
        self._stamp, _ = self._look()
        self._pending = None

    def changed(self) -> bool:
        """Whether they are others than those known, and stable; then they are known."""
        stamp, settled = self._look()
        if stamp == self._stamp:
            self._pending = None
            return False
        if settled or stamp == self._pending:
            self._stamp, self._pending = stamp, None
            return True
        self._pending = stamp
        return False

    def _now(self) -> Sequence[Path]:
        return self.files

    def _look(self) -> tuple[object, bool]:
        found: list[object] = []
        settled = True
        for file in self._now():
            try:
                status = file.stat()
            except OSError as error:
                found.append(error.errno)
                settled = False
            else:
                found.append((file, *_stamp(status)))
                settled = settled and time.time() - status.st_mtime > LOOK_S
        return tuple(found), settled


class FolderWatch(FileWatch):
    """The same of the files that a folder holds when it is looked at, however they are called.

    Args:
        folder: may be a link, which may change.
        files: those of a folder that count; none where there is no folder.
    """

    def __init__(self, folder: Path, files: Callable[[Path], Iterable[Path]]) -> None:
        self._folder = folder
        self._files = files
        super().__init__([folder])

    def _now(self) -> Sequence[Path]:
        return sorted(self._files(self._folder)) or self.files


@dataclass(frozen=True, slots=True)
class Reloadable:
    """What a server takes from files while it runs.

    Attributes:
        what: its name in logs and metrics.
        watch: of the files, made before they were read first.
        load: reads and checks the files, in a thread. Raises AssayError.
        take: puts what `load` gave into force, and says so for the log. Raises AssayError, and
            then has changed nothing.
    """

    what: str
    watch: FileWatch
    load: Callable[[], Any]
    take: Callable[[Any], Awaitable[str]]


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
