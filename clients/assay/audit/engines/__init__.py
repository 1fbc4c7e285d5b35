"""The engines that come with an audit; others plug in as entry points of `assay.audits`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import cast

from assay.audit.probes import Prober
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean

GROUP = "assay.audits"
ORDER = ("floor", "panel", "metamorphic", "mutation", "search")


def engines(names: Sequence[str] = ()) -> list[Prober]:
    """The engines of these names, or all that are installed; ours first, in their order.

    Raises:
        ConfigError: there is none of that name, or it cannot be loaded.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name in names:
        if name not in found:
            near = did_you_mean(name, found)
            raise ConfigError(f"no engine is called {name!r}{near}; there are {', '.join(found)}")
    chosen = sorted(names or found, key=lambda one: (_place(one), one))
    made = []
    for name in chosen:
        try:
            made.append(cast("Prober", found[name].load()()))
        except ImportError as error:
            raise ConfigError(f"the engine {name!r} cannot be loaded: {error}") from error
    return made


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)
