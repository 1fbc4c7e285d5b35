"""The curves of all rungs as one PNG: a panel a metric, a colour a rung.

A line is the smoothed mean over seeds, its band the range of the seeds. Colours are Okabe and
Ito's, for colour-blind readers; line styles change with them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from assay.trainer.recipes.ladder.outcome import RunOutcome, series
from assay.trainer.recipes.ladder.plan import LadderPlan
from assay.trainer.recipes.ladder.table import Outcomes
from assay.trainer.records.plots import INK, MUTED, frame, new_figure, smooth

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7A5195")
_STYLES = ("-", "--", "-.", ":")
_PANELS = (
    ("reward", "reward, mean of judged samples", False),
    ("correct", "judged correct while training", True),
    ("entropy", "entropy, nats per token", False),
    ("response_length", "response length, tokens", False),
)


def draw(plan: LadderPlan, outcomes: Outcomes, path: Path) -> None:
    """Draws the ladder."""
    seeds = f"seed {plan.seeds[0]}" if len(plan.seeds) == 1 else f"{len(plan.seeds)} seeds"
    figure = new_figure(f"ladder {plan.name}, {seeds}", 14, 8.4)
    cells = figure.subplots(2, 3)
    for (metric, title, percent), axes in zip(
        _PANELS, (cells[0, 0], cells[0, 1], cells[1, 0], cells[1, 1]), strict=True
    ):
        frame(axes, title, pad=6)
        for number, rung in enumerate(plan.rungs):
            _curve(axes, outcomes.get(rung.name, {}), metric, number)
        axes.set_xlabel("step", color=MUTED, fontsize=9)
        _finish(axes, percent=percent)
    _accuracies(cells[0, 2], plan, outcomes)
    _legend(cells[1, 2], plan, outcomes)
    figure.savefig(path)


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _style(number: int) -> str:
    """Solid for the first four rungs, then dashed, and so on."""
    return _STYLES[(number // 4) % len(_STYLES)]


def _curve(axes: Axes, runs: Mapping[int, RunOutcome], metric: str, number: int) -> None:
    """A rung in a panel: the mean over seeds at each step, and the range."""
    lines = [dict(_smoothed(run, metric)) for _, run in sorted(runs.items())]
    steps = sorted({step for line in lines for step in line})
    if not steps:
        return
    at = [[line[step] for line in lines if step in line] for step in steps]
    if len(lines) > 1:
        low, high = list(map(min, at)), list(map(max, at))
        axes.fill_between(steps, low, high, color=_colour(number), alpha=0.13, linewidth=0)
    means, style = list(map(statistics.fmean, at)), _style(number)
    axes.plot(steps, means, color=_colour(number), linestyle=style, linewidth=1.9)


def _smoothed(run: RunOutcome, metric: str) -> list[tuple[int, float]]:
    points = series(run.rows, metric)
    width = max(1, len(points) // 25) if len(points) >= 8 else 0
    values = smooth([value for _, value in points], width)
    return [(step, value) for (step, _), value in zip(points, values, strict=True)]


def _finish(axes: Axes, *, percent: bool) -> None:
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if not axes.lines:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=MUTED)
        axes.set_yticks([])


def _accuracies(axes: Axes, plan: LadderPlan, outcomes: Outcomes) -> None:
    """Held-out accuracy after training: a dot a seed, a bar at the mean."""
    frame(axes, "held-out accuracy after training, a dot a seed", pad=6)
    for number, rung in enumerate(plan.rungs):
        found = [
            run.accuracy
            for _, run in sorted(outcomes.get(rung.name, {}).items())
            if run.accuracy is not None
        ]
        if found:
            colour = _colour(number)
            axes.plot([number] * len(found), found, "o", color=colour, markersize=6, alpha=0.75)
            mean = statistics.fmean(found)
            axes.plot([number - 0.3, number + 0.3], [mean, mean], color=colour, linewidth=2.4)
    axes.set_xlim(-0.6, len(plan.rungs) - 0.4)
    axes.set_xticks(range(len(plan.rungs)), [str(n + 1) for n in range(len(plan.rungs))])
    axes.set_xlabel("rung", color=MUTED, fontsize=9)
    _finish(axes, percent=True)


def _legend(axes: Axes, plan: LadderPlan, outcomes: Outcomes) -> None:
    axes.axis("off")
    for number, rung in enumerate(plan.rungs):
        missing = "" if outcomes.get(rung.name) else "  (no finished run)"
        label, style = f"{number + 1}  {rung.name}{missing}", _style(number)
        axes.plot([], [], color=_colour(number), linestyle=style, linewidth=2.4, label=label)
    axes.legend(
        title="rungs; the band: least and most of the seeds", title_fontsize=9, fontsize=10,
        loc="upper left", alignment="left", frameon=False, labelcolor=INK, handlelength=3.2,
        labelspacing=0.7,
    )  # fmt: skip
