"""Before and after, for programs, for people, and on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from assay.kit.runs.records import read_rows
from assay.trainer.recipes.reward_model.config import RmConfig
from assay.trainer.recipes.reward_model.evaluation import AUC, RmEvaluation
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.report import grid, markdown_table

CHANCE = 0.5


def outcome(
    config: RmConfig,
    folder: RunFolder,
    *,
    training_rows: int,
    before: RmEvaluation | None,
    after: RmEvaluation | None,
    train_s: float,
) -> dict[str, Any]:
    """The result of a run.

    Returns:
        `run`; `before` and `after` (see RmEvaluation.to_json), None where nothing was measured;
        `above_chance`: whether the interval of the first figure lies above one half, None without
        such a figure.
    """
    name, main = after.main if after is not None else ("", None)
    needed = {"prm": "balanced accuracy", "pointwise": AUC}.get(config.method.kind, name)
    if name != needed:
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
    prompts = report["after"]["counts"]["prompts"]
    title = f"{prompts} held-out prompts, 95 % intervals, chance {CHANCE}"
    return grid(title, ("before", "after"), _rows(report))


def heading(report: Mapping[str, Any], after: RmEvaluation | None) -> tuple[str, str]:
    """The heading of the curves: the run, and its final figures."""
    run = report["run"]
    title = f"{run['name']}: {run['kind']}, {Path(run['model']).name}, "
    title += f"{run['steps']} steps of {run['batch']}, seed {run['seed']}"
    if after is None:
        return title, ""
    name, figure = after.main
    return title, f"held-out {name} {figure}"


def markdown(report: Mapping[str, Any]) -> str:
    """The comparison as Markdown."""
    run, after = report["run"], report["after"]
    lines = [
        f"# {run['name']}: {run['kind']}, {run['model']}",
        "",
        f"{run['steps']} steps of {run['batch']}; {run['training_rows']} rows, seed {run['seed']}.",
        "",
    ]
    if after is None:
        lines.append("No prompts were held out.")
    else:
        lines += [
            f"{after['counts']['prompts']} held-out prompts; chance is {CHANCE}.",
            "",
            *markdown_table(["", "before [95 %]", "after [95 %]"], _rows(report)),
        ]
    return "\n".join([*lines, "", "![curves](curves.png)"])


def draw_curves(folder: RunFolder, title: str, subtitle: str) -> None:
    """Draws metrics.jsonl as curves.png."""
    from assay.trainer.records import plots  # noqa: PLC0415  # seconds that only the end needs

    panels = (
        plots.Panel("loss", (plots.Curve("loss", plots.END, plots.BLUE),), "zero"),
        plots.Panel("gradient norm", (plots.Curve("grad_norm", plots.END, plots.GREY),), "zero"),
        plots.Panel(
            "learning rate", (plots.Curve("learning_rate", plots.END, plots.ORANGE),), "zero"
        ),
    )
    rows = read_rows(folder.metrics)
    plots.draw(rows, folder.curves, title=title, subtitle=subtitle, among=panels)
