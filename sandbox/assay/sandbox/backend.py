"""The interface of a back end, which isolates programs, and all that it needs of the sandbox.

The jail is built in. Others are plug-ins: an entry point of the group `assay.sandbox_backends`
names one, and `--backend` chooses it by the entry point's name.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import Protocol

from assay.sandbox.box import Box, Boxes, Pump, Running
from assay.sandbox.config import SandboxConfig
from assay.sandbox.domain import (
    ENDED_BY_US,
    MIB,
    BoxFile,
    CapturedOutput,
    EndKind,
    RunLimits,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
)
from assay.sandbox.zygote import calls

__all__ = [
    "ENDED_BY_US",
    "MIB",
    "Box",
    "BoxFile",
    "Boxes",
    "CapturedOutput",
    "EndKind",
    "IsolationBackend",
    "Pump",
    "RunLimits",
    "RunMode",
    "RunRecord",
    "RunRequest",
    "Running",
    "SandboxConfig",
    "SandboxFault",
    "SlotSettings",
    "SystemCalls",
    "Walls",
    "harness_files",
    "system_calls",
]


@dataclass(frozen=True, slots=True)
class Walls:
    """How programs are isolated.

    Attributes:
        level: the level's name, kebab-case, e.g. "namespaces".
        layers: its parts, kebab-case, strongest first.
    """

    level: str
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotSettings:
    """What a back end learns about one slot.

    Attributes:
        slot: its number, from 0.
        level: as `IsolationBackend.check` found it.
        image: the operator's container image; empty for the back end's default.
        read_only_paths: toolchains' folders, which programs see at the same place.
        python_packages: distributions beside the service that Python programs may import.
    """

    slot: int
    level: str
    image: str
    read_only_paths: tuple[str, ...]
    python_packages: tuple[str, ...]


class IsolationBackend(Protocol):
    """Makes boxes. Stateless."""

    @property
    def on_this_machine(self) -> bool:
        """Programs use this machine's tools, so `warm_up` prepares them in advance."""

    def check(self, config: SandboxConfig) -> Walls:
        """Looks at the machine, once, before the service starts a thread.

        Raises:
            StartupError: programs cannot be isolated here as `config` asks.
        """

    def open(self, settings: SlotSettings) -> Boxes:
        """Makes the boxes of a slot, in its supervisor's process.

        Raises:
            StartupError: they cannot be made.
        """


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """Names of system calls, for a filter like the jail's.

    Attributes:
        allowed: for programs; `clone` and `socket` depend on their arguments.
        refused: answered with EPERM.
        forbidden: end the program.
    """

    allowed: frozenset[str]
    refused: frozenset[str]
    forbidden: frozenset[str]


def system_calls() -> SystemCalls:
    """The calls of x86_64 and aarch64 together."""
    allowed = calls.COMMON, calls.SOCKETS, calls.WATCHES, calls.IGNORED, calls.CHECKED
    return SystemCalls(_names(*allowed), _names(calls.REFUSED), _names(calls.FORBIDDEN))


def _names(*tables: str) -> frozenset[str]:
    columns = (0, 1)
    return frozenset(name for table in tables for c in columns for name, _ in calls.parse(table, c))


def harness_files() -> dict[str, bytes]:
    """The modules beside a CANDIDATE or TESTER, by path below a folder of `sys.path`.

    They import only the standard library.
    """
    files = {"assay/sandbox/__init__.py": b""}
    for entry in importlib.resources.files("assay.sandbox.harness").iterdir():
        if entry.name.endswith(".py"):
            files[f"assay/sandbox/harness/{entry.name}"] = entry.read_bytes()
    return files
