"""Folders of finished runs, made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.trainer.recipes.ladder.plan import LadderPlan
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

Curve = list[dict[str, Any]]


def write_run(
    folder: Path, config: Config, rows: Curve, accuracy: float | None = None, *, done: bool = True
) -> None:
    """A run's folder as far as a ladder reads it."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(configs.to_toml(config), encoding="utf-8")
    (folder / "metrics.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    if done and accuracy is not None:
        report = {"after": {"accuracy": accuracy}}
        (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    elif done:
        (folder / "curves.png").write_bytes(b"PNG")


def curve(*, start: float, gain: float, steps: int = 20) -> Curve:
    """A straight line, with everything a row has for a ladder."""
    return [
        {
            "step": step,
            "reward": start + gain * step,
            "correct": min(1.0, start + gain * step),
            "entropy": 1.0 - 0.01 * step,
            "response_length": 10.0 + step,
        }
        for step in range(1, steps + 1)
    ]


def write_all(plan: LadderPlan, folder: Path) -> None:
    """Every run of a plan, finished: rung n starts n tenths higher, seed s a hundredth."""
    for number, rung in enumerate(plan.rungs):
        for seed, config in rung.configs.items():
            start = 0.1 * number + 0.01 * seed
            write_run(
                folder / rung.name / str(seed),
                config,
                curve(start=start, gain=0.02),
                accuracy=start,
            )
