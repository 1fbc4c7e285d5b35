"""The folder of a run: what lies where, how one is made, and how one is taken up again.

config.toml     the complete settings; `assay train config.toml` repeats the run
run.json        versions, commit, command line, machine
metrics.jsonl   one row per step
samples.jsonl   rollouts with their judgements, every few steps
tensorboard/    the same numbers
checkpoints/    see checkpoints.py
eval_before.json, eval_after.json   every held-out answer
report.json, report.md, curves.png  the outcome
model/          the trained policy with its tokenizer
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assay.rpc.errors import ConfigError
from assay.trainer import config as configs
from assay.trainer.config import Config

_REPORTED = (
    "assay-trainer",
    "torch",
    "transformers",
    "trl",
    "accelerate",
    "datasets",
    "reasoning-gym",
    "grpcio",
)
_MAY_CHANGE = ("run.", "reward.", "eval.")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of a run."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete settings."""
        return self.path / "config.toml"

    @property
    def info(self) -> Path:
        """Versions, commit, command line."""
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        """One row per step."""
        return self.path / "metrics.jsonl"

    @property
    def samples(self) -> Path:
        """Rollouts with their judgements."""
        return self.path / "samples.jsonl"

    @property
    def tensorboard(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        """Published checkpoints."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """The trained policy."""
        return self.path / "model"

    @property
    def curves(self) -> Path:
        """The picture."""
        return self.path / "curves.png"

    def evaluation(self, when: str) -> Path:
        """Held-out answers, `before` or `after`."""
        return self.path / f"eval_{when}.json"


def create(config: Config, name: str, run_dir: Path | None) -> RunFolder:
    """Makes the folder of a new run and saves its settings.

    Args:
        config: of the run.
        name: of the run.
        run_dir: where, exactly; by default <run.dir>/<name>-<time>.

    Raises:
        ConfigError: the folder holds something, or cannot be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = run_dir or Path(config.run.dir) / f"{name}-{stamp}"
    try:
        if path.is_dir() and any(path.iterdir()):
            raise ConfigError(
                f"run folder {path} is not empty; continue it with --resume {path}, or choose "
                "another --run-dir"
            )
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"run folder {path} cannot be made: {error}; choose another --run-dir"
        ) from error
    folder = RunFolder(path)
    folder.config.write_text(configs.to_toml(config), encoding="utf-8")
    return folder


def reopen(path: Path, overrides: Iterable[str]) -> tuple[RunFolder, Config]:
    """The folder and settings of a run to continue.

    Args:
        path: of the run.
        overrides: only run.*, reward.* and eval.* may change: anything else would be another curve.

    Raises:
        ConfigError: there is no such run, or an override may not change.
    """
    folder = RunFolder(path)
    if not folder.config.is_file():
        raise ConfigError(
            f"{path} is no run folder: it holds no config.toml; give the folder that the run "
            "printed"
        )
    texts = list(overrides)
    for text in texts:
        if not text.startswith(_MAY_CHANGE) or text.startswith("run.seed"):
            raise ConfigError(
                f"override {text!r} cannot change in a resumed run, which continues the same "
                "curve; start a new run"
            )
    config = configs.load(folder.config, texts)
    if texts:
        folder.config.write_text(configs.to_toml(config), encoding="utf-8")
    return folder, config


def newest(parent: Path, name: str) -> Path:
    """The newest run of a name.

    Raises:
        ConfigError: there is none.
    """
    found = sorted(path for path in parent.glob(f"{name}-*") if (path / "config.toml").is_file())
    if not found:
        raise ConfigError(
            f"{parent} holds no run of {name} to resume; start one without --resume, or name its "
            "folder"
        )
    return found[-1]


def describe(config: Config) -> dict[str, object]:
    """Versions, seed, commit, command line and machine, for run.json."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "seed": config.run.seed,
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _REPORTED},
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
    }


def record(folder: RunFolder, config: Config) -> None:
    """Adds this session to run.json; a resumed run has several."""
    sessions = (
        json.loads(folder.info.read_text(encoding="utf-8"))["sessions"]
        if folder.info.is_file()
        else []
    )
    sessions.append(describe(config))
    folder.info.write_text(json.dumps({"sessions": sessions}, indent=2) + "\n", encoding="utf-8")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout this package runs from, + where changed; None outside of one."""
    here = Path(__file__).parent
    try:
        command = ["git", "-C", str(here), "describe", "--always", "--abbrev=12", "--dirty=+"]
        done = subprocess.run(  # noqa: S603  # our own argument list
            [*command, "--exclude=*"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
