"""The jail as a back end: refuses a machine whose walls are below the operator's floor."""

from __future__ import annotations

import logging
import os

from assay.kit.errors import StartupError
from assay.sandbox.backend import Boxes, IsolationBackend, SandboxConfig, SlotSettings, Walls
from assay.sandbox.config import FLOORS
from assay.sandbox.domain import PYTHON_PACKAGES
from assay.sandbox.jail import packages, reach
from assay.sandbox.jail.box import JailBoxes
from assay.sandbox.jail.config import LEVELS, JailConfig
from assay.sandbox.jail.detect import detect

_log = logging.getLogger(__name__)


class JailBackend:
    """Boxes of the kernel's own walls."""

    on_this_machine = True

    def check(self, config: SandboxConfig) -> Walls:
        """The walls that work here.

        Raises:
            StartupError: the level is below the floor; the text says what is missing, what to do,
                and how
                to serve all the same. Or a Python package that the operator named is not installed.
        """
        walls = _walls(config.isolation_floor)
        lacking = packages.missing(set(config.python_packages) - set(PYTHON_PACKAGES))
        if lacking:
            raise StartupError(
                f"--python-packages names {', '.join(sorted(lacking))}: "
                "not installed beside the service"
            )
        if os.geteuid() == 0:
            _warn_of_closed(config.python_packages, walls.level)
        return walls

    def open(self, settings: SlotSettings) -> Boxes:
        """The slot's boxes; each is built at its first run."""
        return JailBoxes(
            JailConfig(
                slot=settings.slot,
                level=next(known for known in LEVELS if known == settings.level),
                read_only_paths=settings.read_only_paths,
                packages=settings.python_packages,
            )
        )


def _walls(floor: str) -> Walls:
    found = detect()
    missing = "; ".join(f"{name}: {reason}" for name, reason in found.missing)
    if found.level is None:
        raise StartupError(f"no isolation works on this machine ({missing})")
    for name, reason in found.missing:
        _log.warning("isolation layer missing: %s (%s)", name, reason)
    if FLOORS.index(found.level) > FLOORS.index(floor):
        raise StartupError(
            f"isolation reaches only the level {found.level!r}, below the floor "
            f"{floor!r}. Missing: {missing}. To serve all the same, pass "
            f"--isolation-floor {found.level}"
        )
    _log.info("isolation: %s (%s)", found.level, ", ".join(found.layers))
    return Walls(found.level, tuple(found.layers))


def _warn_of_closed(names: tuple[str, ...], level: str) -> None:
    closed = reach.closed_way(packages.find(names).paths, shown=level == "namespaces")
    if closed is not None:
        _log.warning("Python programs cannot import every package: %s", reach.advice(closed))


JAIL: IsolationBackend = JailBackend()
