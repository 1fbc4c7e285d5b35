"""The folder of a run: what lies where, how one is made, and how one is taken up again.

config.toml     the complete settings; `assay train config.toml` repeats the run
run.json        versions, commit, command line, machine, and the data with their digest
metrics.jsonl   one row per step, or every few steps
samples.jsonl   rollouts with their judgements, every few steps
rollouts/       every rollout, a file a step; see assay.kit.runs.rollouts
journal.sqlite  every verdict of the run, where it started its own reward service
tensorboard/    the same numbers
checkpoints/    see checkpoints.py
evals.jsonl     evaluations within the run, where eval.every asks for them
anchors.jsonl   the responses to beat, where the initial policy made them
pretraining.jsonl, pretraining/     steps of value pre-training, and its checkpoints
critic-pretrained/   the critic after value pre-training, for other runs as well
postmortem/     what led to a loss that is no number
eval_before.json, eval_after.json   every held-out answer
report.json, report.md, curves.png  the outcome
model/          the trained policy with its tokenizer
adapter/        with LoRA, the adapter alone; model/ has it merged
critic/         the trained value function, where the method has one
verifier/       the run of a verifier that learns beside the policy (cotraining), with its own
                config.toml, metrics.jsonl, samples.jsonl, checkpoints/, curves.png and model/
tokenizer/      of a reward model from scratch, kept for a resumed run
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from assay.kit.runs import provenance
from assay.kit.runs.folders import RunPaths, check_resumed, make
from assay.trainer.settings import config as configs
from assay.trainer.settings.sections import RunSection

_REPORTED = (
    "assay-rl-trainer", "assay-rl-genrm", "torch", "transformers", "trl", "accelerate", "peft",
    "datasets", "reasoning-gym", "grpcio",
)  # fmt: skip


class _Settings(Protocol):
    @property
    def run(self) -> RunSection:
        """Of the run itself."""


C = TypeVar("C", bound=_Settings)


class _Folder(Protocol):
    @property
    def path(self) -> Path: ...


class Inside:
    """The path of a file or folder within the folder whose class has it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: _Folder, _kind: type[_Folder]) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class RunFolder(RunPaths):
    """Paths of a run; see the module."""

    samples = Inside("samples.jsonl")
    rollouts = Inside("rollouts")
    journal = Inside("journal.sqlite")
    evals = Inside("evals.jsonl")
    anchors = Inside("anchors.jsonl")
    adapter = Inside("adapter")
    critic = Inside("critic")
    pretrained_critic = Inside("critic-pretrained")
    pretraining = Inside("pretraining.jsonl")
    pretraining_checkpoints = Inside("pretraining")
    postmortem = Inside("postmortem")
    tensorboard = Inside("tensorboard")
    curves = Inside("curves.png")
    tokenizer = Inside("tokenizer")

    def keep_evaluation(self, when: str, told: Mapping[str, Any]) -> None:
        """Writes the evaluation `before` or `after`."""
        text = json.dumps(told, ensure_ascii=False, indent=1)
        self.evaluation(when).write_text(f"{text}\n", encoding="utf-8")

    def kept_evaluation(self, when: str) -> dict[str, Any] | None:
        """What was written, if anything."""
        path = self.evaluation(when)
        found: dict[str, Any] | None = None
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
        return found


@dataclass(frozen=True, slots=True)
class RunKind(Generic[C]):
    """A kind of run: how its settings are read and written."""

    command: str  # that trains it: `assay COMMAND`
    example: str  # a config file to begin with, for messages
    load: Callable[[Path, Iterable[str]], C]  # reads a config file, with overrides
    reload: Callable[[Path, Iterable[str]], C]  # the same for that of a run that goes on
    build: Callable[..., C]  # makes settings of nested tables, given their `origin` for messages
    to_toml: Callable[[C], str]  # writes one
    # how the overrides begin that a resumed run takes, its seed excepted: anything else would be
    # another curve
    may_change: tuple[str, ...]

    def create(self, config: C, name: str, run_dir: Path | None) -> RunFolder:
        """Makes the folder of a new run and saves its settings.

        By default it is <run.dir>/<name>-<time>.

        Raises:
            ConfigError: the folder holds something, or cannot be made.
        """
        folder = RunFolder(make(Path(config.run.dir), name, run_dir))
        folder.config.write_text(self.to_toml(config), encoding="utf-8")
        return folder

    def reopen(self, path: Path, overrides: Iterable[str]) -> tuple[RunFolder, C]:
        """The folder and settings of a run to continue.

        Raises:
            ConfigError: there is no such run, or an override may not change.
        """
        folder = RunFolder(path)
        texts = check_resumed(folder, overrides, self.may_change)
        config = self.reload(folder.config, texts)
        if texts:
            folder.config.write_text(self.to_toml(config), encoding="utf-8")
        return folder, config


POLICY_RUNS = RunKind(
    "train",
    "configs/quickstart.toml",
    load=configs.load,
    reload=configs.reload,
    build=configs.build,
    to_toml=configs.to_toml,
    may_change=("run.", "reward.", "eval."),
)
create, reopen = POLICY_RUNS.create, POLICY_RUNS.reopen


def record(folder: RunFolder, config: _Settings, *, data: Mapping[str, Any] | None = None) -> None:
    """Adds this session to run.json, with what its data are; a resumed run has several."""
    session = provenance.describe(config.run.seed, _REPORTED)
    provenance.record(folder.info, session if data is None else {**session, "data": dict(data)})


def recorded_data(folder: RunFolder) -> Mapping[str, Any] | None:
    """What the first session of run.json says of its data; None where it says nothing."""
    if not folder.info.is_file():
        return None
    sessions = json.loads(folder.info.read_text(encoding="utf-8"))["sessions"]
    found: Mapping[str, Any] | None = sessions[0].get("data") if sessions else None
    return found
