"""The environments that are installed: entry points of the group `assay.environments`."""

from __future__ import annotations

import dataclasses
import functools
import sys
import zlib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from assay.environments.environment import Environment
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean

GROUP = "assay.environments"


@functools.cache
def environments() -> Mapping[str, EntryPoint]:
    """Entry points by name, sorted."""
    return {one.name: one for one in sorted(entry_points(group=GROUP), key=lambda one: one.name)}


def environment_of(name: str) -> type[Environment]:
    """The class of an installed environment, or of `FILE.py:Class` or `package.module:Class`.

    Its `name` is one that finds it, for records name it so: `name`, unless it is installed.

    Raises:
        ConfigError: there is none, or it is something else.
    """
    known = environments()
    if name in known:
        found: Any = _loaded(name, known[name].load)
    elif ":" in name:
        where, _, attribute = name.rpartition(":")
        found = _loaded(name, lambda: getattr(_module(where), attribute))
    else:
        raise ConfigError(
            f"no environment {name!r} is installed{did_you_mean(name, known)}; there are: "
            f"{', '.join(known) or 'none'}; or name one of yours as FILE.py:Class"
        )
    if not (isinstance(found, type) and issubclass(found, Environment)):
        raise ConfigError(f"{name} is no subclass of assay.environments.Environment")
    if not _is_installed(found):
        found.name = name
    return found


def _is_installed(kind: type[Environment]) -> bool:
    """Whether its name finds it."""
    entry = environments().get(kind.name)
    return entry is not None and _loaded(kind.name, entry.load) is kind


def settings_of(kind: type[Environment], given: Mapping[str, Any]) -> Any:
    """The environment's settings, of a table of them.

    Raises:
        ConfigError: it has no such setting, or a value does not fit.
    """
    names = [one.name for one in dataclasses.fields(kind.Settings)]
    for key in given:
        if key not in names:
            raise ConfigError(
                f"the environment {kind.name!r} has no setting {key!r}{did_you_mean(key, names)}; "
                f"it has: {', '.join(names) or 'none'}"
            )
    try:
        return kind.Settings(**given)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the environment {kind.name!r}: {error}") from error


def _loaded(name: str, load: Any) -> Any:
    try:
        return load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise ConfigError(
            f"the environment {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _module(where: str) -> Any:
    if not where.endswith(".py"):
        return import_module(where)
    path = Path(where)
    if not path.is_file():
        raise ConfigError(f"there is no file {where}")
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415

    place = zlib.crc32(str(path.resolve()).encode())
    spec = spec_from_file_location(f"assay_environment_{path.stem}_{place:08x}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{where} is no module of Python")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and type hints look their module up
    spec.loader.exec_module(module)
    return module
