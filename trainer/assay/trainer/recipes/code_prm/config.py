"""Settings of `assay code-prm`: a TOML file and `key=value` overrides become one frozen value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.trainer.recipes.code_prm.problems import FAMILIES, Family
from assay.trainer.settings import config as configs
from assay.trainer.settings import presets
from assay.trainer.settings.config import Config
from assay.trainer.settings.kinds import NonNegative, Positive, PositiveFloat, Ratio, Strict, Text
from assay.trainer.settings.overrides import merged

Kept = Literal["full", "remove-hard", "revised-only"]


@dataclass(frozen=True, slots=True)
class ProblemsConfig(Strict):
    """What programs are written for."""

    source: Literal["generated", "jsonl"] = "generated"
    """generated: problems of our own (`families`). jsonl: `path`, rows with the columns of the
    training config's [data.columns], "question" and "tests" for the preset."""
    path: str = ""
    eval_path: str = ""
    """jsonl: for the evaluation; without it, rows are held out of `path`."""
    families: Annotated[tuple[Family, ...], Field(min_length=1)] = FAMILIES
    size: Positive = 600
    """generated: how many, without those of the evaluation."""
    held_out: Positive = 100
    """generated: for the evaluation."""
    instruction: str = "\nAnswer with one Python function in a fenced block."
    """generated: follows each question."""
    seed: NonNegative = 0


@dataclass(frozen=True, slots=True)
class RunsConfig(Strict):
    """Runs of another command."""

    config: Text
    """Its config file, relative to this file."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Of all of these runs."""


@dataclass(frozen=True, slots=True)
class TrainConfig(RunsConfig):
    """Both runs of `assay train`: the baseline by unit tests, and the dense one."""

    config: Text = "../code_prm.toml"
    baseline: dict[str, Any] = field(default_factory=dict)
    """Of the baseline alone."""
    dense: dict[str, Any] = field(default_factory=dict)
    """Of the dense run alone."""


@dataclass(frozen=True, slots=True)
class SamplesConfig(Strict):
    """Programs to label, drawn from checkpoints of the baseline."""

    checkpoints: Positive = 4
    """Evenly spaced; the last is the end (arXiv 2410.17621)."""
    per_prompt: Positive = 4
    """Of each checkpoint."""
    prompts: NonNegative = 0
    """The first so many training problems; 0 for all."""
    temperature: PositiveFloat = 1.0
    batch: Positive = 64
    """Responses generated at a time."""


@dataclass(frozen=True, slots=True)
class LabelsConfig(Strict):
    """Labels of lines, by `assay label-code`; the baseline's last policy completes."""

    completions: Positive = 20
    """K (arXiv 2410.17621)."""
    max_tokens: NonNegative = 0
    """Of a completion; 0 takes rollout.max_new_tokens."""
    at_once: Positive = 4
    """Programs searched at the same time."""
    timeout_s: PositiveFloat = 300.0
    keep: Kept = "revised-only"
    """Rows for the PRM. full: all. remove-hard: none without a feasible line. revised-only: only
    failing programs with a feasible line, the paper's best; the names' meaning is our reading
    [derivation]."""
    max_fault_ratio: Ratio = 0.2
    """A larger share of programs without labels stops the pipeline."""


@dataclass(frozen=True, slots=True)
class PrmConfig(RunsConfig):
    """The process reward model, by `assay train-rm`; it starts from the start policy."""

    config: Text = "../rm-code.toml"


@dataclass(frozen=True, slots=True)
class GuardsConfig(Strict):
    """Guards against hacking of dense rewards."""

    neutral_comments: bool = True
    """Comments are labelled 0 and earn nothing. Off: they count like code."""
    span_normalisation: bool = True
    """The scores of lines are divided by their number."""


@dataclass(frozen=True, slots=True)
class StartConfig(Strict):
    """The start models."""

    policy: Text = "smollm2-135m-instruct"
    """A folder, a hub name, or `smollm2-135m-instruct`: a model fine-tuned to write programs. Both
    runs and the PRM start from it."""
    value_init: bool = True
    """The critic of the dense run starts from the PRM."""
    seed: NonNegative = 0


