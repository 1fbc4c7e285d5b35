"""Which parts each published method is made of: those of its preset.

A preset is a file of configs/ that is called as the method it names; `configs` beside this module
is a link to them, which a wheel carries as files. `--explain` says where settings that carry a
method's name depart from it. The sources of their numbers stand in the presets.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from assay.kit import toml_config
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import parts, parts_on

_PRESETS = Path(__file__).with_name("configs")
_MAY_HAVE: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("ppo", "vc_ppo", "vapo", "t_ppo"), frozenset({"value-init"})
)
"""Parts that a method's paper has and its preset leaves to whoever has the model for it."""


@functools.cache
def published() -> Mapping[str, frozenset[str]]:
    """The names of the parts of each published method, by its name."""
    found = {}
    for path in sorted(_PRESETS.glob("*.toml")):
        tree = toml_config.read(path)
        if tree.get("method", {}).get("name") == path.stem:
            config = toml_config.build(Config, tree, origin=str(path))
            found[path.stem] = frozenset(part.name for part in parts_on(config))
    return found


def departures(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How settings differ from the method whose name they carry.

    Returns:
        The parts that the method has and the settings lack, and those that the settings add, both
        in the order of the table; None for a name that is no published method's.
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
