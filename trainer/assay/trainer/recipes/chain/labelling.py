"""Stages of a chain that are no `assay train`: labels from a judge, and the judge that learns them.

A stage ends with a file that appears by one rename, or with a run's report; the same command goes
on where it was stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from assay.cli.main import cli
from assay.cli.scoring.recorded import score_rows
from assay.clients.services import EmbeddedServices
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.progress import Display
from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import TRAIN
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes import children
from assay.trainer.recipes.ladder.processes import State, last_line
from assay.trainer.records.folder import RunFolder

_POLL_S = 0.2
_START_S = 1800.0  # of a judge's weights
_SOME_LEFT = 1  # responses of which a judge gave none


def served(model: Path | str) -> tuple[str, str]:
    """The arguments by which genrm serves a model as `judge`."""
    return "--model", f"judge={model}"


def check_options(options: Iterable[str], origin: str) -> None:
    """Checks the names of options of label-critiques.

    Raises:
        ConfigError: it has no such option, or is not installed.
    """
    command = cli.get_command(click.Context(cli), "label-critiques")
    if command is None:
        raise ConfigError(f"{origin}: there is no `assay label-critiques`; install assay-rl-genrm")
    flags = [flag for one in command.params for flag in (*one.opts, *one.secondary_opts)]
    known = sorted(flag.removeprefix("--") for flag in flags if flag.startswith("--"))
    for name in options:
        if name not in known:
            near = did_you_mean(name, known)
            raise ConfigError(f"{origin}: no option {name!r}{near}; there are: {', '.join(known)}")


@contextmanager
def services_with(
    judge: Sequence[str], logs: Path, *more: str
) -> Iterator[EmbeddedServices | None]:
    """A genrm of these arguments, and other services, inside the block; None without a judge.

    Raises:
        StartupError: one could not start.
    """
    if not judge:
        yield None
        return
    names = ("genrm", *more)
    given = {"genrm": judge}
    with EmbeddedServices(names, arguments=given, log_dir=logs, start_timeout_s=_START_S) as own:
        yield own


@dataclass(frozen=True, slots=True)
class LabelStage:
    """`assay label-critiques` over the responses that a stage trained on.

    Attributes:
        rung: its name.
        folder: of its files; `labels` is what it makes.
        source: the run whose rollouts are criticised.
        options: of the command, without the dashes.
        judge: arguments of the genrm that criticises, where the stage starts it.
    """

    rung: str
    folder: Path
    source: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    judge: tuple[str, ...] = ()

    @property
    def labels(self) -> Path:
        """The rows that it makes."""
        return self.folder / "labels.jsonl"

    @property
    def log(self) -> Path:
        """Its output."""
        return self.folder / "labels.log"

    def state(self) -> State:
        """Its state."""
        if self.labels.is_file():
            return "finished"
        return "interrupted" if self.folder.is_dir() else "new"

    def words(self) -> list[str]:
        """Its command; writes the responses to criticise, each once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = self.folder / "responses.jsonl"
        seen: dict[str, Mapping[str, Any]] = {}
        for row in score_rows(RunFolder(self.source).rollouts, judged_by_name=False):
            if row["phase"] == TRAIN and row["response"].strip():
                seen.setdefault(json.dumps([row["prompt"], row["response"]]), row)
        rows.write_text("".join(json.dumps(row) + "\n" for row in seen.values()), encoding="utf-8")
        given = [
            word
            for name, value in self.options.items()
            for word in ([f"--{name}"] if value is True else [f"--{name}", str(value)])
            if value is not False
        ]
        return ["label-critiques", str(rows), str(self._partial), *given]

    def finish(self, code: int) -> str:
        """Publishes what was labelled; what to tell of it.

        Raises:
            TrainingStoppedError: the judge labelled nothing.
        """
        found = len(read_rows(self._partial)) if self._partial.is_file() else 0
        if code not in (0, _SOME_LEFT) or not found:
            raise TrainingStoppedError(
                f"{found} labels, code {code}: {last_line(self.log)} (all of it: {self.log})"
            )
        self._partial.replace(self.labels)
        return f"{found} labels in {self.labels}" + (f"; see {self.log}" if code else "")

    @property
    def _partial(self) -> Path:
        return self.folder / ".labels.jsonl"


@dataclass(frozen=True, slots=True)
class RmStage:
    """`assay train-rm`, on rows of a stage or of its own settings.

    Attributes:
        rung: its name.
        folder: of the run.
        base: its settings.
        overrides: of them, KEY=VALUE.
    """

    rung: str
    folder: Path
    base: Path
    overrides: Sequence[str] = ()

    @property
    def log(self) -> Path:
        """Its output."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def state(self) -> State:
        """Its state."""
        if (self.folder / "report.json").is_file():
            return "finished"
        return "interrupted" if RunFolder(self.folder).config.is_file() else "new"

    def words(self) -> list[str]:
        """Its command."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if self.state() == "interrupted":
            return ["train-rm", "--resume", str(self.folder)]
        return ["train-rm", str(self.base), *self.overrides, "--run-dir", str(self.folder)]

    def finish(self, code: int) -> str:
        """What to tell of it. Raises TrainingStoppedError: it failed."""
        if code or self.state() != "finished":
            raise TrainingStoppedError(
                f"code {code}: {last_line(self.log)} (all of it: {self.log})"
            )
        return f"a judge in {RunFolder(self.folder).model}"


def carry_out(stage: LabelStage | RmStage, display: Display) -> bool:
    """Runs a stage in its own process; false when it was interrupted.

    Raises:
        StartupError: its judge could not start.
        TrainingStoppedError: it failed.
    """
    words, judge = stage.words(), stage.judge if isinstance(stage, LabelStage) else ()
    with services_with(judge, stage.log.parent / "services") as own:
        also = ["--target", own.address_of("genrm")] if own else []
        code, stopped = _waited([children.ASSAY, *words, *also], stage.log)
    if code == children.INTERRUPTED or (stopped and code):
        return False
    display.note(stage.finish(code))
    return True


def _waited(command: Sequence[str], log_file: Path) -> tuple[int, bool]:
    """The exit code of a process, and whether it was asked to end.

    Raises:
        OSError: it cannot be started.
    """
    with log_file.open("ab") as log:
        process = children.start(command, log)
    try:
        with Interrupt(lambda _name: children.interrupt(process)) as stop:
            while (code := process.poll()) is None:
                time.sleep(_POLL_S)
    finally:
        children.end(process)
    return code, stop.requested
