"""Settings of a training run: a TOML file and `key=value` overrides become one frozen Config.

Untrusted text is checked strictly here, once: a wrong type, an unknown key or a value out of range
is a one-line ConfigError that names the file, the key and what is expected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.kit.runs.folders import RunPaths
from assay.trainer.settings import aliases, presets, rules
from assay.trainer.settings.ablation import ablated
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Backend, Loss
from assay.trainer.settings.objective import CRITIC, AdvantageConfig, CriticConfig, LossConfig
from assay.trainer.settings.overrides import expand, flat, laid_over, with_source
from assay.trainer.settings.reading import ReadWhere, given_by, only, settled
from assay.trainer.settings.registry import declared, every, methods
from assay.trainer.settings.sections import (
    DataConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RewardConfig,
    RolloutConfig,
    RunConfig,
)
from assay.trainer.settings.tables import with_tables


@dataclass(frozen=True, slots=True)
class _Objective(Strict):
    """What every method has; tables of plug-ins are added."""

    name: str = "grpo"
    """Name of the composition in reports."""
    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    critic: Annotated[CriticConfig, CRITIC] = field(default_factory=CriticConfig)
    loss: LossConfig = field(default_factory=LossConfig)

    @property
    def has_critic(self) -> bool:
        """Whether a value function is trained."""
        return CRITIC.holds(self.advantage.estimator)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


SHARED = frozenset(one.name for one in fields(_Objective))
"""Tables of [method] that every run has, whatever is installed."""


def _tables() -> list[tuple[str, type[Any]]]:
    tables = [(one.name, one.settings) for one in methods() if one.name not in SHARED]
    return tables + [(one.table, one.settings) for one in every(Loss) if one.settings]


def _read() -> dict[str, ReadWhere]:
    tables = {one.table: only("method.loss.objective", one.name) for one in every(Loss)}
    switched = {one.name: one.is_on for one in methods() if isinstance(one.is_on, ReadWhere)}
    return {**tables, **switched}


if TYPE_CHECKING:
    MethodSettings = _Objective
else:
    MethodSettings = with_tables(
        "MethodSettings", _Objective, _tables(), section="method", read=_read()
    )


@dataclass(frozen=True, slots=True)
class Config(Strict):
    """A whole run; every field has a default."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    method: MethodSettings = field(default_factory=MethodSettings)
    optim: OptimConfig = field(default_factory=OptimConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    run: RunConfig = field(default_factory=RunConfig)
    trl: dict[str, Any] = field(default_factory=dict)
    """Further options of TRL's GRPOConfig; see settings/trl_options.py."""
    ablate: tuple[str, ...] = ()
    """Parts that are switched off; `assay train --explain` lists those that are on."""

    @property
    def samples_per_step(self) -> int:
        """B = P * G, over all processes."""
        return self.rollout.prompts_per_step * self.rollout.group_size

    @property
    def updates_per_rollout(self) -> int:
        """Optimizer steps that one rollout feeds."""
        return self.optim.mini_batches * self.optim.epochs


def _to_stderr(line: str) -> None:
    print(f"note: {line}", file=sys.stderr)


def load_run(run: RunPaths, overrides: Iterable[str] = ()) -> Config:
    """A run's settings, with the model that it trained, where there is one; see `load`."""
    own = [f"model.name={run.model}"] if run.model.is_dir() else []
    return load(run.config, [*own, *overrides])


def load(
    path: Path,
    overrides: Iterable[str] = (),
    *,
    say: Callable[[str], None] = _to_stderr,
    saved: bool = False,
) -> Config:
    """Reads a TOML file, or a preset by its name, and applies overrides.

    An override is `section.key=value`, its value TOML, or bare text for a text field; short forms
    are in `overrides`. `say` gets a line for each old name, and for each setting that is left out
    (see `reading`). `saved`: the file is that of a run that goes on, or the settings are for
    several modes, and what is not read is left out.

    Raises:
        ConfigError: the file cannot be read, a setting is unknown, of a wrong type, out of range
            or not read, or a part cannot be switched off.
    """
    layers: list[Collection[str]] = []

    def above(file: Path) -> Mapping[str, Any]:
        layers.append(flat(tree := _on_disk(file)))
        return tree

    tree, rest = laid_over(_on_disk(path), overrides, above)
    return build(tree, rest, origin=str(path), say=say, saved=saved, layers=layers)


def reload(path: Path, overrides: Iterable[str] = ()) -> Config:
    """The settings of a run that goes on; raises as `load`."""
    return load(path, overrides, saved=True)


def _on_disk(path: Path) -> dict[str, Any]:
    return toml_config.read(presets.find(path), examples=presets.known())


def build(
    tree: Mapping[str, Any],
    overrides: Iterable[str] = (),
    *,
    origin: str,
    say: Callable[[str], None] = _to_stderr,
    saved: bool = False,
    layers: Iterable[Collection[str]] = (),
) -> Config:
    """A Config from nested tables and overrides; `origin` names their source in messages.

    `layers` are keys of `tree` that lie over the rest of it, the highest last (see `reading`).

    Raises:
        ConfigError: as for `load`.
    """
    given = expand(overrides)
    tree, texts = current(tree, given.texts, origin=origin, say=say)
    try:
        texts = with_source(tree, texts)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    config = toml_config.build(Config, tree, texts, origin=origin)
    if not _given(_CORRECTION, tree, texts):
        config = with_correction(config)
    config = ablated(config, config.ablate, written=flat(tree))
    config = ablated(config, given.ablate)
    try:
        # The settings of a part that `ablate` took out remain beside its switch.
        config = settled(
            config,
            layers=[*layers, given_by(texts)],
            exempt=lambda key: bool(config.ablate) and key.startswith(_PARTS),
            lenient=saved,
            say=lambda line: say(f"{origin}: {line}"),
        )
        broken = rules.problem(config)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    if broken:
        raise ConfigError(f"{origin}: {broken}")
    return config


_PARTS = ("method.", "rollout.", "data.selection.")
"""Where the switches of parts are."""
_CORRECTION = "method.loss.importance_correction"


def _given(key: str, tree: Mapping[str, Any], texts: Iterable[str]) -> bool:
    if key in flat(tree):
        return True
    above, _, last = key.rpartition(".")
    for name, _, value in (text.partition("=") for text in texts):
        around = f"{above}.".startswith(f"{name.strip()}.")
        if name.strip() == key or (around and last in value):
            return True
    return False


def with_correction(config: Config) -> Config:
    """The config with its engine's importance correction, where the sampler knows probabilities."""
    engine = declared(Backend.group).get(config.rollout.backend)
    if engine is None or not config.rollout.tells_logps:
        return config
    loss = replace(config.method.loss, importance_correction=engine.correction)
    return replace(config, method=replace(config.method, loss=loss))


def current(
    tree: Mapping[str, Any],
    overrides: Iterable[str] = (),
    *,
    origin: str,
    say: Callable[[str], None] = _to_stderr,
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Tables and overrides under today's names; call it before merging tables.

    Raises:
        ConfigError: a key is given under both names.
    """
    try:
        found, texts, met = aliases.renamed(tree, overrides)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    for line in met:
        say(f"{origin}: {line}")
    return found, texts


def to_toml(config: Config) -> str:
    """The whole config as TOML, which `load` reads back to an equal Config."""
    return toml_config.to_toml(
        config, "The complete settings of this run. `assay train` reads this file."
    )
