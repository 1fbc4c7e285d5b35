"""The selector of a run, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from assay.rpc.errors import ConfigError
from assay.trainer.data.problems import Problem
from assay.trainer.methods.hints.hints import Hinted
from assay.trainer.selection.bayes import ByBelief
from assay.trainer.selection.domains import Curriculum, Dads, Dump
from assay.trainer.selection.orders import Uniform
from assay.trainer.selection.settings import SelectionConfig
from assay.trainer.selection.subsets import HardFocus, PrePpo, limr
from assay.trainer.selection.types import Selector
from assay.trainer.selection.variance import VarianceAware

Make = Callable[[SelectionConfig, Sequence[Problem], int], Selector]


def _tasks(problems: Sequence[Problem]) -> list[str]:
    return [problem.task for problem in problems]


def _several(name: str, problems: Sequence[Problem]) -> list[str]:
    """The tasks of the problems, at least two.

    Raises:
        ConfigError: there is one, or rows do not say.
    """
    labels = _tasks(problems)
    if len(set(labels)) < 2:
        raise ConfigError(
            f'data.selection.name = "{name}" chooses between tasks, and all rows have the task '
            f"{labels[0]!r}; give rows a column `task`"
        )
    return labels


def _curriculum(config: SelectionConfig, problems: Sequence[Problem], seed: int) -> Selector:
    labels, first = _tasks(problems), config.curriculum.tasks
    absent = [task for task in first if task not in labels]
    if absent or all(label in first for label in labels):
        raise ConfigError(
            f"data.selection.curriculum.tasks = {list(first)}: "
            + (f"no row has the task {absent[0]!r}" if absent else "no row has another task")
            + f"; rows have {', '.join(map(repr, sorted(set(labels))[:8]))}"
        )
    return Curriculum(config.curriculum, labels, seed)


SELECTORS: Mapping[str, Make] = {
    "mopps": lambda c, problems, seed: ByBelief(c.mopps, len(problems), seed),
    "vade": lambda c, problems, seed: ByBelief(c.vade, len(problems), seed),
    "dump": lambda c, problems, seed: Dump(c.dump, _several("dump", problems), seed),
    "dads": lambda c, problems, seed: Dads(c.dads, _several("dads", problems), seed),
    "curriculum": _curriculum,
    "hard-focus": lambda c, problems, seed: HardFocus(c.hard_focus, len(problems), seed),
    "vas": lambda c, problems, seed: VarianceAware(c.vas, len(problems), seed),
    "pre-ppo": lambda c, problems, seed: PrePpo(c.pre_ppo, _tasks(problems), seed),
    "limr": lambda c, problems, seed: limr(c.limr, [p.question for p in problems], seed),
}


def make_selector(
    config: SelectionConfig, problems: Sequence[Problem], seed: int
) -> Selector | None:
    """What chooses; None for `uniform` without hints, where every problem comes in turn.

    Raises:
        ConfigError: the problems lack what the selector needs.
    """
    make = SELECTORS.get(config.name)
    made = make(config, problems, seed) if make and problems else None
    if not config.hints.enabled or not problems:
        return made
    inner = made or Uniform(range(len(problems)), seed)
    return Hinted(inner, [bool(p.solution) for p in problems], len(config.hints.shares))
