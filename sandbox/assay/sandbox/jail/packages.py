"""Which folders of this environment a Python program may import from: those of allowed packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Packages:
    """Top-level paths of distributions, the folders they lie in, the modules they bring."""

    paths: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def wanted_by(self, source: str) -> bool:
        """Whether a program's text mentions one of the modules."""
        return any(re.search(rf"\b{re.escape(name)}\b", source) for name in self.modules)


def find(names: Iterable[str]) -> Packages:
    """The packages that are installed here; absent ones are left out."""
    paths: dict[str, None] = {}
    folders: dict[str, None] = {}
    modules: dict[str, None] = {}
    for name in names:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            top = file.parts[0]
            if top == "..":  # scripts outside of the library folder
                continue
            base = Path(str(distribution(name).locate_file(""))).resolve()
            paths[str(base / top)] = None
            folders[str(base)] = None
            if (base / top / "__init__.py").exists():
                modules[top] = None
    return Packages(tuple(paths), tuple(folders), tuple(modules))
