"""Settings of `assay train-rm`: a TOML file and `key=value` overrides become one frozen value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.trainer.records.folder import RunKind
from assay.trainer.settings import presets
from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Strict,
)
from assay.trainer.settings.overrides import with_source
from assay.trainer.settings.reading import given_by, only, other_than, said_of, settled
from assay.trainer.settings.sections import (
    DataSection,
    EvalSection,
    LoraConfig,
    ModelSection,
    OptimSection,
    RunSection,
)

Kind = Literal["pairwise", "pointwise", "critique", "bradley-terry", "prm"]
StepLoss = Literal["cross-entropy", "mse", "regression", "hl-gauss", "two-hot"]
CLASSES: frozenset[StepLoss] = frozenset({"hl-gauss", "two-hot"})
"""Losses of a head whose outputs are classes of scores."""

TINY = "tiny"
_FILES = only("data.source", "jsonl")
_PAIRS = only("method.kind", "pairwise", "bradley-terry")
_PAIRWISE = only("method.kind", "pairwise")
_ASKED = only("method.kind", "pairwise", "pointwise", "critique")
_VERDICTS = only("method.kind", "pairwise", "pointwise")
_STEPS = only("method.kind", "prm")


@dataclass(frozen=True, slots=True)
class RmModelConfig(ModelSection):
    """What is trained; `tiny` names a small random Llama with a tokenizer of the training text."""

    layers: NonNegative = 0
    """Keep only the first layers; 0 keeps all."""
    train_layers: NonNegative = 0
    """Train only the last layers and the head; 0 trains everything."""
    precision: Literal["auto", "float32", "mixed"] = "auto"
    """mixed: float32 weights that compute in bfloat16. auto: mixed on CUDA, else float32."""
    lora: LoraConfig = field(default_factory=LoraConfig)


@dataclass(frozen=True, slots=True)
class TinyConfig(Strict):
    """The model `tiny`."""

    hidden: Annotated[int, Field(ge=32, multiple_of=32)] = 128
    layers: Positive = 2
    vocabulary: Annotated[int, Field(ge=300)] = 4096


@dataclass(frozen=True, slots=True)
class CleanConfig(Strict):
    """Rows to leave out, counted by rule; see assay.trainer.recipes.reward_model.cleaning."""

    duplicates: bool = False
    """The same prompt and responses again."""
    contradictions: bool = False
    """The same prompt and responses with opposite labels."""
    ties: Annotated[bool, _PAIRS] = False
    """Pairs whose own scores (`score_chosen`, `score_rejected`) are equal."""
    least_chars: NonNegative = 0
    """Responses with fewer characters; 0 keeps all."""
    against: tuple[str, ...] = ()
    """Files of benchmarks, .jsonl or .jsonl.gz: prompts that overlap with theirs."""
    judged: Annotated[tuple[str, ...], _PAIRS] = ()
    """Pairs whose better response another judge does not score higher: what `assay eval-judge -o`
    wrote about each file of data.paths, in their order. A fault of it says nothing."""
    least_margin: Annotated[NonNegativeFloat, other_than("data.clean.judged", ())] = 0.0
    """judged: how much higher; in probability, or in a scalar head's logits."""


@dataclass(frozen=True, slots=True)
class RmDataConfig(DataSection):
    """Pairs, labelled responses, critiques, or responses in steps; see assay.clients.rows."""

    source: Literal["jsonl", "hub"] = "jsonl"
    paths: Annotated[tuple[str, ...], _FILES] = ()
    """jsonl: .jsonl or .jsonl.gz files."""
    eval_paths: Annotated[tuple[str, ...], _FILES] = ()
    """jsonl: files for the evaluation; rows of `paths` that share a prompt with them are left out.
    Without it, prompts are held out of `paths`."""
    only_subsets: tuple[str, ...] = ()
    """Keep rows whose field `subset` (or `classification`) is one of these; empty keeps all."""
    styles: Annotated[Literal["same", "cross"], _PAIRS] = "same"
    """Responses in several styles: pair each with its own style, or each with each."""
    labels: Annotated[Literal["binary", "signed"], _STEPS] = "binary"
    """Of steps: 1 right and 0 wrong, or 1 right, -1 wrong and 0 neutral."""
    bad_rows: Literal["stop", "skip"] = "stop"
    clean: CleanConfig = field(default_factory=CleanConfig)
    max_tokens: Positive = 1024
    """Longer dialogues: a pair's are cut in the middle of a response where that helps, else left
    out and counted; a response in steps is left out."""


@dataclass(frozen=True, slots=True)
class MethodConfig(Strict):
    """What is learned."""

    kind: Kind = "pairwise"
    """pairwise: a language model that names the better of two responses. pointwise: one that says
    whether a response is right. critique: one that writes critiques, by the cross-entropy of
    written ones. bradley-terry: one number for a response. prm: a probability for each step to be
    right."""
    template: Annotated[str, _ASKED] = ""
    """Language models: "name" or "name@version" of the judge's prompt; empty for the default, which
    for pointwise is `correctness` where all rows have a ground truth, else `quality`."""
    templates: Annotated[tuple[str, ...], _ASKED] = ()
    """Language models: folders with further templates."""
    orders: Annotated[Literal["both", "one"], _PAIRWISE] = "both"
    """pairwise: show every pair in both orders, or in one that the seed draws."""
    consistency: Annotated[NonNegativeFloat, _PAIRWISE] = 0.0
    """pairwise: weight of the squared difference between the orders; needs both."""
    mass: Annotated[NonNegativeFloat, _VERDICTS] = 1.0
    """pairwise, pointwise: weight of -log of the share of the probability that both verdicts hold.
    1: the cross-entropy over all words; 0: of the two alone, with which a judge may not say
    either."""
    center: Annotated[NonNegativeFloat, only("method.kind", "bradley-terry")] = 0.0
    """bradley-terry: weight of the squared sum of both numbers, which centres them at 0."""
    loss: Annotated[StepLoss, _STEPS] = "cross-entropy"
    """prm. cross-entropy and mse: two outputs, whose difference is the log-odds of "right".
    regression: one output from -1 wrong to 1 right (arXiv 2410.17621). hl-gauss, two-hot: the mean
    of classes from -1 to 1 (arXiv 2403.03950). A critic can start with either of the three."""
    bins: Annotated[int, Field(ge=3), only("method.loss", *sorted(CLASSES))] = 51
    """hl-gauss, two-hot: classes, whose centres go from -1 to 1."""
    balance: Annotated[bool, _STEPS] = True
    """prm: wrong steps together weigh as much as right ones."""