@dataclass(frozen=True, slots=True)
class PipelineConfig(Strict):
    """The whole pipeline."""

    start: StartConfig = field(default_factory=StartConfig)
    problems: ProblemsConfig = field(default_factory=ProblemsConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    samples: SamplesConfig = field(default_factory=SamplesConfig)
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    prm: PrmConfig = field(default_factory=PrmConfig)
    guards: GuardsConfig = field(default_factory=GuardsConfig)


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The settings of every stage, checked before the first begins."""

    config: PipelineConfig  # of the pipeline
    baseline: Config  # of the run by unit tests
    dense: Config  # of the run with the PRM's rewards
    rm_config: Path  # path of train-rm's config

    @property
    def language(self) -> str:
        """As the sandbox names it."""
        return str(self.dense.reward.parameters.get("language", "python"))

    @property
    def extraction(self) -> str:
        """Which part of a response is the program; see the verifier `code`."""
        return str(self.dense.reward.parameters.get("extraction", "last"))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Optimizer steps after which the baseline's samples are drawn."""
        steps, count = self.baseline.run.steps, self.config.samples.checkpoints
        each = steps // count * self.baseline.updates_per_rollout
        return tuple(each * number for number in range(1, count + 1))


def load(path: Path, overrides: Iterable[str], folder: Path) -> PipelinePlan:
    """Reads a pipeline file, whose output goes to `folder`.

    Raises:
        ConfigError: the file or one that it names cannot be read, or settings do not fit.
    """
    path = presets.find(path)
    tree = toml_config.read(path, examples=presets.known("pipelines"))
    config = toml_config.build(PipelineConfig, tree, overrides, origin=str(path))
    for wrong in _missing(config.problems):
        raise ConfigError(f"{path}: {wrong}")
    base = toml_config.read(path.parent / config.train.config)
    rm_config = path.parent / config.prm.config
    toml_config.read(rm_config, examples="configs/rm-code.toml is an example")
    origin = f"{path}, [train]"
    below, _ = configs.current(base, origin=str(path.parent / config.train.config))
    both, alone, dense_alone = (
        configs.current(tree, origin=origin)[0]
        for tree in (config.train.overrides, config.train.baseline, config.train.dense)
    )
    common = merged(merged(below, both), _common(config, folder))
    baseline = configs.build(_baseline(merged(common, alone), config), origin=f"{origin}, baseline")
    dense = configs.build(
        _dense(merged(common, dense_alone), config, folder), origin=f"{origin}, dense"
    )
    for wrong in _conflicts(config, baseline, dense):
        raise ConfigError(f"{path}: {wrong}")
    return PipelinePlan(config, baseline, dense, rm_config)


def _common(config: PipelineConfig, folder: Path) -> dict[str, Any]:
    problems = config.problems
    data: dict[str, Any] = {"path": problems.path, "eval_path": problems.eval_path}
    if problems.source == "generated":
        kept = folder / "problems"
        data = {"path": str(kept / "train.jsonl"), "eval_path": str(kept / "eval.jsonl")}
        data["columns"] = {"prompt": "question", "tests": "tests"}
    return {
        "model": {"name": config.start.policy},
        "data": {"source": "jsonl", **data},
        "run": {"seed": config.start.seed},
    }


def _baseline(tree: dict[str, Any], config: PipelineConfig) -> dict[str, Any]:
    """Unit tests alone, a critic from the policy, and checkpoints to draw samples from."""
    reward = tree.get("reward", {})
    told = reward.get("parameters", {})
    kept = {name: told[name] for name in ("language", "extraction") if name in told}
    count, steps = config.samples.checkpoints, tree.get("run", {}).get("steps", 100)
    every = steps // count if isinstance(steps, int) else 0
    method = {name: table for name, table in tree.get("method", {}).items() if name != "dense"}
    changes = {
        "method": {"name": "code-baseline", "critic": {"init": "policy"}},
        "run": {"name": "baseline", "checkpoint_every": every, "keep_checkpoints": count},
    }  # fmt: skip
    reward = {**reward, "verifier": "code", "parameters": kept}
    return merged({**tree, "method": method, "reward": reward}, changes)


def _dense(tree: dict[str, Any], config: PipelineConfig, folder: Path) -> dict[str, Any]:
    """The PRM's rewards of lines, by the guards that are on."""
    critic = str(folder / "prm" / "model") if config.start.value_init else "policy"
    guards = config.guards
    changes = {
        "method": {"dense": {"normalise": guards.span_normalisation}, "critic": {"init": critic}},
        "reward": {
            "parameters": {"splitting": "code-line" if guards.neutral_comments else "line"},
        },
        "run": {"name": "dense"},
    }  # fmt: skip
    return merged(tree, changes)


def _missing(problems: ProblemsConfig) -> Iterable[str]:
    if problems.source == "jsonl" and not problems.path:
        yield 'problems.path is missing, which problems.source = "jsonl" needs; name a file'
    if problems.source == "generated" and problems.path:
        yield 'problems.path is not read with problems.source = "generated"; set "jsonl"'


def _conflicts(config: PipelineConfig, baseline: Config, dense: Config) -> Iterable[str]:
    steps = baseline.run.steps
    if not dense.data.columns.tests:
        yield "[train]: data.columns.tests is missing: the column with the tests of a program"
    if steps % config.samples.checkpoints:
        yield (
            f"samples.checkpoints = {config.samples.checkpoints} does not divide the {steps} steps "
            "of the baseline (run.steps)"
        )
    if dense.model.lora.rank:
        yield (
            "[train]: model.lora.rank must be 0: the checkpoints that samples are drawn from hold "
            "whole models"
        )
    if not dense.method.dense.weight:
        yield "[train]: method.dense.weight is 0, so that the PRM would be trained for nothing"
    if dense.rollout.backend == "vllm" and baseline.rollout.vllm.mode == "server":
        yield '[train]: rollout.vllm.mode = "server" serves one run; use "colocate"'


def to_toml(plan: PipelinePlan) -> str:
    """The settings as TOML, with a digest of the files that they name."""
    parts = (plan.baseline, plan.dense)
    told = "".join(map(configs.to_toml, parts)) + plan.rm_config.read_text(encoding="utf-8")
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    heading = "The complete settings of this pipeline, whose paths are relative to its own file."
    return toml_config.to_toml(plan.config, f"{heading} Configs: {digest}.")
