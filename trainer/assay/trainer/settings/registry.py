"""The registry of plug-ins: what installed packages declare as entry points.

group               what
assay.methods       TrainingMethod: a mechanism with a table of its own under [method]
assay.losses        Loss: what is minimised
assay.estimators    Estimator: how rewards become advantages
assay.engines       Backend: an engine of generation
assay.selectors     Selection: a way to choose the next problem
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.trainer.settings.method import (
    PLAIN_ROWS,
    Backend,
    Estimator,
    Loss,
    RowNeeds,
    Selection,
    TrainingMethod,
)
from assay.trainer.settings.part import KINDS, Part

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config
    from assay.trainer.settings.objective import AdvantageConfig, LossConfig
    from assay.trainer.settings.sections import RolloutConfig
    from assay.trainer.settings.selecting import SelectionConfig

UNIFORM = "uniform"
"""The value of `data.selection.name` that names no plug-in."""
K = TypeVar("K", Loss, Estimator, Backend, Selection)


@functools.cache
def declared(group: str) -> Mapping[str, Any]:
    """Declarations of a group, by name.

    Raises:
        ConfigError: a declaration cannot be imported or has another type, or two share a name.
    """
    found: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for point in entry_points(group=group):
        whose = point.dist.name if point.dist else "a package"
        try:
            value = point.load()
        except Exception as error:  # whatever a package does when it is imported
            raise ConfigError(
                f"{point.name} of {whose} ({group}: {point.value}) cannot be loaded: "
                f"{type(error).__name__}: {error}; mend or uninstall {whose}"
            ) from error
        if getattr(value, "group", None) != group:
            raise ConfigError(
                f"{point.name} of {whose} ({group}: {point.value}) is a {type(value).__name__}, "
                f"and no declaration of that group; mend or uninstall {whose}"
            )
        if value.name in found:
            raise ConfigError(
                f"{value.name} is declared twice ({group}), by {owners[value.name]} and by {whose}"
                ": uninstall one of them"
            )
        found[value.name], owners[value.name] = value, whose
    return found


@functools.cache
def every(kind: type[K]) -> tuple[K, ...]:
    """All declarations of a kind, sorted by name."""
    found = declared(kind.group)
    return tuple(found[name] for name in sorted(found))


def chosen(kind: type[K], name: str, key: str, *, also: tuple[str, ...] = ()) -> K:
    """The declaration that a setting names; `also` are values that need none.

    Raises:
        ConfigError: nothing of that name is installed; the message lists what is.
    """
    known: Mapping[str, Any] = declared(kind.group)
    if name not in known:
        raise ConfigError(
            f'{key} = "{name}" is not known{did_you_mean(name, (*known, *also))}; known here: '
            f"{', '.join(sorted((*known, *also)))}"
        )
    found: K = known[name]
    return found


def resolved(reference: str) -> Any:
    """Imports the object `package.module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@functools.cache
def methods() -> tuple[TrainingMethod, ...]:
    """All methods, by rank."""
    return tuple(sorted(declared(TrainingMethod.group).values(), key=lambda m: (m.rank, m.name)))


def loss_of(config: LossConfig) -> Loss:
    """The configured surrogate; raises ConfigError where it is not installed."""
    return chosen(Loss, config.objective, "method.loss.objective")


def estimator_of(config: AdvantageConfig) -> Estimator:
    """The configured estimator; raises ConfigError where it is not installed."""
    return chosen(Estimator, config.estimator, "method.advantage.estimator")


def engine_of(config: RolloutConfig) -> Backend:
    """The configured engine; raises ConfigError where it is not installed."""
    return chosen(Backend, config.backend, "rollout.backend")


def selection_of(config: SelectionConfig) -> Selection | None:
    """The configured way to choose problems, None for `uniform`; raises ConfigError."""
    if config.name == UNIFORM:
        return None
    return chosen(Selection, config.name, "data.selection.name", also=(UNIFORM,))


def methods_on(config: Config) -> tuple[TrainingMethod, ...]:
    """Active methods, by rank."""
    return tuple(method for method in methods() if method.is_on(config))


def row_needs(config: Config) -> RowNeeds:
    """What rows must have; raises ConfigError where a method cannot say."""
    told = (method.rows(config) for method in methods_on(config))
    return next(filter(None, told), PLAIN_ROWS)


@functools.cache
def parts() -> tuple[Part, ...]:
    """All parts, in the order of a step."""
    found = [
        *(one.part for one in every(Estimator)),
        *(part for method in methods() for part in method.parts),
        *(one.part for one in every(Selection)),
        *(one.part for one in every(Loss) if one.part),
    ]
    return tuple(part for kind in KINDS for part in found if part.kind == kind)


@functools.cache
def part_names() -> Mapping[str, Part]:
    """Parts by name."""
    return {part.name: part for part in parts()}


def parts_on(config: Config) -> tuple[Part, ...]:
    """Active parts, in the order of a step."""
    return tuple(part for part in parts() if part.is_on(config))
