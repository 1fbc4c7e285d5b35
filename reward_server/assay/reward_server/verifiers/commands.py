"""Commands that a program of ours starts in the sandbox: bounded in time, children included.

It is sent along with the `*_runner.py` that imports it; standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SHOWN = 600
"""Characters of what a command says that a verdict shows."""


class StepFailed(Exception):
    """A step failed; says why."""


class Late(StepFailed):
    """A step took too long."""


@dataclass(frozen=True)
class Ran:
    """A process that has ended; `code` is None where its time ran out."""

    code: int | None
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said last."""
        return (self.err.strip() or self.out.strip())[-SHOWN:]


class Clock:
    """The seconds that the processes of one side have together."""

    def __init__(self, seconds: float) -> None:
        self._end_s = time.monotonic() + seconds
        self._seconds = seconds

    def run(self, argv: list[str], folder: Path) -> Ran:
        """Runs a command; whatever it started ends with it."""
        ran = run(argv, folder, max(0.1, self._end_s - time.monotonic()))
        if ran.code is None:
            raise Late(f"it takes more than {self._seconds:g} s")
        return ran


def run(argv: list[str], folder: Path, seconds: float) -> Ran:
    """Runs a command in a folder, in a process group of its own."""
    process = subprocess.Popen(  # noqa: S603 - a command of ours on files of ours
        argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "OCAMLFIND_CONF": str(folder / "findlib.conf"),
            "LEAN_PATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("LEAN_PATH")))),
        },
    )
    try:
        out, err = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        out, err, code = b"", b"", None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if code is None:
        process.communicate()
    return Ran(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
