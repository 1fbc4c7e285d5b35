"""The folder of a run: what lies where, how one is made, and how one is taken up again.

config.toml     the complete settings; `assay train config.toml` repeats the run
run.json        versions, commit, command line, machine
metrics.jsonl   one row per step
samples.jsonl   rollouts with their judgements, every few steps
tensorboard/    the same numbers
checkpoints/    see checkpoints.py
evals.jsonl     evaluations within the run, where eval.every asks for them
anchors.jsonl   the responses to beat, where the initial policy made them
critic-pretrained/   the critic after value pre-training, for other runs as well
postmortem/     what led to a loss that is no number
eval_before.json, eval_after.json   every held-out answer
report.json, report.md, curves.png  the outcome
model/          the trained policy with its tokenizer
adapter/        with LoRA, the adapter alone; model/ has it merged
critic/         the trained value function, where the method has one
verifier/       the run of a verifier that learns beside the policy (cotraining), with its own
                config.toml, metrics.jsonl, samples.jsonl, checkpoints/, curves.png and model/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay.clients.runs import provenance
from assay.clients.runs.folders import RunPaths, check_resumed, make
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

_REPORTED = (
    "assay-trainer",
    "torch",
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "datasets",
    "reasoning-gym",
    "grpcio",
)
_MAY_CHANGE = ("run.", "reward.", "eval.")


@dataclass(frozen=True, slots=True)
class RunFolder(RunPaths):
    """Paths of a run."""

    @property
    def samples(self) -> Path:
        """Rollouts with their judgements."""
        return self.path / "samples.jsonl"

    @property
    def evals(self) -> Path:
        """One row for each evaluation within the run."""
        return self.path / "evals.jsonl"

    @property
    def anchors(self) -> Path:
        """The responses to beat, one row for each problem."""
        return self.path / "anchors.jsonl"

    @property
    def adapter(self) -> Path:
        """With LoRA, what was trained, without the weights beneath it."""
        return self.path / "adapter"

    @property
    def critic(self) -> Path:
        """The trained value function."""
        return self.path / "critic"

    @property
    def pretrained_critic(self) -> Path:
        """The value function before the policy's first step."""
        return self.path / "critic-pretrained"

    @property
    def pretraining(self) -> Path:
        """One row for each step of value pre-training."""
        return self.path / "pretraining.jsonl"

    @property
    def pretraining_checkpoints(self) -> Path:
        """Of value pre-training."""
        return self.path / "pretraining"

    @property
    def postmortem(self) -> Path:
        """What led to a loss that is no number."""
        return self.path / "postmortem"

    @property
    def tensorboard(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    @property
    def curves(self) -> Path:
        """The picture."""
        return self.path / "curves.png"


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
        overrides: only run.*, reward.* and eval.* may change: anything else would be another curve.

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
    provenance.record(folder.info, provenance.describe(config.run.seed, _REPORTED))
