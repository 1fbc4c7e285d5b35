"""A recipe's command in a child process, which ends with this one.

Its memory is freed whole, and no state of torch or of random generators carries over. It ends when
its standard input closes (assay.kit.child), and has its own session: a Ctrl-C reaches this process
alone, which passes it on once.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

ASSAY = "assay.cli"
"""The module of the command `assay`, whose script may not be on the path."""
INTERRUPTED = 130
_CHILD = (sys.executable, "-m", "assay.kit.child")


def start(command: Sequence[str], log: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Starts a module with its arguments; it prints to `log`, or where this process does.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(  # noqa: S603  # our own argument list
        [*_CHILD, *command],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=None if log is None else subprocess.STDOUT,
        start_new_session=True,
    )


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Asks it to end, as Ctrl-C does."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills it if it still runs, and releases it."""
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
