"""The folders of runs: their paths, how one is made and resumed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from assay.kit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunPaths:
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
        """One row a step, or every few steps."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Published checkpoints; see `checkpoints`."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """What was trained, with its tokenizer."""
        return self.path / "model"

    def evaluation(self, when: str) -> Path:
        """Results on held-out rows, `before` or `after`."""
        return self.path / f"eval_{when}.json"


def make(parent: Path, name: str, run_dir: Path | None) -> Path:
    """Makes the folder of a new run: `run_dir`, by default <parent>/<name>-<time>.

    Raises:
        ConfigError: the folder holds something, or cannot be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    path = run_dir or parent / f"{name}-{stamp}"
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
    return path


def check_resumed(
    folder: RunPaths, overrides: Iterable[str], may_change: tuple[str, ...]
) -> list[str]:
    """Checks that a run can be resumed with these overrides, and returns them.

    `may_change` has prefixes of keys; any other, and run.seed, would change the curve.

    Raises:
        ConfigError: there is no such run, or an override may not change.
    """
    if not folder.config.is_file():
        raise ConfigError(
            f"{folder.path} is no run folder: it holds no config.toml; give the folder that the "
            "run printed"
        )
    texts = list(overrides)
    for text in texts:
        if not text.startswith(may_change) or text.startswith("run.seed"):
            raise ConfigError(
                f"override {text!r} cannot change in a resumed run, which continues the same "
                "curve; start a new run"
            )
    return texts


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


def publish(beside: Path, target: Path) -> None:
    """Replaces a folder by a complete one, by one rename."""
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def forget_if_untouched(folder: RunPaths) -> None:
    """Removes the folder of a run that failed before it began."""
    if [path for path in folder.path.iterdir() if path != folder.config]:
        return
    folder.config.unlink()
    folder.path.rmdir()