@dataclass(frozen=True, slots=True)
class RmOptimConfig(OptimSection):
    """How it is optimised."""

    learning_rate: PositiveFloat = 2e-5
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    batch: Positive = 8
    """Pairs, or responses in steps, per step, over all processes."""
    micro_batch: NonNegative = 0
    """Of them per forward and backward pass of one process; 0 for its whole share."""


@dataclass(frozen=True, slots=True)
class RmEvalConfig(EvalSection):
    """The evaluation on held-out prompts, before and after."""

    prompts: NonNegative = 200
    """How many to hold out, with all their rows; 0 for no evaluation. Of separate files or splits:
    at most so many; 0 for all."""
    batch_size: Positive = 16
    before: bool = True
    """Evaluate the untrained model too."""


@dataclass(frozen=True, slots=True)
class RmRunConfig(RunSection):
    """The run itself."""

    steps: Positive = 200
    checkpoint_every: NonNegative = 100
    keep_checkpoints: Positive = 1
    log_every: Positive = 10
    """Steps between rows of metrics.jsonl."""


@dataclass(frozen=True, slots=True)
class RmConfig(Strict):
    """A whole run; every field has a default."""

    model: RmModelConfig = field(default_factory=RmModelConfig)
    tiny: Annotated[TinyConfig, only("model.name", TINY)] = field(default_factory=TinyConfig)
    data: RmDataConfig = field(default_factory=RmDataConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    optim: RmOptimConfig = field(default_factory=RmOptimConfig)
    eval: RmEvalConfig = field(default_factory=RmEvalConfig)
    run: RmRunConfig = field(default_factory=RmRunConfig)

    def micro_batch(self, processes: int = 1) -> int:
        """Rows per forward and backward pass of one process."""
        return self.optim.micro_batch or self.optim.batch // processes


def load(path: Path, overrides: Iterable[str] = (), *, saved: bool = False) -> RmConfig:
    """Reads a config file and applies overrides; raises as `build`, or for an unreadable file.

    `saved`: the file is that of a run that goes on, and what it did not read is left out.
    """
    tree = toml_config.read(presets.find(path), examples=presets.known())
    return build(tree, overrides, origin=str(path), saved=saved)


def reload(path: Path, overrides: Iterable[str] = ()) -> RmConfig:
    """The settings of a run that goes on; raises as `load`."""
    return load(path, overrides, saved=True)


def build(
    tree: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str, saved: bool = False
) -> RmConfig:
    """A RmConfig from nested tables and overrides.

    Raises:
        ConfigError: a setting is unknown, of a wrong type, out of range or not read, or two do not
            fit.
    """
    try:
        texts = with_source(tree, overrides, file="paths")
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    config = toml_config.build(RmConfig, tree, texts, origin=origin)
    try:
        config = settled(config, layers=[given_by(texts)], lenient=saved, say=said_of(origin))
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    for wrong in _conflicts(config):
        raise ConfigError(f"{origin}: {wrong}")
    return config


def _conflicts(config: RmConfig) -> Iterable[str]:
    data, method, optim = config.data, config.method, config.optim
    if data.source == "jsonl" and not data.paths:
        yield 'data.paths is missing, which data.source = "jsonl" needs; name files'
    if data.source == "hub" and not data.name:
        yield 'data.name is missing, which data.source = "hub" needs; name a data set'
    judged = data.clean.judged
    if judged and (data.source != "jsonl" or len(judged) != len(data.paths)):
        yield (
            f"data.clean.judged names {len(judged)} files and data.paths {len(data.paths)}; give "
            "what `assay eval-judge -o` wrote about each"
        )
    if optim.batch % config.micro_batch():
        yield f"optim.micro_batch = {optim.micro_batch} does not divide the batch of {optim.batch}"
    if method.consistency and method.orders == "one":
        yield 'method.consistency needs method.orders = "both"'
    if config.model.name == TINY and config.model.layers:
        yield "model.layers cuts a pretrained model; set tiny.layers"
    lora = config.model.lora
    if lora.rank and config.model.name == TINY:
        yield "model.lora trains adapters of a pretrained model, and tiny has only random weights"
    if lora.rank and config.model.train_layers:
        yield "model.lora.rank and model.train_layers both say what learns; take one of the two out"
    if lora.base != "float32" and not lora.rank:
        yield "model.lora.base is for weights beneath adapters; set model.lora.rank"


def to_toml(config: RmConfig) -> str:
    """The whole config as TOML; `load` inverts it."""
    return toml_config.to_toml(
        config, "The complete settings of this run. `assay train-rm` reads this file."
    )


RUNS = RunKind(
    "train-rm",
    "configs/rm-pairwise.toml",
    load=load,
    reload=reload,
    build=build,
    to_toml=to_toml,
    may_change=("run.", "eval.batch_size="),
)
