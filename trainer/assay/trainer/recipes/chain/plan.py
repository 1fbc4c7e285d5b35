"""A file of stages becomes the settings of runs that follow one another.

overrides = { data.path = "rows.jsonl" }   # for all stages

[[stage]]
name = "samples"
base = "../grpo.toml"                      # relative to this file
overrides = { optim.learning_rate = 0.0 }  # draws, and learns nothing

[[stage]]
name = "cold-start"
base = "../offline/dpo.toml"
rows = "samples"                           # learns from that stage's rollouts

[[stage]]
name = "rl"
base = "../dapo.toml"
model = "cold-start"                       # begins with what that stage trained
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.trainer.recipes.ladder.processes import RungRun
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings import presets
from assay.trainer.settings.config import Config
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.overrides import flat, merged

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


@dataclass(frozen=True, slots=True)
class StageConfig(Strict):
    """One stage, as the file has it."""

    name: _Name
    base: str
    model: str = ""
    """The stage whose model it begins with; empty for that of the settings."""
    rows: str = ""
    """The stage whose rollouts it learns from; empty for those of the settings, or none."""
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChainConfig(Strict):
    """A file of stages."""

    stage: Annotated[tuple[StageConfig, ...], Field(min_length=1)]
    overrides: dict[str, Any] = field(default_factory=dict)


def load(path: Path, overrides: Iterable[str], folder: Path) -> list[RungRun]:
    """The runs of a file of stages, in their order, each in a folder of its own under `folder`.

    `overrides` are for all of them, as for `assay train`; `STAGE:key=value` is for one.

    Raises:
        ConfigError: the file or a base cannot be read, a stage's settings do not fit, or it names a
            stage that does not come before it.
    """
    path = presets.find(path)
    read = toml_config.read(path, examples=presets.known("pipelines"))
    found = toml_config.build(ChainConfig, read, origin=str(path))
    texts = list(overrides)
    names = [stage.name for stage in found.stage]
    runs: dict[str, RungRun] = {}
    for stage in found.stage:
        if stage.name in runs:
            raise ConfigError(f"{path}: stage {stage.name} is there twice")
        origin = f"{path}, stage {stage.name}"
        own = (_for_stage(text, stage.name, names) for text in texts)
        given = [*filter(None, own), *_handed(stage, runs, origin)]
        config = _config(stage, path.parent / stage.base, found.overrides, given, origin)
        seed = config.run.seed
        runs[stage.name] = RungRun(stage.name, seed, config, folder / stage.name / str(seed))
    return list(runs.values())


def _for_stage(text: str, name: str, names: Sequence[str]) -> str:
    """An override as a stage has it; empty where it is another's."""
    whose, colon, _ = text.partition("=")[0].partition(":")
    if not colon:
        return text
    if whose not in names:
        raise ConfigError(
            f"override {text!r}: there is no stage {whose!r}{did_you_mean(whose, names)}; stages "
            f"are {', '.join(names)}"
        )
    return text[len(whose) + 1 :] if whose == name else ""


def _config(
    stage: StageConfig, base: Path, overrides: Mapping[str, Any], texts: list[str], origin: str
) -> Config:
    _, given = configs.current({}, texts, origin="overrides")
    tree, _ = configs.current(toml_config.read(base), origin=str(base))
    layers = []
    for above in (overrides, stage.overrides):
        laid, _ = configs.current(above, origin=origin)
        tree = merged(tree, laid)
        layers.append(flat(laid))
    return configs.build(tree, given, origin=origin, saved=True, layers=tuple(layers))


def _handed(stage: StageConfig, before: Mapping[str, RungRun], origin: str) -> list[str]:
    """What earlier stages leave it, as overrides."""
    handed = []
    if stage.model:
        model = RunFolder(_named(stage.model, before, origin)).model
        handed.append(f"model.name={model}")
    if stage.rows:
        handed.append(f"method.offline.rows={_named(stage.rows, before, origin)}")
    return handed


def _named(name: str, before: Mapping[str, RungRun], origin: str) -> Path:
    if name not in before:
        raise ConfigError(
            f"{origin}: no stage {name!r} comes before it{did_you_mean(name, tuple(before))}"
        )
    return before[name].folder
