"""Matplotlib's figures as pictures: shown by `pyplot.show()` and at the end of their cell.

Nothing of it is loaded; a program that imports `matplotlib.pyplot` gets another `show`, since that
of the back end without a display does nothing.
"""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from assay.sandbox.harness import bundles
from assay.sandbox.harness.interpreters import Bundle

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

_PYPLOT: Final = "matplotlib.pyplot"


class Figures:
    """Shows open figures and closes them; `show` is called with each."""

    def __init__(self, show: Callable[[Bundle], None]) -> None:
        self._show = show
        self._modules = sys.modules
        finder: Any = self
        place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0
        sys.meta_path.insert(place, finder)

    def show_all(self) -> None:
        """Shows them, if `pyplot` was imported."""
        pyplot: Any = self._modules.get(_PYPLOT)
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure, picture = pyplot.figure(number), io.BytesIO()
            try:
                figure.savefig(picture, format="png", bbox_inches="tight")
            finally:
                pyplot.close(figure)
            forms = bundles.raw_bundle({"image/png": picture.getvalue()})
            self._show({**forms, bundles.PLAIN: bundles.text_of(figure)})

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Finds pyplot where it is, as a finder of `sys.meta_path`."""
        if name != _PYPLOT:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = _Loader(spec.loader, self.show_all)
            spec.loader = loader
        return spec


class _Loader:
    def __init__(self, real: Any, show: Callable[..., None]) -> None:
        self._real = real
        self._show = show

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._real.create_module(spec)
        return created

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._real
        self._real.exec_module(module)
        show = self._show
        # A function, for matplotlib writes a signature on it.
        module.show = lambda *arguments, **options: show()
