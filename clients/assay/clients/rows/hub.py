"""Data sets of the hub, or of local folders, by the library `datasets`."""

from __future__ import annotations

from typing import Any

from assay.kit.errors import ConfigError


def load_hub(name: str, subset: str, split: str, revision: str = "") -> Any:
    """A datasets.Dataset of the hub, or of a local folder. No split: the only one that it has.

    Raises:
        ConfigError: it cannot be loaded, it has several splits and none is named, or the library
            is not installed.
    """
    try:
        import datasets  # noqa: PLC0415  # takes a second to import; only this source needs it
    except ImportError as error:
        raise ConfigError(
            f"the data set {name!r} needs the package datasets, which is not installed; run: "
            "pip install datasets"
        ) from error

    try:
        found = datasets.load_dataset(
            name, subset or None, split=split or None, revision=revision or None
        )
    except (OSError, ValueError, KeyError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        part = f", split {split!r}," if split else ""
        raise ConfigError(
            f"data set {name!r}{part} cannot be loaded: {reason}; check the name, the split and "
            "the network, or read a local file"
        ) from error
    if not isinstance(found, dict):
        return found
    if len(found) > 1:
        raise ConfigError(
            f"data set {name!r} has the splits {', '.join(sorted(found))}; name one of them"
        )
    return next(iter(found.values()))
