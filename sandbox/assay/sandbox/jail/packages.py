"""Which folders of this environment a Python program may import from: those of allowed packages."""

from __future__ import annotations

import functools
import re
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


@functools.cache
def find(names: tuple[str, ...]) -> Packages:
    """The packages that are installed here; absent ones are left out."""
    paths: dict[str, None] = {}
    folders: dict[str, None] = {}
    modules: dict[str, None] = {}
    for name in names:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        base = Path(str(found.locate_file(""))).resolve()
        for top in dict.fromkeys(file.parts[0] for file in found.files or []):
            if top == "..":  # scripts outside of the library folder
                continue
            paths[str(base / top)] = None
            folders[str(base)] = None
            if (base / top / "__init__.py").exists():
                modules[top] = None
    return Packages(tuple(paths), tuple(folders), tuple(modules))
