"""The folder of a run: what lies where, how one is made, and how one is taken up again.

config.toml     the complete settings; `assay train-rm config.toml` repeats the run
run.json        versions, commit, command line, machine
metrics.jsonl   one row every few steps
checkpoints/    see assay.clients.runs.checkpoints
eval_before.json, eval_after.json   the figures on held-out prompts
report.json, report.md              the outcome
model/          the trained model with its tokenizer; `assay serve genrm` takes it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay.clients.runs import provenance
from assay.clients.runs.folders import RunPaths, check_resumed, make
from assay.genrm.training import config as configs
from assay.genrm.training.config import Config

_PACKAGES = ("assay-genrm", "torch", "transformers", "trl", "accelerate", "datasets")
_MAY_CHANGE = ("run.", "eval.batch_size=")


@dataclass(frozen=True, slots=True)
class RunFolder(RunPaths):
    """Paths of a run."""

    @property
    def tokenizer(self) -> Path:
        """The tokenizer of a model from scratch, kept for a resumed run."""
        return self.path / "tokenizer"


def create(config: Config, name: str, run_dir: Path | None) -> RunFolder:
    """Makes the folder of a new run and saves its settings.

    Args:
        config: of the run.
        name: of the run.
        run_dir: where, exactly; by default <run.dir>/<name>-<time>.

    Raises:
        ConfigError: the folder holds something, or cannot be made.
    """
    folder = RunFolder(make(Path(config.run.dir), name, run_dir))
    folder.config.write_text(configs.to_toml(config), encoding="utf-8")
    return folder


def reopen(path: Path, overrides: Iterable[str]) -> tuple[RunFolder, Config]:
    """The folder and settings of a run to continue.

    Args:
        path: of the run.
        overrides: only run.*, except its seed, and eval.batch_size may change: anything else would
            be another curve.

    Raises:
        ConfigError: there is no such run, or an override may not change.
    """
    folder = RunFolder(path)
    texts = check_resumed(folder, overrides, _MAY_CHANGE)
    config = configs.load(folder.config, texts)
    if texts:
        folder.config.write_text(configs.to_toml(config), encoding="utf-8")
    return folder, config


def record(folder: RunFolder, config: Config) -> None:
    """Adds this session to run.json; a resumed run has several."""
    provenance.record(folder.info, provenance.describe(config.run.seed, _PACKAGES))
