"""The matrix of trainers and scripts: as JSON, and as tables for the documentation. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.kit.errors import ConfigError
from assay.lab.running import Trial
from assay.lab.scripts import SCRIPTS
from assay.lab.verdicts import GREEN, GREY, RED, YELLOW, LabCell, StepDifference

MARKS = {GREEN: "✓", YELLOW: "~", RED: "✗", GREY: "·"}
BEGIN, END = "<!-- written by `assay lab --page`; do not edit -->", "<!-- end of the matrix -->"
_PLAIN = ("name", "title", "version", "compared", "default", "read")
_NUMBERS = ("cosine", "largest", "length")


def exit_code(trials: Sequence[Trial]) -> int:
    """0: no default of ours is red; 1: one is; 2: nothing ran."""
    if any(trial.reds for trial in trials if trial.default):
        return 1
    ran = any(cell.colour != GREY for trial in trials for cell in trial.cells.values())
    return 0 if ran else 2


def to_plain(trial: Trial) -> dict[str, Any]:
    """A trial as values of JSON."""
    cells = {}
    for script, cell in trial.cells.items():
        found = cell.difference
        numbers = found and {name: _finite(getattr(found, name)) for name in _NUMBERS}
        cells[script] = {
            "colour": cell.colour, "says": cell.says, "unjudged": list(cell.unjudged),
            "difference": numbers,
        }  # fmt: skip
    return {**{name: getattr(trial, name) for name in _PLAIN}, "cells": cells}


def _finite(value: float) -> float | None:
    return round(value, 9) if math.isfinite(value) else None


def from_plain(plain: Mapping[str, Any]) -> Trial:
    """What `to_plain` made."""
    cells = {}
    for script, cell in plain["cells"].items():
        numbers = cell["difference"]
        found = numbers and StepDifference(
            *(math.inf if numbers[name] is None else numbers[name] for name in _NUMBERS)
        )
        cells[script] = LabCell(cell["colour"], cell["says"], found, tuple(cell["unjudged"]))
    return Trial(**{name: plain[name] for name in _PLAIN}, cells=cells)


def with_cells(kept: Trial | None, trial: Trial) -> Trial:
    """A trial with the cells that were kept of the same version, where it has none."""
    if kept is None or kept.version != trial.version:
        return trial
    both = {**kept.cells, **trial.cells}
    return replace(trial, cells={name: both[name] for name in SCRIPTS if name in both})


def matrix(trials: Sequence[Trial]) -> str:
    """The tables of a page: marks, versions, and what is behind each mark that is not green."""
    trials = sorted(trials, key=lambda trial: (not trial.default, trial.name))
    given = [name for name in SCRIPTS if any(name in trial.cells for trial in trials)]
    lines = [
        f"| trainer and policy | {' | '.join(f'`{name}`' for name in given)} |",
        f"|---|{'---|' * len(given)}",
    ]
    for trial in trials:
        marks = " | ".join(
            MARKS[trial.cells[name].colour] if name in trial.cells else "" for name in given
        )
        title = f"**{trial.title}**" if trial.default else trial.title
        lines.append(f"| {title} | {marks} |")
    lines += ["", "| `assay lab` | what ran | compared | read, and not run |", "|---|---|---|---|"]
    for trial in trials:
        lines.append(
            f"| `{trial.name}` | {_escaped(trial.version)} | {trial.compared} | {trial.read} |"
        )
    lines += ["", "| cells | what happens |", "|---|---|"]
    for trial in trials:
        for (colour, says), names in _together(trial).items():
            cells = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| `{trial.name}` {MARKS[colour]} {cells} | {_escaped(says)} |")
    return "\n".join(lines)


def _together(trial: Trial) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, cell in trial.cells.items():
        if cell.colour != GREEN:
            found.setdefault((cell.colour, cell.says), []).append(name)
    return found


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def page_with(text: str, trials: Sequence[Trial]) -> str:
    """A page whose matrix is that of the trials.

    Raises:
        ConfigError: it has no place for one.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"the page has no lines {BEGIN!r} and {END!r} for the matrix; add them")
    return f"{before}{BEGIN}\n\n{matrix(trials)}\n\n{END}{after}"
