"""Runs programs in the boxes of one slot of the jail, at each level that this machine reaches."""

from __future__ import annotations

import os
import time
from pathlib import Path

from assay.sandbox.box import Box, Pump
from assay.sandbox.domain import BoxFile, RunLimits, RunMode, RunRecord, RunRequest
from assay.sandbox.jail import LEVELS, JailBoxes, JailConfig, Level, detect
from assay.sandbox.jail.run import JailRunning

FOUND = detect()
# Where programs keep to the host's paths, their own user must reach the interpreter.
SYSTEM_PYTHON = next(
    (p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), ""
)
REACHABLE = [
    level for level in LEVELS if FOUND.reaches(level) and (level != "uid" or not os.geteuid())
]


class Runner:
    """Runs programs in the boxes of one slot."""

    def __init__(self, level: Level) -> None:
        self.level = level
        python = "" if level == "namespaces" else SYSTEM_PYTHON
        self.boxes = JailBoxes(JailConfig(level=level, python=python))
        self.pump = Pump()

    def start(self, request: RunRequest, box: Box | None = None) -> JailRunning:
        running = (box or self.boxes.candidate()).start(request)
        assert isinstance(running, JailRunning)
        self.pump.add(running)
        return running

    def python(self, source: str, **changes: object) -> RunRecord:
        return self.pump.finish(self.start(script(source, **changes)))

    def command(self, *argv: str, **limits: float) -> RunRecord:
        request = RunRequest(RunMode.EXEC, argv, limits=RunLimits().with_(**limits))
        return self.pump.finish(self.start(request))


def script(source: str, **changes: object) -> RunRequest:
    limits = RunLimits().with_(**{k: v for k, v in changes.items() if k in RunLimits.__slots__})  # type: ignore[attr-defined,misc]
    rest = {k: v for k, v in changes.items() if k not in RunLimits.__slots__}  # type: ignore[attr-defined]
    files = (BoxFile("main.py", source.encode()), *rest.pop("files", ()))  # type: ignore[misc]
    argv = ("main.py", *rest.pop("arguments", ()))  # type: ignore[misc]
    return RunRequest(RunMode.PYTHON, argv, files, limits=limits, **rest)  # type: ignore[arg-type]


def left_running(runner: Runner) -> list[str]:
    """Processes of programs that are still there after a while."""
    deadline_s = time.monotonic() + 5  # the table of processes may lag behind on a busy machine
    while (left := _processes_of_programs(runner)) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return left


def _processes_of_programs(runner: Runner) -> list[str]:
    """The state of processes that run as a program's user, where it has one of its own."""
    return of_user(runner.boxes._made[0]._users.program)


def of_user(user: int | None) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if user is not None and folder.stat().st_uid == user:
                status = (folder / "status").read_text()
                if "State:\tZ" not in status:  # an orphan that is dead is process 1's to bury
                    found.append(status)
        except OSError:
            continue
    # The child that waits for the next job has not changed its user yet.
    return found
