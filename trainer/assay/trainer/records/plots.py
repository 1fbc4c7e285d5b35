"""The curves of a run as one PNG: a panel for each thing that was measured.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish. A faint line shows
the points, a strong one their moving mean, named at its end; gaps are steps without the number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator

Rows = Sequence[Mapping[str, Any]]
Scale = Literal["percent", "zero", "free"]

INK = "#1f2933"
MUTED = "#66727f"
BLUE, ORANGE, GREEN, VERMILION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, GREY = "#cc79a7", "#56b4e9", "#8a949e"
_REASONS = (VERMILION, ORANGE, BLUE, PURPLE, SKY)
_SMOOTH_FROM = 25
"""Fewer points than that are shown as they are."""
_BARS = 50


@dataclass(frozen=True, slots=True)
class Curve:
    """One line."""

    key: str  # a column; "faults/REASON" is a number within one
    label: str  # its name in the panel
    colour: str  # of the line
    dashed: bool = False  # so that a line below it shows
    optional: bool = False  # left out where all numbers are 0, as with one update a step


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves on one scale."""

    title: str  # what it shows, with the unit
    curves: tuple[Curve, ...]  # those that were measured are drawn
    scale: Scale = "free"  # ratios from 0 to 1 as percent; from 0; or as the numbers lie
    # lines; areas on top of one another; sums of several steps as bars
    kind: Literal["lines", "areas", "bars"] = "lines"
    reference: float | None = None  # a line to compare with


END = "at the end"
PANELS = (
    Panel(
        "reward, mean of judged responses",
        (Curve("reward", "reward", BLUE), Curve("shaped_reward", "with penalties", ORANGE)),
    ),
    Panel("judged correct", (Curve("correct", END, GREEN),), "percent"),
    Panel(
        "reward and gold reward, where both judged",
        (Curve("gold_proxy", "verifier", BLUE), Curve("gold_reward", "gold", ORANGE),
         Curve("gold_gap", "gap", VERMILION, dashed=True)),
        reference=0.0,
    ),
    Panel(
        "verdicts that are true, of solutions",
        (Curve("verifier_correct_recall", "right", GREEN),
         Curve("verifier_wrong_recall", "wrong", VERMILION),
         Curve("verifier_f1", "harmonic mean", BLUE, dashed=True)),
        "percent",
    ),
    Panel(
        "groups with a signal",
        (Curve("keep_rate", "of those drawn", BLUE),
         Curve("signal_ratio", "in the batch", ORANGE, dashed=True)),
        "percent",
    ),
    Panel(
        "response length, tokens",
        (Curve("response_length", "mean", BLUE),
         Curve("response_length_p95", "95 % are below", SKY)),
        "zero",
    ),
    Panel(
        "responses cut, or without a judgement",
        (Curve("truncated", "cut at the limit", ORANGE),
         Curve("fault_ratio", "not judged", VERMILION)),
        "percent",
    ),
    Panel("entropy, nats per token", (Curve("entropy", END, PURPLE),), "zero"),
    Panel(
        "tokens clipped",
        (Curve("clip_low", "below", BLUE, optional=True),
         Curve("clip_high", "above", VERMILION, optional=True),
         Curve("dual_clip", "dual", GREY, optional=True)),
        "percent",
    ),
    Panel(
        "KL, nats per token",
        (Curve("kl", "to the initial policy", BLUE),
         Curve("approx_kl", "of a step's updates", ORANGE, optional=True)),
        "zero",
    ),
    Panel("gradient norm", (Curve("grad_norm", END, GREY),), "zero"),
    Panel(
        "explained variance of returns", (Curve("explained_variance", END, GREEN),), reference=0.0,
    ),
    Panel("value loss", (Curve("value_loss", END, VERMILION),), "zero"),
    Panel(
        "mean values and returns",
        (Curve("value_mean", "value", BLUE), Curve("return_mean", "return", ORANGE, dashed=True)),
    ),
    Panel("LM loss on correct responses", (Curve("lm_loss", END, PURPLE),), "zero"),
    Panel("sampler to trainer, nats per token", (Curve("drift_mean", END, VERMILION),), "zero"),
    Panel("generated tokens per second", (Curve("tokens_per_s", END, BLUE),), "zero"),
    Panel(
        "seconds per step",
        (Curve("generate_s", "generate", BLUE), Curve("score_wait_s", "wait", ORANGE),
         Curve("train_s", "train", GREEN)),
        "zero", "areas",
    ),
)  # fmt: skip
_PRETRAINING = Panel(
    "value pre-training: explained variance",
    (Curve("explained_variance", END, GREEN),),
    reference=0.0,
)


