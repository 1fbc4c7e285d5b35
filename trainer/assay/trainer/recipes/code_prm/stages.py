"""The stages of the pipeline: their output, when it is complete, and their commands.

    problems   problems/train.jsonl, eval.jsonl   generated, unless a file is given
    baseline   baseline/                          `assay train` by unit tests
    samples    samples/<steps>.jsonl              responses of its checkpoints; then programs.jsonl
    labels     labels.jsonl                       `assay label-code`; then steps.jsonl
    prm        prm/                               `assay train-rm`
    dense      dense/                             `assay train` with the PRM's rewards

programs.jsonl and steps.jsonl appear by one rename, when the stage before them is complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows, write_rows
from assay.trainer.recipes.code_prm.config import PipelinePlan
from assay.trainer.recipes.code_prm.problems import generate
from assay.trainer.recipes.code_prm.rows import prm_rows, program_rows
from assay.trainer.records.folder import Inside, RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from assay.trainer.settings.overrides import flat

STAGES = ("problems", "baseline", "samples", "labels", "prm", "dense")
PRM = "prm"


@dataclass(frozen=True, slots=True)
class Paths:
    """The stages' files."""

    path: Path

    config = Inside("code_prm.toml")  # the complete settings
    problems = Inside("problems")  # those that were generated
    programs = Inside("programs.jsonl")  # what `assay label-code` reads
    labels = Inside("labels.jsonl")  # what it writes
    steps = Inside("steps.jsonl")  # what `assay train-rm` reads
    models = Inside("models.toml")  # of the genrm that serves the PRM
    times = Inside("stages.jsonl")  # one row for each session of a stage

    def run(self, name: str) -> RunFolder:
        """The folder of a run: baseline, prm or dense."""
        return RunFolder(self.path / name)

    def settings(self, name: str) -> Path:
        """The config file of a run."""
        return self.path / f"{name}.toml"

    def samples(self, checkpoint: int) -> Path:
        """Responses of a checkpoint."""
        return self.path / "samples" / f"{checkpoint}.jsonl"

    def is_whole(self, stage: str) -> bool:
        """Whether a stage is complete."""
        return {
            "problems": self.problems / "eval.jsonl",
            "baseline": self.run("baseline").path / "report.json",
            "samples": self.programs,
            "labels": self.steps,
            "prm": self.run("prm").path / "report.json",
            "dense": self.run("dense").path / "report.json",
        }[stage].is_file()


def make_problems(plan: PipelinePlan, paths: Paths) -> None:
    """Writes generated problems; evaluation and training share none.

    Raises:
        ConfigError: the families have fewer different ones.
    """
    wanted = plan.config.problems
    try:
        rows = generate(
            wanted.families, wanted.size + wanted.held_out, wanted.seed, wanted.instruction
        )
    except ValueError as error:
        raise ConfigError(f"problems.size: {error}; lower it, or name more families") from error
    write_rows(paths.problems / "train.jsonl", rows[: wanted.size])
    write_rows(paths.problems / "eval.jsonl", rows[wanted.size :])


def train_arguments(config: Config, paths: Paths, name: str, target: str) -> list[str]:
    """For `assay train`, of a new or an interrupted run."""
    folder, address = paths.run(name), f"reward.target={target}"
    if folder.config.is_file():
        return ["train", address, "--resume", str(folder.path)]
    settings = paths.settings(name)
    settings.write_text(configs.to_toml(config), encoding="utf-8")
    return ["train", str(settings), address, "--run-dir", str(folder.path)]


def label_arguments(plan: PipelinePlan, paths: Paths, sandbox: str) -> list[str]:
    """For `assay label-code`: the baseline's last policy completes."""
    labels = plan.config.labels
    words: dict[str, object] = {
        "model": paths.run("baseline").model,
        "sandbox": sandbox,
        "samples": labels.completions,
        "max-tokens": labels.max_tokens or plan.baseline.rollout.max_new_tokens,
        "temperature": plan.config.samples.temperature,
        "seed": plan.config.start.seed,
        "language": plan.language,
        "at-once": labels.at_once,
        "timeout-s": labels.timeout_s,
    }
    flags = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    bare = [] if plan.config.guards.neutral_comments else ["--label-comments"]
    return ["label-code", str(paths.programs), str(paths.labels), *flags, *bare]


def train_rm_arguments(plan: PipelinePlan, paths: Paths) -> list[str]:
    """For `assay train-rm`: from the start policy, on the labels."""
    folder = paths.run("prm")
    if folder.config.is_file():
        return ["train-rm", "--resume", str(folder.path)]
    told = {
        "run.seed": plan.config.start.seed,
        "run.name": PRM,
        "model.name": plan.config.start.policy,
        **flat(plan.config.prm.overrides),
        "data.source": "jsonl",
        "data.paths": [str(paths.steps)],
        "data.labels": "signed",
        "method.kind": "prm",
    }
    pairs = [f"{key}={json.dumps(value)}" for key, value in told.items()]
    return ["train-rm", str(plan.rm_config), *pairs, "--run-dir", str(folder.path)]


def checkpoint_of(paths: Paths, number: int) -> Path:
    """The folder of a baseline's checkpoint. Raises ConfigError: it is gone."""
    folder = paths.run("baseline").checkpoints / f"checkpoint-{number}"
    if not (folder / "manifest.json").is_file():
        raise ConfigError(
            f"{folder} is not there, and samples are drawn from it; remove "
            f"{paths.run('baseline').path} to train the baseline anew"
        )
    return folder


def gather_programs(plan: PipelinePlan, paths: Paths) -> int:
    """Writes programs.jsonl of all samples; its number of rows.

    Raises:
        ConfigError: every response is blank.
    """
    samples = [row for n in plan.checkpoints for row in read_rows(paths.samples(n))]
    rows = program_rows(samples, language=plan.language, extraction=plan.extraction)
    if not rows:
        raise ConfigError(
            f"all {len(samples)} samples of the baseline are blank; start from a policy that was "
            "fine-tuned to write programs"
        )
    write_rows(paths.programs, rows)
    return len(rows)


def gather_steps(plan: PipelinePlan, paths: Paths, unlabelled: int) -> int:
    """Writes steps.jsonl of the labels; its number of rows. `unlabelled` programs had faults.

    Raises:
        ConfigError: too many programs have no labels, or nothing is left to learn from.
    """
    labelled, labels = read_rows(paths.labels), plan.config.labels
    whole = len(labelled) + unlabelled
    if not whole or unlabelled > labels.max_fault_ratio * whole:
        raise ConfigError(
            f"{unlabelled} of {whole} programs have no labels, and labels.max_fault_ratio allows "
            f"{labels.max_fault_ratio:g}; the same command tries them again"
        )
    rows = prm_rows(labelled, labels.keep)
    if not rows:
        raise ConfigError(
            f"labels.keep = {labels.keep!r} leaves none of the {len(labelled)} labelled programs; "
            "draw more samples in another --dir, or keep all"
        )
    write_rows(paths.steps, rows)
    return len(rows)


def write_models(paths: Paths) -> None:
    """The model file of `genrm`, with the PRM."""
    model = json.dumps(str(paths.run("prm").model.resolve()))
    paths.models.write_text(
        f'[model.{PRM}]\npath = {model}\nsplitting = "code-line"\n', encoding="utf-8"
    )
