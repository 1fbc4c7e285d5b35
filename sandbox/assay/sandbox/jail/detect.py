"""Finds which walls this machine gives: builds a box of each level and runs a program in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from assay.sandbox.box import Pump
from assay.sandbox.domain import BoxFile, RunMode, RunRequest, SandboxFault
from assay.sandbox.jail import reach
from assay.sandbox.jail.box import JailBox, landlock_scopes
from assay.sandbox.jail.config import LEVELS, JailConfig, Level
from assay.sandbox.jail.launch import LaunchError
from assay.sandbox.zygote import syscalls

_NAMESPACE_LAYERS = (
    "user-namespace",
    "pid-namespace",
    "mount-namespace",
    "network-namespace",
    "ipc-namespace",
    "uts-namespace",
    "read-only-root",
    "private-tmpfs",
)
_ALWAYS = ("seccomp", "no-new-privileges", "rlimits", "empty-environment")
_HELP = {
    "namespaces": (
        "allow user namespaces (in a container: a seccomp profile that allows unshare, clone, "
        "mount and pivot_root)"
    ),
    "uid": "run the service as an ordinary user, or as root with SETUID, SETGID, CHOWN and KILL",
    "confined": "use a kernel of 6.12 or later with Landlock enabled",
    "landlock": "use a kernel of 5.13 or later with Landlock enabled",
    "cgroup": (
        "make a cgroup writable for the service, so that the memory of a program's processes is "
        "counted together"
    ),
    "own-user": "run the service as root, so that programs get user ids of their own",
    "private-proc": "in a container: systempaths=unconfined",
}


@dataclass(frozen=True, slots=True)
class Isolation:
    """What was found.

    Attributes:
        level: the strongest level that works; None: none does.
        layers: the walls in place, kebab-case, strongest first.
        missing: the other walls, each with the reason and what to do, for people.
    """

    level: Level | None
    layers: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]

    def reaches(self, floor: Level) -> bool:
        """Whether the level is at least `floor`."""
        return self.level is not None and LEVELS.index(self.level) <= LEVELS.index(floor)


def detect(config: JailConfig | None = None) -> Isolation:
    """Tries the levels from the strongest down. Takes about 0.1 s; start no threads before."""
    config = config or JailConfig(slot=7)
    missing: list[tuple[str, str]] = []
    for level in LEVELS:
        problem = _cannot_be(level) or _cannot_reach(replace(config, level=level))
        if not problem:
            box = JailBox(replace(config, level=level), 3, [])
            try:
                problem = _try(box)
                absent = dict(_split(entry) for entry in box.missing)
            finally:
                box.close()
        if not problem:
            return Isolation(level, _layers(level, absent), (*missing, *_explained(level, absent)))
        missing.append((level, f"{problem}; {_HELP[level]}"))
    return Isolation(None, (), tuple(missing))


def _split(entry: str) -> tuple[str, str]:
    name, _, reason = entry.partition(": ")
    return name, reason


def _cannot_be(level: Level) -> str:
    """Why a level is impossible here, before trying it."""
    if level == "uid" and os.geteuid() != 0:
        return "only root can give programs users of their own"
    if level != "namespaces" and not landlock_scopes():
        return "the kernel has no Landlock that keeps signals inside (6.12 or later)"
    return ""


def _cannot_reach(config: JailConfig) -> str:
    """What stops the programs' users on the way to the interpreter, and what to do."""
    if os.geteuid() != 0:
        return ""
    prefix = str(Path(config.interpreter).parent.parent)
    closed = reach.closed_way([prefix], shown=config.level == "namespaces")
    return reach.advice(closed) if closed is not None else ""


def _try(box: JailBox) -> str:
    request = RunRequest(
        RunMode.PYTHON, ("main.py",), (BoxFile("main.py", b"import colorsys; print(6 * 7)"),)
    )
    try:
        box.build()
        pump = Pump()
        running = box.start(request)
        pump.add(running)
        record = pump.finish(running)
    except (LaunchError, SandboxFault, OSError) as error:
        return str(error)
    if not record.ok or record.stdout.data != b"42\n":
        last = record.stderr.data.decode(errors="replace").strip().rpartition("\n")[2]
        return f"a program ended with {record.end.value}, code {record.exit_code}: {last}"
    return ""


def _layers(level: Level, absent: dict[str, str]) -> tuple[str, ...]:
    layers = list(_NAMESPACE_LAYERS) if level == "namespaces" else []
    if level == "namespaces" and "private-proc" not in absent:
        layers.append("private-proc")
    if os.geteuid() == 0:
        layers.append("own-user")
    layers.append(_ALWAYS[0])
    if syscalls.landlock_abi():
        layers.append("landlock")
    if "cgroup" not in absent:
        layers += ["cgroup-memory", "cgroup-pids"]
    return (*layers, *_ALWAYS[1:])


def _explained(level: Level, absent: dict[str, str]) -> tuple[tuple[str, str], ...]:
    found = dict(absent)
    if not syscalls.landlock_abi():
        found["landlock"] = "the kernel has none"
    if os.geteuid() != 0:
        found["own-user"] = "the service is not root"
    return tuple((name, f"{reason}; {_HELP[name]}") for name, reason in found.items())
