"""A trainer through the scripts, and each trainer in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from assay.clients.trainers.common import fault_ratio
from assay.clients.trainers.common.settings import close_clients
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.lab.scripts import SCRIPTS, ScriptedRewardServer
from assay.lab.steps import BATCH, ROWS, Contestant, Groups, kept, rewarded
from assay.lab.verdicts import GREEN, GREY, YELLOW, LabCell, Oracles, Vector, judge_step

GROUP = "assay.lab"
_MOST_S = 900.0
_WAIT_S = "3"


@dataclass(frozen=True, slots=True)
class Trial:
    """A trainer and what it did of each script.

    Attributes:
        version: of the trainer; why it did not run, where all cells are grey.
        cells: by the script's name.
    """

    name: str
    title: str
    version: str
    compared: str
    default: bool
    read: str
    cells: dict[str, LabCell] = field(default_factory=dict)

    @property
    def reds(self) -> list[str]:
        """Scripts of which the trainer makes something wrong."""
        return [name for name, cell in self.cells.items() if cell.colour == "red"]


def contestant_names() -> list[str]:
    """Those of all installed packages."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def contestant(name: str) -> Contestant:
    """The one of this name."""
    one: Contestant = next(iter(entry_points(group=GROUP, name=name))).load()
    return one


def chosen(names: Sequence[str], known: Sequence[str], noun: str) -> list[str]:
    """The names, or all that are known.

    Raises:
        ConfigError: there is no such one.
    """
    for name in names:
        if name not in known:
            near = did_you_mean(name, list(known))
            raise ConfigError(f"there is no {noun} {name!r}{near}; known: {', '.join(known)}")
    return list(names) or list(known)


class Laboratory:
    """Takes a contestant through scripts, and keeps the oracle's steps."""

    def __init__(self, contestant: Contestant) -> None:
        self._contestant = contestant
        self._steps: dict[Any, list[float]] = {}

    def cell(self, name: str) -> LabCell:
        """What the contestant does of a script."""
        server = ScriptedRewardServer(knobs=SCRIPTS[name].knobs)
        step, error = None, None
        try:
            with server:
                try:
                    step = self._step(BATCH, server.address)
                except Exception as stopped:  # noqa: BLE001  # whatever a trainer stops with
                    error = stopped
                    traceback.print_exc()
        except AssertionError:  # the fake's: it was not asked in the way that it is to fail
            return LabCell(GREY, "cannot happen: it asks row by row")
        unjudged = tuple(row.name for row in ROWS if row.name not in server.judged)
        if step is None:
            return LabCell(YELLOW, f"training stops: {type(error).__name__}", None, unjudged)
        return judge_step(step, self._oracles(frozenset(unjudged)), unjudged)

    def whole(self) -> list[float]:
        """The step on all rows."""
        return self._clean(BATCH)

    def _oracles(self, unjudged: frozenset[str]) -> Oracles:
        names = frozenset(row.name for row in ROWS)
        groups = {name[0] for name in unjudged}
        lost = self._clean(kept(frozenset(name for name in names if name[0] not in groups)))
        try:
            never = self._clean(kept(names - unjudged))
        except Exception:  # noqa: BLE001  # a trainer may know no group of one row
            never = lost
        zero = self._clean(rewarded(unjudged, 0.0))
        baseline: Vector | None = None
        if self._contestant.compared == "advantages":
            pairs = zip(ROWS, zero, strict=True)
            baseline = [0.0 if row.name in unjudged else value for row, value in pairs]
        return Oracles(never, lost, zero, baseline)

    def _clean(self, groups: Groups) -> list[float]:
        key = tuple(row for group in groups for row in group)
        if key not in self._steps:
            if not key:
                return [0.0] * len(self.whole())
            with ScriptedRewardServer(rows=groups) as server:
                self._steps[key] = self._step(groups, server.address)
        return self._steps[key]

    def _step(self, groups: Groups, target: str) -> list[float]:
        fault_ratio.forget()
        close_clients()
        before = dict(os.environ)
        os.environ.update(
            ASSAY_TARGET=target, ASSAY_VERIFIER="exact", ASSAY_TIMEOUT_S=_WAIT_S,
            ASSAY_MAX_FAULT_RATIO="1",
        )  # fmt: skip
        try:
            return [float(value) for value in self._contestant.step(groups, target)]
        finally:
            close_clients()
            # What a contestant set for its adapter besides is gone, too.
            os.environ.clear()
            os.environ.update(before)


def try_out(
    name: str, scripts: Sequence[str], step: Callable[[str, LabCell], None] = lambda _n, _c: None
) -> Trial:
    """Takes a contestant through scripts, in this process."""
    one = contestant(name)
    about = (one.compared, one.default, one.read)
    try:
        version = one.version()
    except ImportError as error:
        cells = {script: LabCell(GREY, "not run") for script in scripts}
        return Trial(name, one.title, f"cannot be imported: {error}", *about, cells)
    room = Laboratory(one)
    cells = {}
    control = room.cell("clean")
    if control.colour != GREEN or not any(room.whole()):
        control = LabCell(GREY, f"the control failed: {control.says}")
        return Trial(name, one.title, version, *about, dict.fromkeys(scripts, control))
    for script in scripts:
        cells[script] = control if script == "clean" else room.cell(script)
        step(script, cells[script])
    return Trial(name, one.title, version, *about, cells)


def try_apart(name: str, scripts: Sequence[str]) -> Trial:
    """The same in a process of its own: trainers change what they are imported into."""
    with tempfile.TemporaryDirectory() as folder:
        out, log = Path(folder, "trial"), Path(folder, "log")
        asked = [sys.executable, "-m", "assay.lab", name, str(out), *scripts]
        with log.open("wb") as file:
            try:
                subprocess.run(asked, stdout=file, stderr=file, timeout=_MOST_S, check=False)  # noqa: S603  # ourselves
            except subprocess.TimeoutExpired:
                file.write(b"it took too long\n")
        if out.exists():
            found: Trial = pickle.loads(out.read_bytes())  # noqa: S301  # our own child wrote it
            return found
        said = log.read_text(errors="replace").strip().splitlines() or ["nothing"]
    one = contestant(name)
    cells = {script: LabCell(GREY, "not run") for script in scripts}
    return Trial(name, one.title, f"ended: {said[-1]}", one.compared, one.default, one.read, cells)
