"""The selector of a run, by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problem
from assay.trainer.selection import subsets
from assay.trainer.selection.bayes import ByBelief
from assay.trainer.selection.declared import (
    CurriculumConfig,
    DadsConfig,
    DumpConfig,
    LimrConfig,
    PrePpoConfig,
    RecapConfig,
)
from assay.trainer.selection.domains import Curriculum, Dads, Dump, Recap
from assay.trainer.selection.subsets import HardFocus, PrePpo
from assay.trainer.selection.types import Selector
from assay.trainer.selection.variance import VarianceAware
from assay.trainer.settings.registry import resolved, selection_of
from assay.trainer.settings.selecting import SelectionConfig

Make = Callable[[Any, Sequence[Problem], int], Selector]


def _tasks(problems: Sequence[Problem]) -> list[str]:
    return [problem.task for problem in problems]


def _several(name: str, problems: Sequence[Problem]) -> list[str]:
    """The tasks of the problems, at least two.

    Raises:
        ConfigError: there is one, or rows name none.
    """
    labels = _tasks(problems)
    if len(set(labels)) < 2:
        raise ConfigError(
            f'data.selection.name = "{name}" chooses between tasks, and all rows have the task '
            f"{labels[0]!r}; give rows a column `task`"
        )
    return labels


def curriculum(config: CurriculumConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See Curriculum. Raises ConfigError: no row has one of the tasks, or none has another."""
    labels, first = _tasks(problems), config.tasks
    absent = [task for task in first if task not in labels]
    if absent or all(label in first for label in labels):
        raise ConfigError(
            f"data.selection.curriculum.tasks = {list(first)}: "
            + (f"no row has the task {absent[0]!r}" if absent else "no row has another task")
            + f"; rows have {', '.join(map(repr, sorted(set(labels))[:8]))}"
        )
    return Curriculum(config, labels, seed)


def dump(config: DumpConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See Dump; raises ConfigError where all rows have one task."""
    return Dump(config, _several("dump", problems), seed)


def dads(config: DadsConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See Dads; raises ConfigError where all rows have one task."""
    return Dads(config, _several("dads", problems), seed)


def recap(config: RecapConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See Recap; raises ConfigError where all rows have one task."""
    return Recap(config, _several("recap", problems), seed)


def pre_ppo(config: PrePpoConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See PrePpo."""
    return PrePpo(config, _tasks(problems), seed)


def limr(config: LimrConfig, problems: Sequence[Problem], seed: int) -> Selector:
    """See subsets.limr; raises ConfigError where the records do not fit the problems."""
    return subsets.limr(config, [problem.question for problem in problems], seed)


def _by_place(kind: Callable[[Any, int, int], Selector]) -> Make:
    return lambda config, problems, seed: kind(config, len(problems), seed)


by_belief, hard_focus, vas = map(_by_place, (ByBelief, HardFocus, VarianceAware))


def make_selector(
    config: SelectionConfig, problems: Sequence[Problem], seed: int
) -> Selector | None:
    """The selector; None for `uniform`, where every problem comes in turn.

    Raises:
        ConfigError: the problems lack what the selector needs.
    """
    kind = selection_of(config)
    if kind is None or not problems:
        return None
    made: Selector = resolved(kind.make)(kind.own(config), problems, seed)
    return made
