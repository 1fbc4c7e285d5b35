"""What must stay out of a program's reach, planted where it might look: see
../shared/abuse/README.md.

A variable in the service's environment, a world-readable file in its temporary folder, listening
unix sockets in that folder and in the abstract namespace. The sockets are never answered; a
connection to one waits in its queue and is found there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

NAME, VALUE = "SBX_CANARY", "SBX_CANARY_VALUE"


class Canaries:
    """The planted sockets, and whether anybody has come."""

    def __init__(self, listeners: list[socket.socket]) -> None:
        self._listeners = listeners

    def visitors(self) -> list[str]:
        """The sockets that somebody connected to since the last call."""
        found = []
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                visitor, _ = listener.accept()
                visitor.close()
                found.append(repr(listener.getsockname()))
        return found


@contextlib.contextmanager
def planted(
    folder: Path | None = None, abstract: str = "sbx_canary_abstract"
) -> Iterator[Canaries]:
    """Plants them, for a service that is started inside; pulls them out again.

    The programs know their names, so whoever plants them waits until nobody else does.
    """
    folder = folder or Path(tempfile.gettempdir())
    file, path = folder / f"{NAME}_hidden_test.txt", folder / "sbx_canary.sock"
    before = os.environ.get(NAME)
    listeners: list[socket.socket] = []
    lock = (folder / f"{abstract}.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        os.environ[NAME] = VALUE
        file.write_text(f"{VALUE}\n")
        file.chmod(0o644)
        path.unlink(missing_ok=True)
        for address in (str(path), f"\0{abstract}"):
            listeners.append(socket.socket(socket.AF_UNIX))
            listeners[-1].setblocking(False)
            listeners[-1].bind(address)
            listeners[-1].listen(64)
        path.chmod(0o777)
        yield Canaries(listeners)
    finally:
        for listener in listeners:
            listener.close()
        file.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        os.environ.pop(NAME, None)
        if before is not None:
            os.environ[NAME] = before
        lock.close()
