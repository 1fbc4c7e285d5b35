"""The three kinds of judge, each a table row: how rows become examples, what trains, what measures.

A further kind is one more entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from trl.trainer.reward_config import RewardConfig

from assay.clients.preferences import PairRow, StepRow
from assay.clients.rendering import Renderer
from assay.trainer.engines.models import Loaded
from assay.trainer.recipes.reward_model import encoding, evaluation
from assay.trainer.recipes.reward_model.config import Config, Kind
from assay.trainer.recipes.reward_model.encoding import Examples
from assay.trainer.recipes.reward_model.evaluation import Evaluation
from assay.trainer.recipes.reward_model.trainers import (
    BradleyTerryTrainer,
    PairCollator,
    PairwiseTrainer,
    StepCollator,
    StepTrainer,
)
from assay.trainer.records.folder import RunFolder

Encode = Callable[[Sequence[Any], Renderer, Any, Config], Examples]
Build = Callable[[Config, Loaded, Examples, dict[str, Any]], Trainer]
Evaluate = Callable[[Loaded, Examples, int, Callable[[int], None]], Evaluation]


@dataclass(frozen=True, slots=True)
class KindOf:
    """How one kind is trained.

    Attributes:
        encode: rows to examples, by a renderer and a tokenizer.
        build: the trainer, from settings, model, examples and Trainer's common arguments.
        evaluate: the figures on held-out examples.
        arguments: Trainer's settings class.
    """

    encode: Encode
    build: Build
    evaluate: Evaluate
    arguments: type[TrainingArguments] = TrainingArguments


def _encode_pairs(
    rows: Sequence[PairRow], renderer: Renderer, tokenizer: Any, config: Config
) -> Examples:
    return encoding.encode_pairs(rows, renderer, tokenizer, max_tokens=config.data.max_tokens)


def _encode_preferences(
    rows: Sequence[PairRow], renderer: Renderer, tokenizer: Any, config: Config
) -> Examples:
    return encoding.encode_preferences(rows, renderer, tokenizer, max_tokens=config.data.max_tokens)


def _encode_steps(
    rows: Sequence[StepRow], renderer: Renderer, tokenizer: Any, config: Config
) -> Examples:
    return encoding.encode_steps(
        rows,
        renderer,
        tokenizer,
        max_tokens=config.data.max_tokens,
        balance=config.method.balance,
    )


def _pairwise(
    config: Config, learner: Loaded, examples: Examples, common: dict[str, Any]
) -> Trainer:
    items = [{key: item[key] for key in ("orders", "signs")} for item in examples.items]
    if config.method.orders == "one":
        items = encoding.one_order(items, config.run.seed)
    assert examples.options is not None  # noqa: S101  # encode_pairs made them
    return PairwiseTrainer(
        train_dataset=Dataset.from_list(items),
        data_collator=PairCollator(learner.tokenizer.pad_token_id),
        method=config.method,
        options=examples.options,
        **common,
    )


def _bradley_terry(
    _config: Config, _learner: Loaded, examples: Examples, common: dict[str, Any]
) -> Trainer:
    items = [{key: item[key] for key in ("chosen_ids", "rejected_ids")} for item in examples.items]
    return BradleyTerryTrainer(train_dataset=Dataset.from_list(items), **common)


def _prm(config: Config, learner: Loaded, examples: Examples, common: dict[str, Any]) -> Trainer:
    keys = ("ids", "places", "labels", "weights")
    items = [{key: item[key] for key in keys} for item in examples.items]
    return StepTrainer(
        train_dataset=Dataset.from_list(items),
        data_collator=StepCollator(learner.tokenizer.pad_token_id),
        method=config.method,
        **common,
    )


KINDS: Mapping[Kind, KindOf] = {
    "pairwise": KindOf(_encode_pairs, _pairwise, evaluation.evaluate_pairwise),
    "bradley-terry": KindOf(
        _encode_preferences, _bradley_terry, evaluation.evaluate_preferences, RewardConfig
    ),
    "prm": KindOf(_encode_steps, _prm, evaluation.evaluate_steps),
}


def build_trainer(
    config: Config,
    folder: RunFolder,
    learner: Loaded,
    examples: Examples,
    callbacks: list[TrainerCallback],
    *,
    processes: int,
) -> Trainer:
    """The trainer of a run, ready to train; it prints nothing by itself."""
    kind = KINDS[config.method.kind]
    settings = _settings(config, folder, learner, processes)
    if kind.arguments is RewardConfig:
        settings["max_length"] = None  # the examples fit already
        settings["center_rewards_coefficient"] = config.method.center or None
    common = {
        "model": learner.model,
        "args": kind.arguments(**settings),
        "processing_class": learner.tokenizer,
        "callbacks": callbacks,
    }
    trainer = kind.build(config, learner, examples, common)
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    return trainer


def _settings(config: Config, folder: RunFolder, learner: Loaded, processes: int) -> dict[str, Any]:
    """Trainer's settings."""
    micro_batch = config.micro_batch(processes)
    optim, on_cuda = config.optim, learner.model.device.type == "cuda"
    return {
        "output_dir": str(folder.checkpoints),
        "max_steps": config.run.steps,
        "per_device_train_batch_size": micro_batch,
        "gradient_accumulation_steps": optim.batch // (micro_batch * processes),
        "learning_rate": optim.learning_rate,
        "lr_scheduler_type": optim.schedule
        if optim.schedule != "constant"
        else "constant_with_warmup",
        "warmup_steps": optim.warmup_steps,
        "weight_decay": optim.weight_decay,
        "max_grad_norm": optim.max_grad_norm,
        "use_cpu": not on_cuda,
        "bf16": learner.mixed,
        "gradient_checkpointing": config.model.gradient_checkpointing,
        "ddp_find_unused_parameters": False,
        "dataloader_pin_memory": on_cuda,
        "dataloader_drop_last": False,
        "remove_unused_columns": False,
        "seed": config.run.seed,
        # records are ours: see callbacks.py
        "save_strategy": "no",
        "logging_steps": config.run.log_every,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "report_to": "none",
    }
