"""One run of a ladder in its own process (see recipes/children.py).

It is a usual `assay train`, which can be looked at, resumed and repeated by itself. A killed run
leaves the others alone.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.kit.errors import ConfigError
from assay.trainer.recipes import children
from assay.trainer.recipes.ladder import outcome
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

State = Literal["new", "interrupted", "finished"]
# More than a row of metrics is long.
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class RungRun:
    """One run."""

    rung: str  # its rung
    seed: int  # its seed
    config: Config  # its settings
    folder: Path  # its folder, DIR/<rung>/<seed>; beside it the settings and what it printed
    judge: tuple[str, ...] = ()  # arguments of the genrm that judges, if it has one of its own
    also: tuple[str, ...] = ()  # KEY=VALUE that hold while it runs, such as an address

    @property
    def label(self) -> str:
        """Its name."""
        return f"{self.rung}, seed {self.seed}"

    @property
    def settings(self) -> Path:
        """Its config file."""
        return self.folder.with_name(f"{self.seed}.toml")

    @property
    def log(self) -> Path:
        """Its output."""
        return self.folder.with_name(f"{self.seed}.log")

    def state(self) -> State:
        """Its state. Raises ConfigError: the folder holds a run of other settings."""
        kept = RunFolder(self.folder).config
        if not kept.is_file():
            return "new"
        if _curve(configs.load(kept)) != _curve(self.config):
            raise ConfigError(
                f"{self.folder} holds a run of other settings; choose another --dir, or remove it"
            )
        return "interrupted" if outcome.read(self.folder) is None else "finished"

    def steps_done(self) -> int:
        """Steps so far, from the last whole row of metrics.jsonl."""
        path = RunFolder(self.folder).metrics
        if not path.is_file():
            return 0
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["step"]) if lines else 0


def _curve(config: Config) -> Config:
    """The settings that fix a run's curve; services and evaluation may change."""
    default = Config()
    return dataclasses.replace(
        config,
        run=dataclasses.replace(default.run, seed=config.run.seed, steps=config.run.steps),
        reward=default.reward,
        eval=default.eval,
    )


def start(job: RungRun) -> subprocess.Popen[bytes]:
    """Starts or resumes a run; it prints to its log.

    Raises:
        ConfigError: the folder holds a run of other settings.
        OSError: the process cannot be started.
    """
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    if job.state() == "new":
        job.settings.write_text(configs.to_toml(job.config), encoding="utf-8")
        arguments = ["train", str(job.settings), *job.also, "--run-dir", str(job.folder)]
    else:
        arguments = ["train", *job.also, "--resume", str(job.folder)]
    with job.log.open("ab") as log:
        return children.start([children.ASSAY, *arguments], log)


def last_line(path: Path) -> str:
    """The last line of a log that is not blank."""
    if not path.is_file():
        return "it printed nothing"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
