"""The kinds of judge, each a table entry: examples, training, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from torch import Tensor
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from trl.trainer.reward_config import RewardConfig

from assay.clients.judging.rendering import Renderer
from assay.trainer.engines.models import Loaded
from assay.trainer.recipes.reward_model import encoding, evaluation
from assay.trainer.recipes.reward_model.config import CLASSES, Kind, RmConfig
from assay.trainer.recipes.reward_model.encoding import Example, Examples
from assay.trainer.recipes.reward_model.evaluation import RmEvaluation
from assay.trainer.recipes.reward_model.objectives import (
    critique_loss,
    pairwise_loss,
    step_class_loss,
    step_loss,
)
from assay.trainer.recipes.reward_model.trainers import (
    BradleyTerryTrainer,
    CritiqueCollator,
    LossTrainer,
    PairCollator,
    StepCollator,
    pair_verdicts,
    step_margins,
    step_outputs,
    written_logits,
)
from assay.trainer.records.folder import RunFolder

Encode = Callable[[Sequence[Any], Renderer, Any, RmConfig], Examples]
Build = Callable[[RmConfig, Loaded, Examples, dict[str, Any]], Trainer]
Evaluate = Callable[[Loaded, Examples, int, Callable[[int], None]], RmEvaluation]


@dataclass(frozen=True, slots=True)
class KindOf:
    """How one kind is trained."""

    encode: Encode  # rows to examples, by a renderer and a tokenizer
    build: Build  # the trainer, from settings, model, examples and Trainer's common arguments
    evaluate: Evaluate  # the figures on held-out examples
    arguments: type[TrainingArguments] = TrainingArguments  # Trainer's settings class


def _pairwise(
    config: RmConfig, learner: Loaded, examples: Examples, common: dict[str, Any]
) -> Trainer:
    items = _columns(examples, "orders", "signs", "verdicts")
    if config.method.orders == "one":
        items = encoding.one_order(items, config.run.seed)
    method = config.method

    def loss(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        margins_BR, log_masses_BR = pair_verdicts(model, batch)
        made = pairwise_loss(margins_BR, log_masses_BR, method.consistency, method.mass)
        return made, margins_BR

    collator = PairCollator(learner.tokenizer.pad_token_id)
    dataset = Dataset.from_list(items)
    return LossTrainer(train_dataset=dataset, data_collator=collator, loss=loss, **common)


def _critique(
    _config: RmConfig, learner: Loaded, examples: Examples, common: dict[str, Any]
) -> Trainer:
    def loss(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        logits_BTV, margins_B = written_logits(model, batch)
        return critique_loss(logits_BTV, batch["ids"], batch["written"]), margins_B

    collator = CritiqueCollator(learner.tokenizer.pad_token_id)
    dataset = Dataset.from_list(_columns(examples, "ids", "written", "place", "options"))
    return LossTrainer(train_dataset=dataset, data_collator=collator, loss=loss, **common)


def _bradley_terry(
    _config: RmConfig, _learner: Loaded, examples: Examples, common: dict[str, Any]
) -> Trainer:
    dataset = Dataset.from_list(_columns(examples, "chosen_ids", "rejected_ids"))
    return BradleyTerryTrainer(train_dataset=dataset, **common)


def _prm(config: RmConfig, learner: Loaded, examples: Examples, common: dict[str, Any]) -> Trainer:
    def loss(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        outputs_SK, kind = step_outputs(model, batch), config.method.loss
        margins_S = step_margins(outputs_SK)
        told = (batch["labels"], batch["weights"], kind)
        if kind in CLASSES:
            return step_class_loss(outputs_SK, *told), margins_S
        return step_loss(margins_S, *told), margins_S

    collator = StepCollator(learner.tokenizer.pad_token_id)
    dataset = Dataset.from_list(_columns(examples, "ids", "places", "labels", "weights"))
    return LossTrainer(train_dataset=dataset, data_collator=collator, loss=loss, **common)


def _columns(examples: Examples, *keys: str) -> list[Example]:
    return [{key: item[key] for key in keys} for item in examples.items]


KINDS: Mapping[Kind, KindOf] = {
    "pairwise": KindOf(encoding.encode_pairs, _pairwise, evaluation.evaluate_pairwise),
    "pointwise": KindOf(encoding.encode_points, _pairwise, evaluation.evaluate_points),
    "critique": KindOf(encoding.encode_critiques, _critique, evaluation.evaluate_critiques),
    "bradley-terry": KindOf(
        encoding.encode_preferences, _bradley_terry, evaluation.evaluate_preferences, RewardConfig
    ),
    "prm": KindOf(encoding.encode_steps, _prm, evaluation.evaluate_steps),
}


def build_trainer(
    config: RmConfig,
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


def _settings(
    config: RmConfig, folder: RunFolder, learner: Loaded, processes: int
) -> dict[str, Any]:
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
