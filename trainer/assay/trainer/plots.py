"""The curves of a run as one PNG: rewards, faults, lengths, and how far the policy moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, PercentFormatter

_INK = "#1f2933"
_MUTED = "#7b8794"


@dataclass(frozen=True, slots=True)
class Panel:
    """One curve.

    Attributes:
        key: column of metrics.jsonl.
        title: what it shows.
        colour: of the line.
        percent: the values are ratios from 0 to 1.
        floor: the axis starts at 0 where no value is below it.
    """

    key: str
    title: str
    colour: str
    percent: bool = False
    floor: bool = True


PANELS = (
    Panel("reward", "reward, mean of judged samples", "#1864ab", floor=False),
    Panel("correct", "judged correct", "#2b8a3e", percent=True),
    Panel("fault_ratio", "samples without a judgement", "#c92a2a", percent=True),
    Panel("response_length", "response length, tokens", "#862e9c"),
    Panel("kl", "KL to the initial policy, nats per token", "#d9480f"),
    Panel("entropy", "entropy, nats per token", "#0b7285"),
)


def smooth(values: Sequence[float], width: int) -> list[float]:
    """Centred moving mean; at the ends over what is there.

    Args:
        values: the curve.
        width: points on each side.
    """
    means = []
    for n in range(len(values)):
        window = values[max(0, n - width) : n + width + 1]
        means.append(sum(window) / len(window))
    return means


def draw(rows: Sequence[Mapping[str, Any]], path: Path, *, title: str, subtitle: str = "") -> None:
    """Draws every panel over the steps.

    Args:
        rows: of metrics.jsonl.
        path: of the PNG.
        title: above the curves.
        subtitle: a line below the title, such as the accuracy before and after.
    """
    figure = Figure(
        figsize=(13, 7.2),
        dpi=120,
        layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.1),
        facecolor="white",
    )
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=14, color=_INK, x=0.012, ha="left")
    if subtitle:
        figure.supxlabel(subtitle, fontsize=10.5, color=_INK, x=0.012, ha="left")
    for panel, axes in zip(PANELS, figure.subplots(2, 3, sharex=True).flat, strict=True):
        _draw_panel(axes, panel, rows)
    for axes in figure.axes[3:]:
        axes.set_xlabel("step", color=_MUTED, fontsize=9)
    figure.savefig(path)


def _draw_panel(axes: Axes, panel: Panel, rows: Sequence[Mapping[str, Any]]) -> None:
    points = [(row["step"], row[panel.key]) for row in rows if row.get(panel.key) is not None]
    axes.set_title(panel.title, loc="left", fontsize=10, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#cbd2d9")
    axes.tick_params(colors=_MUTED, labelsize=9)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    if not points:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=_MUTED)
        axes.set_yticks([])
        return
    steps, values = zip(*points, strict=True)
    width = (
        max(1, len(values) // 25) if len(values) >= 8 else 0
    )  # a handful of points is shown as it is
    axes.plot(
        steps,
        values,
        color=panel.colour,
        alpha=0.28 if width else 1.0,
        linewidth=1,
        marker="o",
        markersize=2.5,
    )
    if width:
        axes.plot(steps, smooth(values, width), color=panel.colour, linewidth=2.2)
    if panel.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        top = max(values)
        high = (
            1.02 if top > 0.5 else max(0.1, 1.25 * top)
        )  # half is where the full scale reads better
        axes.set_ylim(-0.02 * high, high)  # a line along 0 stays in sight
    elif panel.floor and min(values) >= 0:
        axes.set_ylim(0, max(1.1 * max(values), 1e-6))
