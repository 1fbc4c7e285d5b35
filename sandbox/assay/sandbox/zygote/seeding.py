"""The first state of random numbers: the same in every run, whenever their module is loaded.

Covered: `random`, and the functions of `numpy.random` itself.
Not covered: what asks the system for randomness, as it is meant to: `os.urandom`, `secrets`,
`uuid`, `random.SystemRandom`, and of numpy `default_rng()` and `RandomState()` without a seed; and
an interpreter that a program starts.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_LEGACY = "numpy.random.mtrand"  # where numpy keeps the state that its functions share


class _Seeding:
    """Finds numpy's module where it is, and seeds it once it is loaded.

    Attributes:
        first_numpy_seed: with what; a session may set another (`harness.cells`).
    """

    first_numpy_seed = 0

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _LEGACY:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            seeding: Any = _Loader(spec.loader)
            spec.loader = seeding
        return spec


class _Loader:
    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._real.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        module.seed(_Seeding.first_numpy_seed)


def seed_random() -> None:
    """Seeds `random`: as with the hash seed, equal programs give equal answers."""
    if "random" in sys.modules:
        sys.modules["random"].seed(0)


def watch_numpy() -> None:
    """Has numpy's module seeded as it is loaded; to be called before."""
    finder: Any = _Seeding
    # Behind the finders of built-in modules, which it could only slow down.
    place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0
    sys.meta_path.insert(place, finder)
