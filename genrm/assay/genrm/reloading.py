"""Weights that are served as soon as a model's folder holds others (`reload` of a model).

A verifier that is trained together with its policy (Tango, SPARK) is written anew every few steps.
The new weights are loaded beside the old ones, answer, and take their name; items that were
accepted before end on the old ones, which then go. So no judgement mixes two of them, and each
names those that it came from (`model_revision`). Folders that cannot be served change nothing.

A folder is best replaced by a rename, or by a link to another folder. Files that are written in
place are loaded when they have been still for a second, and refused where they change meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

from assay.genrm.config import ModelsConfig
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.loading import files_of, fingerprint
from assay.kit.errors import ConfigError
from assay.kit.watching import FolderWatch, Reloadable

Renew = Callable[[str, str], Awaitable[str]]
"""Serves the weights of a fingerprint by a model's name; says so. Raises AssayError."""


def reloadables(config: ModelsConfig, renew: Renew) -> list[Reloadable]:
    """What is to be looked at, of the models that reload. Make it before they are loaded."""
    return [_reloadable(name, one, renew) for name, one in config.model.items() if one.reload]


def _reloadable(name: str, config: EngineConfig, renew: Renew) -> Reloadable:
    folder = Path(config.path)
    watch = FolderWatch(folder, _files)
    return Reloadable(f"weights of {name}", watch, partial(_digest, folder), partial(renew, name))


def _files(folder: Path) -> Iterable[Path]:
    weights, others = files_of(folder)
    return weights | others


def _digest(folder: Path) -> str:
    weights, others = files_of(folder)
    if not weights or not others:
        raise ConfigError(f"{folder} holds no model: it has no weights, or no configuration")
    return fingerprint(folder)
