"""A ladder file becomes the settings of every run, checked before any training.

base = "../dapo.toml"                  # relative to the ladder file
seeds = [0, 1, 2]
against = "previous"                   # what a rung is compared with; or "first"
threshold = { metric = "correct", value = 0.5 }
overrides = { run.steps = 200 }        # for all rungs

[[rung]]
name = "without-clip-higher"
ablate = ["clip-higher"]
overrides = { rollout.group_size = 8 } # for this rung
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.trainer.settings import config as configs
from assay.trainer.settings import presets
from assay.trainer.settings.config import Config
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.overrides import flat, merged

Against = Literal["previous", "first"]
_Seed = Annotated[int, Field(ge=0)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


@dataclass(frozen=True, slots=True)
class Threshold(Strict):
    """A level of training, to count the steps to it."""

    metric: str
    """A column of metrics.jsonl."""
    value: float


@dataclass(frozen=True, slots=True)
class RungConfig(Strict):
    """One rung, as the file has it."""

    name: _Name
    ablate: tuple[str, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LadderConfig(Strict):
    """A ladder file."""

    base: str
    rung: Annotated[tuple[RungConfig, ...], Field(min_length=1)]
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=1)] = (0, 1, 2)
    against: Against = "previous"
    threshold: Threshold | None = None
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung."""

    name: str  # folder and label
    ablate: tuple[str, ...]  # the parts that are off
    configs: Mapping[int, Config]  # the settings for each seed


@dataclass(frozen=True, slots=True)
class LadderPlan:
    """All runs of a ladder."""

    name: str  # of the ladder
    base: str  # the config that the rungs change
    rungs: tuple[Rung, ...]  # from the lowest up
    seeds: tuple[int, ...]  # of each rung
    against: Against  # what a rung is compared with
    threshold: Threshold | None  # to count steps to, if any


def load(
    path: Path, overrides: Iterable[str] = (), *, seeds: tuple[int, ...] | None = None
) -> LadderPlan:
    """Reads a ladder file.

    `overrides` are for all runs, as for `assay train`; `seeds` replace the file's.

    Raises:
        ConfigError: the file or its base cannot be read, a rung's settings do not fit, or two rungs
            or seeds are the same.
    """
    path = presets.find(path)
    read = toml_config.read(path, examples=presets.known("ladders"))
    found = toml_config.build(LadderConfig, read, origin=str(path))
    if seeds is not None:
        found = dataclasses.replace(found, seeds=seeds)
    _check_distinct(path, "rung", [rung.name for rung in found.rung])
    _check_distinct(path, "seed", found.seeds)
    _, texts = configs.current({}, overrides, origin="overrides")
    for text in texts:
        if text.startswith(("run.seed", "run.name", "run.dir")):
            raise ConfigError(
                f"override {text!r}: a ladder sets that itself; see --seeds and --dir"
            )
    base = path.parent / found.base
    below, _ = configs.current(toml_config.read(base), origin=str(base))
    above, _ = configs.current(found.overrides, origin=str(path))
    tree = merged(below, above)
    return LadderPlan(
        name=path.stem,
        base=found.base,
        rungs=tuple(
            _rung(rung, tree, texts, found.seeds, path, overrides=flat(above))
            for rung in found.rung
        ),
        seeds=found.seeds,
        against=found.against,
        threshold=found.threshold,
    )


def read_seeds(text: str) -> tuple[int, ...]:
    """`0,1,2` as numbers. Raises ConfigError: it is something else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--seeds {text}: give whole numbers from 0, with commas, such as 0,1,2")
    return tuple(map(int, parts))


def _rung(
    rung: RungConfig,
    tree: Mapping[str, Any],
    texts: Iterable[str],
    seeds: tuple[int, ...],
    path: Path,
    *,
    overrides: Collection[str],
) -> Rung:
    off = [f"ablate={','.join(rung.ablate)}"] if rung.ablate else []
    origin = f"{path}, rung {rung.name}"
    above, _ = configs.current(rung.overrides, origin=origin)
    own, layers = merged(tree, above), (overrides, flat(above))
    try:
        made = {
            seed: configs.build(
                merged(own, {"run": {"seed": seed, "name": f"{rung.name}-{seed}"}}),
                [*texts, *off],
                origin=origin,
                saved=True,  # what one rung does not read, another does
                layers=layers,
            )
            for seed in seeds
        }
    except ConfigError as error:
        message = str(error)
        raise ConfigError(
            message if message.startswith(origin) else f"{origin}: {message}"
        ) from error
    return Rung(rung.name, made[seeds[0]].ablate, made)


def _check_distinct(path: Path, what: str, values: Iterable[object]) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{path}: {what} {value} is there twice")
        seen.add(value)
