"""From our settings to TRL's: the one place that knows what our words are called there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from assay.trainer.config import Config
from assay.trainer.data import Problem, render, training_order
from assay.trainer.folder import RunFolder
from assay.trainer.grpo import FaultAwareGRPOTrainer
from assay.trainer.models import Policy
from assay.trainer.rewards import RewardFunction

_LOSS_TYPES = {"token": "dapo", "sequence": "grpo", "constant": "dr_grpo"}


def grpo_config(config: Config, folder: RunFolder, *, on_cuda: bool, mixed: bool) -> GRPOConfig:
    """TRL's settings for a run.

    Args:
        config: ours.
        folder: of the run.
        on_cuda: whether the policy is on a CUDA device.
        mixed: whether its float32 weights compute in bfloat16.
    """
    algorithm, optim, rollout = config.algorithm, config.optim, config.rollout
    accumulation = config.samples_per_step // config.micro_batch
    return GRPOConfig(
        output_dir=str(folder.checkpoints),
        # the batch: one rollout of P * G samples feeds updates_per_rollout optimizer steps
        per_device_train_batch_size=config.micro_batch,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=accumulation,
        num_generations=rollout.group_size,
        num_iterations=algorithm.updates_per_rollout,
        max_steps=config.run.steps,
        shuffle_dataset=False,  # training_order has shuffled: see there
        # the rollout
        max_completion_length=rollout.max_new_tokens,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        **_vllm_settings(config),
        # the loss
        loss_type=_LOSS_TYPES[algorithm.loss_aggregation],
        scale_rewards=algorithm.advantage_scale,
        epsilon=algorithm.clip_low,
        epsilon_high=algorithm.clip_high,
        beta=algorithm.kl_coef,
        mask_truncated_completions=algorithm.mask_truncated,
        # the optimizer
        optim="adamw_torch_fused",
        learning_rate=optim.learning_rate,
        lr_scheduler_type="constant_with_warmup"
        if optim.schedule == "constant"
        else optim.schedule,
        warmup_steps=optim.warmup_steps,
        weight_decay=optim.weight_decay,
        max_grad_norm=optim.max_grad_norm,
        # the machine
        use_cpu=not on_cuda,
        bf16=mixed,
        gradient_checkpointing=config.model.gradient_checkpointing,
        dataloader_pin_memory=on_cuda,
        seed=config.run.seed,
        # records are ours: see callbacks.py
        save_strategy="no",
        logging_steps=1,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        report_to="none",
    )


def _vllm_settings(config: Config) -> dict[str, Any]:
    if config.rollout.backend == "hf":
        return {}
    vllm = config.rollout.vllm
    settings: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": vllm.mode,
        "vllm_gpu_memory_utilization": vllm.gpu_memory_utilization,
        "vllm_tensor_parallel_size": vllm.tensor_parallel_size,
    }
    if vllm.server_url:
        settings["vllm_server_base_url"] = vllm.server_url
    if vllm.max_model_length:
        settings["vllm_max_model_length"] = vllm.max_model_length
    return settings


def training_set(config: Config, problems: Sequence[Problem], tokenizer: Any) -> Dataset:
    """The prompts of every step of the run, in the order in which they come.

    Written out in advance, so that where a run stands in its data is the step number and nothing
    else.
    """
    rollouts = math.ceil(config.run.steps / config.algorithm.updates_per_rollout)
    order = training_order(
        len(problems), rollouts * config.rollout.prompts_per_step, config.data.seed
    )
    rows = Dataset.from_dict(
        {"prompt": [render(p, tokenizer) for p in problems], "problem_id": [p.id for p in problems]}
    )
    return rows.select(order)


def build_trainer(
    config: Config,
    folder: RunFolder,
    policy: Policy,
    problems: Sequence[Problem],
    *,
    rewards: RewardFunction,
    callbacks: list[TrainerCallback],
) -> FaultAwareGRPOTrainer:
    """The trainer of a run, ready to train; it prints nothing by itself."""
    trainer = FaultAwareGRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=rewards,
        args=grpo_config(
            config, folder, on_cuda=policy.model.device.type == "cuda", mixed=policy.mixed
        ),
        train_dataset=training_set(config, problems, policy.tokenizer),
        callbacks=callbacks,
        advantage_scale=config.algorithm.advantage_scale,
    )
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    return trainer
