"""A command of a recipe in a process of its own, which does not outlive this one.

What it held in memory is given back whole, and no state of torch or of a random generator reaches
the next one. It ends when the pipe to its standard input does (assay.kit.child), and has a
session of its own: a Ctrl-C reaches this process alone, which passes it on once.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

ASSAY = "assay.cli"
"""The module of the command `assay`: its script may not be on the path of whoever runs this."""
INTERRUPTED = 130
_CHILD = (sys.executable, "-m", "assay.kit.child")


def start(command: Sequence[str], log: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Starts a module with its arguments.

    It prints to `log`, or where this process does.

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
    """Asks it to end in order, as Ctrl-C does."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends it at once, if it has not ended, and lets go of it."""
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
