"""Where a run came from: versions, commit, command line and machine, for run.json."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path


def describe(seed: int, packages: Iterable[str]) -> dict[str, object]:
    """Versions of these packages, seed, commit, command line and machine."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "seed": seed,
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
    }


def record(path: Path, session: dict[str, object]) -> None:
    """Adds a session to run.json; a resumed run has several."""
    sessions = json.loads(path.read_text(encoding="utf-8"))["sessions"] if path.is_file() else []
    sessions.append(session)
    path.write_text(json.dumps({"sessions": sessions}, indent=2) + "\n", encoding="utf-8")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """This package's checkout's commit, + where changed; None outside of one."""
    here = Path(__file__).parent
    try:
        command = ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty=+"]
        done = subprocess.run(  # noqa: S603  # our own argument list
            [*command, "--exclude=*"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
