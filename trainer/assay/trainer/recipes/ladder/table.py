"""The comparison of the rungs: for programs, for people, and on the screen. Pure."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from assay.trainer.recipes.ladder.outcome import METRICS, TRAILING, RunOutcome
from assay.trainer.recipes.ladder.plan import LadderPlan
from assay.trainer.recipes.ladder.stats import SeedMean, difference, estimate
from assay.trainer.records.report import markdown_table
from assay.trainer.settings.registry import parts, parts_on

ACCURACY = "accuracy"
_COMPARED = (ACCURACY, "reward")
Outcomes = Mapping[str, Mapping[int, RunOutcome]]
"""Rung -> seed -> outcome; finished runs only."""


@dataclass(frozen=True, slots=True)
class ThresholdSteps:
    """Steps to the threshold."""

    steps: tuple[int, ...]  # of the runs that got there, rising
    runs: int  # all finished ones


@dataclass(frozen=True, slots=True)
class RungSummary:
    """One rung over its seeds."""

    name: str  # of the rung
    ablate: tuple[str, ...]  # the parts that are off
    parts: tuple[str, ...]  # the parts that are on
    seeds: tuple[int, ...]  # finished ones
    # held-out accuracy and the metrics of the last steps; None where not measured
    estimates: Mapping[str, SeedMean | None]
    # of accuracy and reward from the rung that this one is compared with; None for that one itself,
    # or where no seed is in both
    changes: Mapping[str, SeedMean | None]
    reached: ThresholdSteps | None  # the threshold, if the ladder has one


def summarise(plan: LadderPlan, outcomes: Outcomes) -> list[RungSummary]:
    """Every rung of a plan, from the lowest up."""
    summaries = []
    for number, rung in enumerate(plan.rungs):
        runs = outcomes.get(rung.name, {})
        other = plan.rungs[0 if plan.against == "first" else number - 1].name if number else None
        theirs = outcomes.get(other, {}) if other is not None else {}
        any_config = next(iter(rung.configs.values()))
        summaries.append(
            RungSummary(
                name=rung.name,
                ablate=rung.ablate,
                parts=tuple(part.name for part in parts_on(any_config)),
                seeds=tuple(sorted(runs)),
                estimates={
                    metric: estimate(list(_values(runs, metric).values()))
                    for metric in (ACCURACY, *METRICS)
                },
                changes={
                    metric: difference(_values(runs, metric), _values(theirs, metric))
                    for metric in _COMPARED
                },
                reached=_reached(plan, runs),
            )
        )
    return summaries


def _values(runs: Mapping[int, RunOutcome], metric: str) -> dict[int, float]:
    found = {
        seed: run.accuracy if metric == ACCURACY else run.final(metric)
        for seed, run in sorted(runs.items())
    }
    return {seed: value for seed, value in found.items() if value is not None}


def _reached(plan: LadderPlan, runs: Mapping[int, RunOutcome]) -> ThresholdSteps | None:
    threshold = plan.threshold
    if threshold is None:
        return None
    steps = (run.steps_to(threshold.metric, threshold.value) for run in runs.values())
    return ThresholdSteps(tuple(sorted(step for step in steps if step is not None)), len(runs))


def to_json(plan: LadderPlan, summaries: Sequence[RungSummary]) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "name": plan.name,
        "base": plan.base,
        "seeds": list(plan.seeds),
        "against": plan.against,
        "threshold": None if plan.threshold is None else dataclasses.asdict(plan.threshold),
        "rungs": [dataclasses.asdict(summary) for summary in summaries],
    }


@dataclass(frozen=True, slots=True)
class _Column:
    """One figure of the table: its heading and format."""

    title: str
    metric: str
    form: str
    scale: float = 1.0
    change: bool = False
    on_screen: bool = True


_COLUMNS = (
    _Column("held-out, %", ACCURACY, ".1f", 100.0),
    _Column("change, points", ACCURACY, "+.1f", 100.0, change=True),
    _Column("reward", "reward", ".3f"),
    _Column("change", "reward", "+.3f", change=True, on_screen=False),
    _Column("entropy", "entropy", ".3f", on_screen=False),
    _Column("length", "response_length", ".1f", on_screen=False),
)


def _figure(summary: RungSummary, column: _Column) -> SeedMean | None:
    return (summary.changes if column.change else summary.estimates)[column.metric]


def _cells(plan: LadderPlan, summary: RungSummary) -> list[str]:
    cells = [summary.name, _seeds(plan, summary)]
    cells += [_interval(_figure(summary, column), column) for column in _COLUMNS]
    if plan.threshold is not None:
        cells.append(_steps(summary.reached))
    return cells


def _seeds(plan: LadderPlan, summary: RungSummary) -> str:
    return f"{len(summary.seeds)} of {len(plan.seeds)}"


def _interval(value: SeedMean | None, column: _Column) -> str:
    """`0.512 [0.480, 0.544]`; without an interval where there is none."""
    if value is None:
        return "-"
    mean = format(column.scale * value.mean, column.form)
    if value.low is None or value.high is None:
        return mean
    ends = (format(column.scale * end, column.form) for end in (value.low, value.high))
    return f"{mean} [{', '.join(ends)}]"


def _short(value: SeedMean | None, column: _Column) -> str:
    """`0.512 ±0.032`."""
    if value is None:
        return "-"
    mean = format(column.scale * value.mean, column.form)
    if value.high is None:
        return mean
    half = column.scale * (value.high - value.mean)
    return f"{mean} ±{format(half, column.form.lstrip('+'))}"


def _steps(reached: ThresholdSteps | None) -> str:
    if reached is None or not reached.runs:
        return "-"
    if not reached.steps:
        return f"- (0 of {reached.runs})"
    median = statistics.median(reached.steps)
    return f"{median:g} ({len(reached.steps)} of {reached.runs})"


def _header(plan: LadderPlan) -> list[str]:
    titles = ["rung", "seeds", *(column.title for column in _COLUMNS)]
    if plan.threshold is not None:
        titles.append(f"steps to {plan.threshold.metric} {plan.threshold.value:g}")
    return titles


def markdown(plan: LadderPlan, summaries: Sequence[RungSummary]) -> str:
    """The comparison for people."""
    lines = [
        f"# Ladder {plan.name}",
        "",
        f"{plan.base}, seeds {', '.join(map(str, plan.seeds))}. Each rung against {_other(plan)}.",
        "",
        *markdown_table(_header(plan), (_cells(plan, summary) for summary in summaries)),
        "",
        *_legend(plan),
        "",
        "![curves](ladder.png)",
        "",
        "## Parts",
        "",
        *_parts_table(summaries),
    ]
    return "\n".join(lines)


def _other(plan: LadderPlan) -> str:
    return "the first" if plan.against == "first" else "the one before it"


def _legend(plan: LadderPlan) -> list[str]:
    what = (
        "Means over seeds, with 95 % t intervals where there are two seeds or more: what other "
        "seeds would give on the same data. Changes are paired by seed. Reward, entropy and length "
        "are means over the last tenth of the steps."
    )
    lines = [what]
    if plan.threshold is not None:
        lines.append(
            f"Steps to the threshold: where the mean of {TRAILING} steps first reaches it; the "
            "median over the runs that get there, and how many do."
        )
    return lines


def _parts_table(summaries: Sequence[RungSummary]) -> list[str]:
    """Parts by rungs; only parts that some rung has."""
    names = [part.name for part in parts() if any(part.name in s.parts for s in summaries)]
    rows = ([name, *("x" if name in s.parts else "" for s in summaries)] for name in names)
    return markdown_table(["part", *(summary.name for summary in summaries)], rows)


def screen(plan: LadderPlan, summaries: Sequence[RungSummary]) -> Table:
    """The comparison for a terminal: the main figures, with half the interval behind each mean."""
    grid = Table(
        title=f"ladder {plan.name}: each rung against {_other(plan)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    columns = [column for column in _COLUMNS if column.on_screen]
    grid.add_column("rung", overflow="fold", min_width=14)
    titles = ["seeds", *(column.title for column in columns)]
    if plan.threshold is not None:
        titles.append(_header(plan)[-1].replace("steps to ", "steps to\n"))
    for title in titles:
        grid.add_column(title.replace(", ", ",\n"), justify="right", no_wrap=True)
    for summary in summaries:
        cells = [summary.name, _seeds(plan, summary).replace(" of ", "/")]
        cells += [_short(_figure(summary, column), column) for column in columns]
        if plan.threshold is not None:
            cells.append(_steps(summary.reached))
        grid.add_row(*cells)
    return grid
