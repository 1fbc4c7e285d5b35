"""Runs the stages that are not finished, in their order."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from assay.kit.runs.progress import Display
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.chain.labelling import carry_out, services_with
from assay.trainer.recipes.chain.plan import Stage, StageRun
from assay.trainer.recipes.children import INTERRUPTED
from assay.trainer.recipes.ladder.climb import RunQueue
from assay.trainer.recipes.ladder.processes import last_line


def run(stages: Sequence[Stage], folder: Path, console: Console) -> int:
    """Trains each stage in a process of its own, and writes stages.json and stages.md.

    Returns:
        0; 130 if interrupted: the same command goes on.

    Raises:
        ConfigError: the folder holds runs of other settings.
        TrainingStoppedError: a stage failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    display = Display(console)
    for number, stage in enumerate(stages, start=1):
        where = f"stage {number} of {len(stages)}, {stage.rung}"
        if stage.state() == "finished":
            display.note(f"{where}: done before")
            continue
        display.note(f"{where} (its output: {stage.log})")
        try:
            whole = (
                _train(stage, display) if isinstance(stage, StageRun) else carry_out(stage, display)
            )
        except TrainingStoppedError as error:
            raise TrainingStoppedError(
                f"{where} failed: {error}; the same command goes on there"
            ) from error
        if not whole:
            display.note(f"interrupted in {where}; the same command goes on")
            return INTERRUPTED
    text = _write([stage for stage in stages if isinstance(stage, StageRun)], folder)
    display.note(text)
    return 0


def _train(stage: StageRun, display: Display) -> bool:
    """Whether a run ended; false when it was interrupted.

    Raises:
        StartupError: services of its own could not start.
        TrainingStoppedError: it failed.
    """
    if stage.beginning and stage.state() == "new":
        display.note(stage.beginning.choose())
    with services_with(stage.judge, stage.folder.parent / "services", "reward") as own:
        job = replace(stage, also=(f"reward.target={own.address}",)) if own else stage
        work = RunQueue(display, [job], deque([job]), 1)
        try:
            interrupted = work.run()
        finally:
            work.close()
    if stage.state() == "finished":
        return True
    if not interrupted:
        raise TrainingStoppedError(f"{last_line(stage.log)} (all of it: {stage.log})")
    return False


def _write(stages: Sequence[StageRun], folder: Path) -> str:
    reports = {stage.rung: _report(stage) for stage in stages}
    lines = ["| stage | method | held-out accuracy before | after |", "|---|---|---|---|"]
    told = {}
    for name, report in reports.items():
        before, after = (_accuracy(report, when) for when in ("before", "after"))
        told[name] = {"run": report["run"]["folder"], "before": before, "after": after}
        cells = ("-" if value is None else f"{value:.3f}" for value in (before, after))
        lines.append(f"| {name} | {report['run']['method']} | {' | '.join(cells)} |")
    text = "\n".join(lines)
    (folder / "stages.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    (folder / "stages.md").write_text(text + "\n", encoding="utf-8")
    return text


def _report(stage: StageRun) -> dict[str, Any]:
    text = (stage.folder / "report.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _accuracy(report: dict[str, Any], when: str) -> float | None:
    found = report.get(when)
    return None if found is None else found["accuracy"]
