"""The parts of each published method, read from its preset.

A preset is a file of configs/ named after its method. `--explain` reports how settings with a
method's name depart from it. The presets hold the sources of their numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from assay.kit import toml_config
from assay.trainer.settings.config import Config
from assay.trainer.settings.presets import PRESETS
from assay.trainer.settings.registry import parts, parts_on

_MAY_HAVE: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("ppo", "vc_ppo", "vapo", "t_ppo"), frozenset({"value-init"})
)
"""Parts of a method's paper that its preset leaves out, for want of a model."""


@functools.cache
def published() -> Mapping[str, frozenset[str]]:
    """Names of the parts of each published method."""
    found = {}
    for path in sorted(PRESETS.glob("*.toml")):
        tree = toml_config.read(path)
        if tree.get("method", {}).get("name") == path.stem:
            config = toml_config.build(Config, tree, origin=str(path))
            found[path.stem] = frozenset(part.name for part in parts_on(config))
    return found


def departures(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How settings differ from the method whose name they carry.

    Returns:
        The parts that the settings lack and those that they add, both in the order of the table;
        None where the name is no published method's.
    """
    expected = published().get(config.method.name)
    if expected is None:
        return None
    on = {part.name for part in parts_on(config)}
    on -= _MAY_HAVE.get(config.method.name, frozenset())
    order = [part.name for part in parts()]
    return (
        tuple(name for name in order if name in expected - on),
        tuple(name for name in order if name in on - expected),
    )
