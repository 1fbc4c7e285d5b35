"""Which folders of this environment a Python program may import from: those of allowed packages.

A package comes with its installed requirements, without those of extras.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")
# What is loaded in advance, before the walls are up, must start no thread and import nothing else.
_LOADED = frozenset({"numpy"})
_NO_PACKAGES = frozenset({"..", "__pycache__"})  # scripts, and what was compiled of anything


@dataclass(frozen=True, slots=True)
class Packages:
    """Paths and modules of allowed packages.

    Attributes:
        paths: their top-level paths, and those of their requirements.
        folders: where these lie.
        modules: preloaded for programs that mention them.
    """

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
    for name, found in _installed([*map(_normal, names)]).items():
        base = Path(str(found.locate_file(""))).resolve()
        for top in dict.fromkeys(file.parts[0] for file in found.files or []):
            if top in _NO_PACKAGES:
                continue
            paths[str(base / top)] = None
            folders[str(base)] = None
            if name in _LOADED and (base / top / "__init__.py").exists():
                modules[top] = None
    return Packages(tuple(paths), tuple(folders), tuple(modules))


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Those of some packages that are not installed here."""
    return tuple(name for name in names if _distribution(name) is None)


def _installed(names: Iterable[str]) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        one = None if name in found else _distribution(name)
        if one is None:
            continue
        found[name] = one
        for requirement in one.requires or []:
            wanted, _, condition = requirement.partition(";")
            if match := _NAME.match(wanted.strip()) if "extra" not in condition else None:
                waiting.append(_normal(match[0]))
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