def smooth(values: Sequence[float], width: int) -> list[float]:
    """Centred moving mean over `width` points on each side; at the ends over what is there."""
    means = []
    for n in range(len(values)):
        window = values[max(0, n - width) : n + width + 1]
        means.append(sum(window) / len(window))
    return means


def panels(rows: Rows, among: Sequence[Panel] = PANELS) -> list[Panel]:
    """Panels and curves that were measured."""
    found = []
    for panel in (*among, *_fault_panel(rows)):
        curves = tuple(curve for curve in panel.curves if _is_measured(curve, rows))
        if curves:
            found.append(replace(panel, curves=curves))
    return found


def _is_measured(curve: Curve, rows: Rows) -> bool:
    values = [value for row in rows if (value := _value(row, curve.key)) is not None]
    return any(values) if curve.optional else bool(values)


def _fault_panel(rows: Rows) -> list[Panel]:
    totals: Counter[str] = Counter()
    for row in rows:
        totals.update(row.get("faults") or {})
    curves = tuple(
        Curve(f"faults/{reason}", reason.lower().replace("_", " "), colour)
        for (reason, _), colour in zip((+totals).most_common(), _REASONS, strict=False)
    )
    return [Panel("not judged", curves, "zero", "bars")] if curves else []


def _value(row: Mapping[str, Any], key: str) -> float | None:
    """A number of the row; "faults/REASON" is 0 where the step had none of these."""
    outer, _, inner = key.partition("/")
    value = row.get(outer)
    return value.get(inner, 0) if inner and isinstance(value, Mapping) else value


def draw(
    rows: Rows,
    path: Path,
    *,
    title: str,
    subtitle: str = "",
    evaluations: Rows = (),
    pretraining: Rows = (),
    among: Sequence[Panel] = PANELS,
) -> None:
    """Draws what was measured over the steps.

    Evaluations are the first panel where there are two or more, value pre-training is the last,
    over its own steps. `among` are the possible panels.
    """
    todo: list[Callable[[Axes], None]] = [
        lambda axes, panel=panel: _draw_panel(axes, panel, rows)  # type: ignore[misc]  # a default of its own
        for panel in panels(rows, among)
    ]
    told = [row for row in evaluations if row.get("accuracy") is not None]
    if len(told) > 1:
        todo.insert(0, lambda axes: _draw_evaluations(axes, told))
    if any(row.get("explained_variance") is not None for row in pretraining):
        todo.append(lambda axes: _draw_panel(axes, _PRETRAINING, pretraining))
    if not todo:
        todo.append(_draw_nothing)
    across = min(len(todo), 3 if len(todo) <= 9 else 4)
    down = math.ceil(len(todo) / across)
    heading = f"{title}\n{subtitle}" if subtitle else title
    figure = new_figure(heading, max(8.0, 4.4 * across), 0.9 + 2.7 * down)
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, draw_into in zip(grid, todo, strict=False):
        draw_into(axes)
    for axes in grid[len(todo) :]:
        axes.set_visible(False)
    for axes in grid[max(0, len(todo) - across) : len(todo)]:
        axes.set_xlabel("step", color=MUTED, fontsize=9, loc="right", labelpad=1)
    figure.savefig(path)


def _draw_nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no step was made", ha="center", color=MUTED)
    axes.set_axis_off()


def new_figure(title: str, width: float, height: float) -> Figure:
    """An empty picture with a heading, in inches."""
    figure = Figure(
        figsize=(width, height),
        dpi=110,
        layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.1),
        facecolor="white",
    )
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=13, color=INK, x=0.008, ha="left", linespacing=1.4)
    return figure


def frame(axes: Axes, title: str, *, pad: int = 20) -> None:
    """The bare frame of a panel; `pad` leaves room for a legend below the title."""
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=pad)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#cbd2d9")
    axes.tick_params(colors=MUTED, labelsize=8.5, length=3)
    axes.grid(axis="y", color="#e8ebee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))


def _legend(axes: Axes) -> None:
    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, fontsize=8.5, frameon=False,
        labelcolor=MUTED, handlelength=1.1, handletextpad=0.5, columnspacing=1.1, borderpad=0.3,
        borderaxespad=0.0,
    )  # fmt: skip
    legend.set_in_layout(False)


def _draw_panel(axes: Axes, panel: Panel, rows: Rows) -> None:
    if panel.kind == "bars":
        _draw_bars(axes, panel, rows)
    elif panel.kind == "areas":
        frame(axes, panel.title)
        _draw_areas(axes, panel, rows)
    else:
        frame(axes, panel.title)
        for curve in panel.curves:
            _draw_curve(axes, curve, panel.scale, rows)
        if panel.reference is not None:
            axes.axhline(
                panel.reference, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1
            )
        _set_scale(axes, panel, rows)
    _legend(axes)


