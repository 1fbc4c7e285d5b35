"""Weights of a mixture from pilot runs: MoDoMoDo (arXiv 2505.24871).

Runs with other weights of the same sources were trained and evaluated; a surrogate of their score
is fitted to the weights, and its maximum is what to train with. The surrogate is quadratic where
the runs suffice for that, else linear. How well it foretells a run that it was not fitted to is
told, beside how well the mean of the others does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from rich.table import Table

from assay.kit.errors import ConfigError
from assay.trainer.algos.mixtures import Array, Form, best_mixture, fit_mixture, terms
from assay.trainer.records.comparing import HELD_OUT, EvaluatedRun
from assay.trainer.records.report import grid


@dataclass(frozen=True, slots=True)
class Pilot:
    """A run.

    Attributes:
        weights: of its sources, by task; they sum to 1.
        score: mean pass@1 of the suites.
    """

    name: str
    weights: dict[str, float]
    score: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to train with.

    Attributes:
        tasks: the sources.
        best: their weights.
        expected: the surrogate's score of them.
        error: root of the mean squared error of the surrogate for runs that it was not fitted to.
        spread: the same of the mean of the other runs.
    """

    pilots: tuple[Pilot, ...]
    tasks: tuple[str, ...]
    form: Form
    best: tuple[float, ...]
    expected: float
    error: float
    spread: float

    @property
    def lines(self) -> list[str]:
        """What to do, and what it rests on."""
        told = ", ".join(f"{t} {w:.3f}" for t, w in zip(self.tasks, self.best, strict=True))
        top = max(self.pilots, key=lambda pilot: pilot.score)
        return [
            f"best weights by a {self.form} surrogate: {told}",
            f"expected score {self.expected:.3f}; the best run, {top.name}, has {top.score:.3f}",
            (
                f"error of the surrogate for a run left out {self.error:.3f}, of the others' mean "
                f"{self.spread:.3f}"
                + ("" if self.error < self.spread else ": the weights foretell nothing here")
            ),
        ]

    def table(self) -> Table:
        """The runs, best first."""
        rows = [
            [one.name, *(f"{one.weights[task]:.3f}" for task in self.tasks), f"{one.score:.3f}"]
            for one in sorted(self.pilots, key=lambda pilot: -pilot.score)
        ]
        return grid("runs by score", (*self.tasks, "score"), rows)

    def to_json(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "runs": [
                {"name": one.name, "weights": one.weights, "score": one.score}
                for one in self.pilots
            ],
            "form": self.form,
            "weights": dict(zip(self.tasks, self.best, strict=True)),
            "expected": self.expected,
            "error": self.error,
            "error_of_mean": self.spread,
        }


def pilot(run: EvaluatedRun, suites: Sequence[str]) -> Pilot:
    """A run's weights and its score on `suites`, by default all that it has.

    Raises:
        ConfigError: it was not trained on a mixture, or lacks a suite.
    """
    sources = run.settings.get("data.mixture")
    if not sources:
        raise ConfigError(
            f"{run.name}: its settings have no data.mixture; give runs that trained on one"
        )
    weights = {str(one["task"]): float(one.get("weight", 1.0)) for one in sources}
    whole = sum(weights.values())
    names = list(suites) or sorted(run.suites)
    for name in names:
        if name not in run.suites:
            known = ", ".join(sorted(run.suites)) or "none"
            raise ConfigError(
                f"{run.name} was not evaluated on {name!r}; it was on: {known} ({HELD_OUT!r} are "
                "its own prompts)"
            )
    scores = [run.suites[name].pass_at(1).value for name in names]
    judged = [score for score in scores if score is not None]
    if not judged or len(judged) < len(scores):
        raise ConfigError(f"{run.name}: nothing was judged of {', '.join(names) or 'any suite'}")
    shares = {task: weight / whole for task, weight in weights.items()}
    return Pilot(run.name, shares, fmean(judged))


def advise(pilots: Sequence[Pilot], *, form: Form | None = None) -> Advice:
    """The best weights by what the runs show.

    Raises:
        ConfigError: the runs have other sources, or are too few.
    """
    tasks = tuple(pilots[0].weights) if pilots else ()
    for one in pilots:
        if set(one.weights) != set(tasks):
            raise ConfigError(
                f"{one.name} has the sources {', '.join(one.weights)}, and {pilots[0].name} has "
                f"{', '.join(tasks)}; a source that is left out has a small weight"
            )
    kind: Form = form or ("quadratic" if len(pilots) > terms(len(tasks), "quadratic") else "linear")
    if len(tasks) < 2 or len(pilots) <= terms(len(tasks), kind):
        raise ConfigError(
            f"{len(pilots)} runs of {len(tasks)} sources are too few: a {kind} surrogate needs two "
            f"sources, and more than {terms(len(tasks), kind)} runs"
        )
    weights_ND = np.array([[one.weights[task] for task in tasks] for one in pilots])
    scores_N = np.array([one.score for one in pilots])
    surrogate = fit_mixture(weights_ND, scores_N, form=kind)
    best_D = best_mixture(surrogate)
    missed_N = _left_out(weights_ND, scores_N, kind)
    others_N = (scores_N.sum() - scores_N) / (len(scores_N) - 1)
    return Advice(
        tuple(pilots),
        tasks,
        kind,
        tuple(best_D.tolist()),
        float(surrogate.of(best_D[None])[0]),
        float(np.sqrt(np.mean(missed_N**2))),
        float(np.sqrt(np.mean((scores_N - others_N) ** 2))),
    )


def _left_out(weights_ND: Array, scores_N: Array, form: Form) -> Array:
    """What the surrogate of the other runs misses of each run's score."""
    missed = []
    for n in range(len(scores_N)):
        kept = np.arange(len(scores_N)) != n
        other = fit_mixture(weights_ND[kept], scores_N[kept], form=form)
        missed.append(scores_N[n] - other.of(weights_ND[n : n + 1])[0])
    return np.array(missed)
