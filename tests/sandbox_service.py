"""The sandbox as a process, for tests: what is started, asked, and looked at from outside."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from assay.clients.execution import ExecutionJob, Limits, Program
from process_tree import children, named

# Whatever the machine gives: these tests are about the service, those of the jail about the walls.
ANY_FLOOR = ("--isolation-floor", "confined")


def launch(*flags: str, **environment: str) -> subprocess.Popen[str]:
    """Starts the server as a user does."""
    return subprocess.Popen(
        [sys.executable, "-m", "assay.sandbox", "--port", "0", *ANY_FLOOR, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def ready(process: subprocess.Popen[str]) -> str:
    """The address from the line that says that it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("assay sandbox ready on "):
        process.kill()
        raise AssertionError(f"the sandbox did not start: {process.communicate()[1]}")
    return line.split()[-1]


@contextlib.contextmanager
def running(*flags: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server for the length of the context; its stderr is drained at the end only."""
    with launch("--log-level", "ERROR", *flags, **environment) as process:
        try:
            yield ready(process), process
        finally:
            process.kill()
            process.communicate()


def python(source: str, job_id: str = "", *, stdin: bytes = b"", **limits: float) -> ExecutionJob:
    """A job in Python."""
    stated = Limits(**limits)  # type: ignore[arg-type]
    return ExecutionJob(Program("python", source), id=job_id, stdin=stdin, limits=stated)


def supervisors(pid: int) -> list[int]:
    """The supervisors of a server."""
    return named(children(pid), "assay.sandbox.supervisor")
