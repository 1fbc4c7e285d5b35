"""The settings of a jail, as frozen values."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.sandbox.domain import PYTHON_PACKAGES

Level = Literal["namespaces", "uid", "confined"]
LEVELS: tuple[Level, ...] = ("namespaces", "uid", "confined")  # strongest first

# What programs of benchmarks import most; loaded once, in the zygote.
COMMON_MODULES = (
    *("bisect", "cmath", "collections.abc", "copy", "functools", "heapq", "itertools", "json"),
    *("math", "operator", "random", "re", "string", "typing"),
)
TESTER_MODULES = ("unittest", "unittest.mock")


@dataclass(frozen=True, slots=True)
class JailConfig:
    """How programs are jailed.

    Attributes:
        slot: user ids and group names differ by it.
        level: "namespaces"; where those cannot be had, "uid" (as root) or "confined" (as an
            ordinary
            user).
        read_only_paths: shown besides the system's own folders, e.g. toolchains.
        python: the interpreter that runs Python programs; empty for this one's.
        packages: distributions of this environment that Python programs may import, with their
            requirements.
        disk_bytes: default size of a program's folder.
        first_user: as root, the first of the host's user ids that programs run as; two for each
            box.
        cgroups: use control groups where they can be had.
    """

    slot: int = 0
    level: Level = "namespaces"
    read_only_paths: tuple[str, ...] = ()
    python: str = ""
    packages: tuple[str, ...] = PYTHON_PACKAGES
    disk_bytes: int = 64 * 2**20
    first_user: int = 1_879_048_192
    cgroups: bool = True

    @property
    def interpreter(self) -> str:
        """The interpreter, of no virtual environment."""
        if self.python:
            return self.python
        base: str = getattr(sys, "_base_executable", sys.executable)
        return str(Path(base).resolve())

    def readable(self, packages: Iterable[str]) -> list[str]:
        """What programs see besides the system's own folders: toolchains, packages, interpreter."""
        prefix = str(Path(self.interpreter).parent.parent)
        own = [] if prefix.startswith("/usr") else [prefix]
        return [*self.read_only_paths, *packages, *own]
