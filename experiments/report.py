"""What miniatures say of their runs: means over seeds, changes paired by seed, and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.trainer.recipes.ladder.stats import SeedMean, difference
from experiments.claim import Runs, column
from experiments.miniature import as_data, over_seeds, told

Points = Sequence[tuple[float, float]]


def change(runs: Runs, name: str, first: str, key: str) -> SeedMean | None:
    """By how much a contestant is ahead of another, over the seeds that both have."""
    return difference(column(runs, name, key), column(runs, first, key))


def compare(
    runs: Runs, keys: Sequence[str], first: str, changes: Sequence[str] | None = None
) -> dict[str, Any]:
    """Prints each contestant's figures, and what has changed from the first.

    Args:
        runs: of all contestants.
        keys: the figures.
        first: the contestant that the others are held against.
        changes: the figures whose changes are told; None for all.

    Returns:
        For JSON: of each contestant its figures, its changes, and all of its runs.
    """
    found: dict[str, Any] = {}
    width = max(20, *map(len, keys)) + 2
    for name in runs:
        figures = {key: over_seeds(column(runs, name, key)) for key in keys}
        changed = {
            key: change(runs, name, first, key)
            for key in (keys if changes is None else changes)
            if name != first
        }
        print(f"{name} ({len(runs[name])} seeds)")
        for key, value in figures.items():
            beside = f"   change {told(changed[key])}" if key in changed else ""
            print(f"    {key:<{width}}{told(value)}{beside}")
        found[name] = {
            **{key: as_data(value) for key, value in figures.items()},
            "change": {key: as_data(value) for key, value in changed.items()},
            "seeds": dict(runs[name]),
        }
    return found


def leads(
    runs: Runs, pairs: Iterable[tuple[str, str]], keys: Sequence[str]
) -> dict[str, dict[str, Any] | None]:
    """Prints by how much the first of each pair is ahead of the second; the same for JSON."""
    found = {}
    for one, other in pairs:
        for key in keys:
            changed = change(runs, one, other, key)
            found[f"{one} less {other}, {key}"] = as_data(changed)
            print(f"{one} less {other}, {key}: {told(changed)}")
    return found


def draw(path: Path, panels: Mapping[str, Mapping[str, Sequence[Points]]], *, y: str = "") -> None:
    """Curves beside one another: a line for each run, a colour for each contestant.

    Args:
        path: of the picture.
        panels: titles; under each, the contestants and the points of their runs, steps first.
        y: what all panels show; they then share the axis.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6 * len(panels), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    cells = figure.subplots(1, len(panels), squeeze=False, sharey=bool(y))[0]
    names = list(dict.fromkeys(name for runs in panels.values() for name in runs))
    for axes, (title, runs) in zip(cells, panels.items(), strict=True):
        for name, lines in runs.items():
            for n, points in enumerate(line for line in lines if line):
                colour, label = f"C{names.index(name)}", name if n == 0 else None
                axes.plot(*zip(*points, strict=True), color=colour, label=label, alpha=0.8)
        axes.set_title(title, loc="left")
        axes.set_xlabel("step")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    cells[0].set_ylabel(y)
    figure.savefig(path, dpi=120)
