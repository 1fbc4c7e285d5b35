"""Before and after, side by side: for programs, for people, and on the screen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from assay.trainer.recipes.reward_model.config import Config
from assay.trainer.recipes.reward_model.evaluation import Evaluation
from assay.trainer.records.folder import RunFolder

CHANCE = 0.5
_CURVES = "![curves](curves.png)"


def outcome(
    config: Config,
    folder: RunFolder,
    *,
    training_rows: int,
    before: Evaluation | None,
    after: Evaluation | None,
    train_s: float,
) -> dict[str, Any]:
    """What came of a run.

    Returns:
        `run`; `before` and `after` (see Evaluation.to_json), None where nothing was measured;
        `above_chance`: whether the interval of the first figure lies above one half, None where
        there is no such figure.
    """
    name, main = after.main if after is not None else ("", None)
    if config.method.kind == "prm" and name != "balanced accuracy":
        main = None  # only one label is held out: there is no chance to be above
    return {
        "run": {
            "name": config.run.name or folder.path.name,
            "folder": str(folder.path),
            "kind": config.method.kind,
            "model": config.model.name,
            "steps": config.run.steps,
            "batch": config.optim.batch,
            "seed": config.run.seed,
            "training_rows": training_rows,
            "train_s": round(train_s, 1),
        },
        "before": before.to_json() if before is not None else None,
        "after": after.to_json() if after is not None else None,
        "above_chance": None if main is None else main.low > CHANCE,
    }


def _rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    before, after = report["before"], report["after"]

    def figure(side: Mapping[str, Any] | None, name: str) -> str:
        parts = side["figures"].get(name) if side else None
        return f"{parts['value']:.3f} [{parts['low']:.3f}, {parts['high']:.3f}]" if parts else "-"

    def count(side: Mapping[str, Any] | None, name: str) -> str:
        value = side["counts"].get(name) if side else None
        if value is None:
            return "-"
        return str(value) if isinstance(value, int) else f"{value:.3f}"

    lines = [(name, figure(before, name), figure(after, name)) for name in after["figures"]]
    return lines + [(name, count(before, name), count(after, name)) for name in after["counts"]]


def table(report: Mapping[str, Any]) -> Table:
    """The comparison for a terminal."""
    grid = Table(
        title=f"{report['after']['counts']['prompts']} held-out prompts, 95 % intervals, "
        f"chance {CHANCE}",
        title_justify="left",
    )
    grid.add_column("", no_wrap=True)
    for name in ("before", "after"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in _rows(report):
        grid.add_row(*row)
    return grid


def heading(report: Mapping[str, Any], after: Evaluation | None) -> tuple[str, str]:
    """What stands above the curves: the run, and how it ended."""
    run = report["run"]
    title = f"{run['name']}: {run['kind']}, {Path(run['model']).name}, "
    title += f"{run['steps']} steps of {run['batch']}, seed {run['seed']}"
    if after is None:
        return title, ""
    name, figure = after.main
    return title, f"held-out {name} {figure}"


def markdown(report: Mapping[str, Any]) -> str:
    """The comparison as a text."""
    run = report["run"]
    lines = [
        f"# {run['name']}: {run['kind']}, {run['model']}",
        "",
        f"{run['steps']} steps of {run['batch']}; {run['training_rows']} rows, seed {run['seed']}.",
    ]
    if report["after"] is None:
        return "\n".join([*lines, "", "No prompts were held out.", "", _CURVES])
    lines += [
        "",
        f"{report['after']['counts']['prompts']} held-out prompts; chance is {CHANCE}.",
        "",
        "| | before [95 %] | after [95 %] |",
        "|---|---:|---:|",
        *(f"| {name} | {old} | {new} |" for name, old, new in _rows(report)),
        "",
        _CURVES,
    ]
    return "\n".join(lines)


def write(folder: Path, report: Mapping[str, Any]) -> None:
    """Writes report.json and report.md."""
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (folder / "report.md").write_text(markdown(report) + "\n", encoding="utf-8")
