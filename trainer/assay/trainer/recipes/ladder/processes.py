"""One run of a ladder, in a process of its own.

A process for each run, not a loop in this one: what a run held in memory is given back whole, no
state of torch or of a random generator reaches the next one, and a run that is killed (out of
memory, say) takes no other with it. The command is the one a person would type, so that a run of a
ladder is a run like any other: it can be looked at, resumed and repeated by itself. A run does not
outlive the ladder: it ends when the pipe to its standard input does (assay.clients.child).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.rpc.errors import ConfigError
from assay.trainer.recipes.ladder import outcome
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

State = Literal["new", "interrupted", "finished"]
# A console script may not be on the path of whoever runs this; the interpreter that runs this is.
_ASSAY = (sys.executable, "-m", "assay.clients.child", "assay.trainer.recipes.ladder")
# More than a row of metrics is long.
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One run.

    Attributes:
        rung: its rung.
        seed: its seed.
        config: its settings.
        folder: its folder, DIR/<rung>/<seed>; beside it the settings and what it printed.
    """

    rung: str
    seed: int
    config: Config
    folder: Path

    @property
    def label(self) -> str:
        """How it is called."""
        return f"{self.rung}, seed {self.seed}"

    @property
    def settings(self) -> Path:
        """What it is started from."""
        return self.folder.with_name(f"{self.seed}.toml")

    @property
    def log(self) -> Path:
        """What it printed."""
        return self.folder.with_name(f"{self.seed}.log")

    def state(self) -> State:
        """How far it is.

        Raises:
            ConfigError: the folder holds a run of other settings.
        """
        kept = RunFolder(self.folder).config
        if not kept.is_file():
            return "new"
        if _curve(configs.load(kept)) != _curve(self.config):
            raise ConfigError(
                f"{self.folder} holds a run of other settings; choose another --dir, or remove it"
            )
        return "interrupted" if outcome.read(self.folder) is None else "finished"

    def steps_done(self) -> int:
        """Steps so far: that of the last whole row of metrics.jsonl, read from the file's end."""
        path = RunFolder(self.folder).metrics
        if not path.is_file():
            return 0
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
        return int(json.loads(lines[-1])["step"]) if lines else 0


def _curve(config: Config) -> Config:
    """What fixes a run's curve: the services and the evaluation may change, as in a resumed run."""
    default = Config()
    return dataclasses.replace(
        config,
        run=dataclasses.replace(default.run, seed=config.run.seed, steps=config.run.steps),
        reward=default.reward,
        eval=default.eval,
    )


def start(job: Job) -> subprocess.Popen[bytes]:
    """Starts a run, or takes it up again; it prints to its log.

    In a session of its own: a Ctrl-C reaches this process alone, which passes it on once.

    Raises:
        ConfigError: the folder holds a run of other settings.
        OSError: the process cannot be started.
    """
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    if job.state() == "new":
        job.settings.write_text(configs.to_toml(job.config), encoding="utf-8")
        arguments = ["train", str(job.settings), "--run-dir", str(job.folder)]
    else:
        arguments = ["train", "--resume", str(job.folder)]
    with job.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603  # our own argument list
            [*_ASSAY, *arguments],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Asks a run to end its step and save a checkpoint."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a run at once, if it has not ended, and lets go of it."""
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def last_line(path: Path) -> str:
    """The last line of a log that says something."""
    if not path.is_file():
        return "it printed nothing"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