def _draw_curve(axes: Axes, curve: Curve, scale: Scale, rows: Rows) -> None:
    points = [(row["step"], value) for row in rows if (value := _value(row, curve.key)) is not None]
    steps, values = zip(*points, strict=True)
    style = (0, (4, 1.6)) if curve.dashed else "-"
    width = max(1, len(values) // 40) if len(values) >= _SMOOTH_FROM else 0
    strong = smooth(values, width) if width else values
    if width:
        whole = {row["step"]: math.nan for row in rows} | dict(points)  # a gap stays one
        axes.plot(list(whole), list(whole.values()), color=curve.colour, alpha=0.25, linewidth=0.9)
    axes.plot(
        steps, strong, color=curve.colour, linewidth=1.9 if width else 1.6, linestyle=style,
        marker="" if width else "o", markersize=3,
        label=f"{curve.label} {_said(strong[-1], scale)}",
    )  # fmt: skip


def _draw_areas(axes: Axes, panel: Panel, rows: Rows) -> None:
    steps = [row["step"] for row in rows]
    layers = [[_value(row, curve.key) or 0.0 for row in rows] for curve in panel.curves]
    if len(steps) >= _SMOOTH_FROM:
        layers = [smooth(layer, max(1, len(steps) // 40)) for layer in layers]
    axes.stackplot(
        steps,
        layers,
        colors=[curve.colour for curve in panel.curves],
        labels=[
            f"{curve.label} {_said(layer[-1], panel.scale)}"
            for curve, layer in zip(panel.curves, layers, strict=True)
        ],
        alpha=0.82,
        linewidth=0,
    )
    axes.margins(x=0.01)
    axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, panel: Panel, rows: Rows) -> None:
    size = math.ceil(len(rows) / _BARS)
    frame(
        axes, panel.title + (f", responses in {size} steps" if size > 1 else ", responses a step")
    )
    starts = range(0, len(rows), size)
    places = [rows[start]["step"] + (size - 1) / 2 for start in starts]
    bottom = [0.0] * len(places)
    for curve in panel.curves:
        values = [_value(row, curve.key) or 0 for row in rows]
        heights = [sum(values[start : start + size]) for start in starts]
        axes.bar(
            places, heights, width=0.86 * size, bottom=bottom, color=curve.colour,
            label=f"{curve.label} {sum(values)}",
        )  # fmt: skip
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _set_scale(axes: Axes, panel: Panel, rows: Rows) -> None:
    """From 0 where that is the number's own zero; spikes of single steps may leave the panel."""
    values = sorted(
        value
        for curve in panel.curves
        for row in rows
        if (value := _value(row, curve.key)) is not None
    )
    top = values[-1]
    if len(values) >= _SMOOTH_FROM:  # one spike of a gradient must not flatten the curve
        top = min(top, 3 * values[math.ceil(0.98 * len(values)) - 1] or top)
    if panel.scale == "percent":
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{100 * value:.3g}%"))
        high = 1.02 if top > 0.5 else max(0.004, 1.2 * top)  # half is where the whole reads better
        axes.set_ylim(-0.02 * high, high)  # a line along 0 stays in sight
        return
    if panel.scale == "zero" and values[0] >= 0:
        axes.set_ylim(-0.02 * max(top, 1e-9), 1.1 * max(top, 1e-9))
    elif panel.reference is not None:
        axes.set_ylim(max(values[0], -1.0) - 0.05, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: _short(value)))


def _short(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:.3g}k"
    if value and abs(value) < 0.001:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-")
    return f"{value:.4g}"


def _said(value: float, scale: Scale) -> str:
    if scale == "percent":
        return f"{value:.0%}" if value >= 0.1 else f"{100 * value:.2g}%"
    if 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:.0f}" if 1000 <= abs(value) < 10_000 else _short(value)


def _draw_evaluations(axes: Axes, evaluations: Rows) -> None:
    frame(axes, "held-out prompts, with 95 % intervals")
    k = max(int(row.get("samples") or 1) for row in evaluations)
    names = {"accuracy": ("correct" if k == 1 else f"avg@{k}", GREEN)}
    if k > 1:
        names |= {f"maj@{k}": (f"maj@{k}", BLUE), f"pass@{k}": (f"pass@{k}", ORANGE)}
    for key, (label, colour) in names.items():
        told = [row for row in evaluations if row.get(key) is not None]
        if not told:
            continue
        steps = [row["step"] for row in told]
        low, high = ([row[f"{key}_{end}"] for row in told] for end in ("low", "high"))
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            steps, [row[key] for row in told], color=colour, linewidth=1.8, marker="o",
            markersize=3.5, label=f"{label} {_said(told[-1][key], 'percent')}",
        )  # fmt: skip
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{100 * value:.3g}%"))
    _legend(axes)
