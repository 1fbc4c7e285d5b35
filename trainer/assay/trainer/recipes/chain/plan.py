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

[[stage]]
name = "labels"
command = "label-critiques"                # a judge criticises what that stage drew
rows = "samples"
options = { model = "FOLDER", votes = 16 }

[[stage]]
name = "prm"
command = "train-rm"
base = "../rm-critique.toml"
rows = "labels"

[[stage]]
name = "by-judge"
base = "../grpo.toml"
judge = "prm"                              # services of its own, with that stage's judge
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.trainer.recipes.chain.choosing import Beginning, check_kept
from assay.trainer.recipes.chain.labelling import LabelStage, RmStage, check_options, served
from assay.trainer.recipes.ladder.processes import RungRun
from assay.trainer.recipes.reward_model import config as rm_configs
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings import presets
from assay.trainer.settings.config import Config
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.overrides import flat, merged

BEGINNING = "begins-with"
"""Beside a stage's run: the checkpoint that was chosen for it."""
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


@dataclass(frozen=True, slots=True)
class StageConfig(Strict):
    """One stage, as the file has it."""

    name: _Name
    base: str = ""
    command: Literal["train", "train-rm", "label-critiques"] = "train"
    model: str = ""
    """The stage whose model it begins with; empty for that of the settings."""
    entropy: Annotated[float, Field(gt=0)] | None = None
    """Begin with the last checkpoint of `model` that has so many nats a token, not with its end."""
    rows: str = ""
    """The stage whose rollouts or labels it learns from; empty for those of the settings, or none.
    """
    judge: str = ""
    """The stage whose judge its services have; empty for the services of the settings."""
    services: tuple[str, ...] = ()
    """Arguments of `assay serve genrm` where the stage starts a judge, such as --templates."""
    overrides: dict[str, Any] = field(default_factory=dict)
    options: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Of label-critiques, such as votes."""


@dataclass(frozen=True, slots=True)
class ChainConfig(Strict):
    """A file of stages."""

    stage: Annotated[tuple[StageConfig, ...], Field(min_length=1)]
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class StageRun(RungRun):
    """A stage that is `assay train`."""

    beginning: Beginning | None = None  # the checkpoint that is chosen for it, if one is


Stage = StageRun | LabelStage | RmStage


def load(path: Path, overrides: Iterable[str], folder: Path) -> list[Stage]:
    """The stages of a file, in their order, each in a folder of its own under `folder`.

    `overrides` are for all that are `assay train`; `STAGE:key=value` is for one of any command.

    Raises:
        ConfigError: the file or a base cannot be read, a stage's settings do not fit, or it names a
            stage that does not come before it, or is of another command.
    """
    path = presets.find(path)
    read = toml_config.read(path, examples=presets.known("pipelines"))
    found = toml_config.build(ChainConfig, read, origin=str(path))
    texts = list(overrides)
    names = [stage.name for stage in found.stage]
    stages: dict[str, Stage] = {}
    for stage in found.stage:
        if stage.name in stages:
            raise ConfigError(f"{path}: stage {stage.name} is there twice")
        origin = f"{path}, stage {stage.name}"
        if bool(stage.base) == (stage.command == "label-critiques"):
            raise ConfigError(f"{origin}: `base` is the settings of train and train-rm, and theirs")
        if stage.entropy is not None and (stage.command != "train" or not stage.model):
            raise ConfigError(f"{origin}: `entropy` is for a run, and chooses from its `model`")
        if stage.command == "train":
            own = [*filter(None, (_for_stage(text, stage.name, names) for text in texts))]
            made: Stage = _run(stage, path, found.overrides, own, stages, folder)
        else:
            own = [text for text in texts if ":" in text.partition("=")[0]]
            own = [*filter(None, (_for_stage(text, stage.name, names) for text in own))]
            made = _command(stage, path, own, stages, folder)
        stages[stage.name] = made
    return list(stages.values())


def _run(  # noqa: PLR0917  # what a stage is made of
    stage: StageConfig,
    path: Path,
    overrides: Mapping[str, Any],
    own: Sequence[str],
    before: Mapping[str, Stage],
    folder: Path,
) -> StageRun:
    origin = f"{path}, stage {stage.name}"
    beginning = _beginning(stage, before, origin, folder)
    given = [*own, *_handed(stage, before, origin, beginning)]
    judge: tuple[str, ...] = ()
    if stage.judge:
        trained = RunFolder(_named(stage.judge, before, origin, RmStage).folder).model
        judge = (*served(trained), *stage.services)
    config = _config(stage, path.parent / stage.base, overrides, given, origin)
    if judge and config.reward.target:
        raise ConfigError(f"{origin}: with a `judge` it has services of its own; no reward.target")
    seed = config.run.seed
    where = folder / stage.name / str(seed)
    return StageRun(stage.name, seed, config, where, judge, beginning=beginning)


def _command(
    stage: StageConfig, path: Path, own: Sequence[str], before: Mapping[str, Stage], folder: Path
) -> LabelStage | RmStage:
    origin = f"{path}, stage {stage.name}"
    where = folder / stage.name
    if stage.command == "label-critiques":
        source = _named(stage.rows, before, origin, StageRun).folder
        options: dict[str, Any] = {**stage.options, **dict(map(_option, own))}
        model = options.pop("model", "")
        if stage.model:
            model = str(_model_of(stage.model, before, origin))
        if bool(model) == ("target" in options):
            raise ConfigError(f"{origin}: who criticises? Say {stage.name}:model=FOLDER or :target")
        judge = (*served(model), *stage.services) if model else ()
        check_options(options, origin)
        return LabelStage(stage.name, where, source, options, judge)
    handed = dict(flat(stage.overrides))
    if stage.rows:
        handed["data.paths"] = [str(_named(stage.rows, before, origin, LabelStage).labels)]
    if stage.model:
        handed["model.name"] = str(_model_of(stage.model, before, origin))
    texts = [*(f"{key}={json.dumps(value)}" for key, value in handed.items()), *own]
    base = path.parent / stage.base
    rm_configs.load(base, texts)
    return RmStage(stage.name, where / "run", base, texts)


def _option(text: str) -> tuple[str, str | bool]:
    name, _, value = text.partition("=")
    return name, {"true": True, "false": False}.get(value, value)


def _model_of(name: str, before: Mapping[str, Stage], origin: str) -> Path:
    """The model of a stage that trains, a policy or a judge."""
    if isinstance(before.get(name), RmStage):
        return RunFolder(_named(name, before, origin, RmStage).folder).model
    return RunFolder(_named(name, before, origin, StageRun).folder).model


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


def _beginning(
    stage: StageConfig, before: Mapping[str, Stage], origin: str, folder: Path
) -> Beginning | None:
    """The checkpoint that will be chosen for a stage; None where it begins with a model's end."""
    if stage.entropy is None:
        return None
    earlier = _named(stage.model, before, origin, StageRun)
    check_kept(earlier.config, origin)
    return Beginning(earlier.folder, stage.entropy, folder / stage.name / BEGINNING)


def _handed(
    stage: StageConfig, before: Mapping[str, Stage], origin: str, beginning: Beginning | None
) -> list[str]:
    """What earlier stages leave it, as overrides."""
    handed = []
    if beginning:
        handed.append(f"model.name={beginning.link}")
    elif stage.model:
        model = RunFolder(_named(stage.model, before, origin, StageRun).folder).model
        handed.append(f"model.name={model}")
    if stage.rows:
        rows = _named(stage.rows, before, origin, StageRun).folder
        handed.append(f"method.offline.rows={rows}")
    return handed


S = TypeVar("S", StageRun, LabelStage, RmStage)


def _named(name: str, before: Mapping[str, Stage], origin: str, kind: type[S]) -> S:
    if name not in before:
        raise ConfigError(
            f"{origin}: no stage {name!r} comes before it{did_you_mean(name, tuple(before))}"
        )
    found = before[name]
    if not isinstance(found, kind):
        raise ConfigError(f"{origin}: stage {name!r} is no {_KINDS[kind]}")
    return found


_KINDS: Mapping[type, str] = {
    StageRun: "`assay train`",
    LabelStage: "`assay label-critiques`",
    RmStage: "`assay train-rm`",
}
