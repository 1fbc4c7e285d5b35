"""The table [trl]: options of TRL's GRPOConfig beside those that Assay sets itself. Pure.

What Assay owns is refused with the setting to use. That the rest exists is checked against the
installed TRL before a model is loaded (core/build.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_SETTING: Mapping[str, tuple[str, ...]] = {
    "run.dir": ("output_dir",),
    "run.steps": ("max_steps", "num_train_epochs"),
    "run.seed": ("seed",),
    "run.checkpoint_every": ("save_strategy", "save_steps", "save_only_model"),
    "run.keep_checkpoints": ("save_total_limit",),
    "run.report_to": ("report_to", "run_name", "project"),
    "data.seed": ("data_seed",),
    "model.device": ("use_cpu",),
    "model.precision": ("bf16", "fp16"),
    "model.attention": ("model_init_kwargs",),
    "model.gradient_checkpointing": ("gradient_checkpointing",),
    "model.compile": ("torch_compile",),
    "model.liger": ("use_liger_kernel",),
    "optim.optimizer": ("optim",),
    "optim.learning_rate": ("learning_rate",),
    "optim.schedule": ("lr_scheduler_type",),
    "optim.warmup_steps": ("warmup_steps",),
    "optim.weight_decay": ("weight_decay",),
    "optim.max_grad_norm": ("max_grad_norm",),
    "optim.mini_batches": ("steps_per_generation", "gradient_accumulation_steps"),
    "optim.micro_batch": ("per_device_train_batch_size", "auto_find_batch_size"),
    "optim.epochs": ("num_iterations",),
    "rollout.prompts_per_step": ("generation_batch_size",),
    "rollout.group_size": ("num_generations",),
    "rollout.max_new_tokens": ("max_completion_length",),
    "rollout.temperature": ("temperature",),
    "rollout.top_p": ("top_p",),
    "rollout.top_k": ("top_k",),
    "rollout.backend": (
        "use_vllm",
        "use_transformers_continuous_batching",
        "use_transformers_paged",
        "cache_implementation",
    ),
    "rollout.vllm.mode": ("vllm_mode",),
    "rollout.vllm.server_url": ("vllm_server_base_url",),
    "rollout.vllm.gpu_memory_utilization": ("vllm_gpu_memory_utilization",),
    "rollout.vllm.tensor_parallel_size": ("vllm_tensor_parallel_size",),
    "rollout.vllm.max_model_length": ("vllm_max_model_length",),
    "eval.every": ("eval_strategy", "eval_steps", "eval_on_start", "eval_delay"),
    "eval.batch_size": ("per_device_eval_batch_size",),
    "eval.samples": ("num_generations_eval",),
    "method.advantage.scale": ("scale_rewards",),
    "method.loss.aggregation": ("loss_type",),
    "method.loss.clip_high": ("epsilon_high",),
    "method.loss.clip_low": ("epsilon",),
    "method.loss.dual_clip": ("delta",),
    "method.loss.entropy_coef": ("entropy_coef",),
    "method.loss.importance_correction": (
        "vllm_importance_sampling_correction",
        "vllm_importance_sampling_mode",
        "vllm_importance_sampling_cap",
        "vllm_importance_sampling_clip_max",
        "vllm_importance_sampling_clip_min",
    ),
    "method.loss.kl_coef": ("beta",),
    "method.loss.ratio": ("importance_sampling_level",),
    "method.filter": ("mask_truncated_completions",),
    "reward.verifier": ("reward_weights", "multi_objective_aggregation"),
}
_BY_OTHERS: Mapping[str, tuple[str, ...]] = {
    "the launcher's config says it (accelerate launch --config_file)": (
        "fsdp",
        "fsdp_config",
        "deepspeed",
        "parallelism_config",
        "local_rank",
        "ddp_backend",
        "ddp_timeout",
    ),
    "assay composes the loss by [method]": (
        "sapo_temperature_neg",
        "sapo_temperature_pos",
        "vespo_k_pos",
        "vespo_lambda_pos",
        "vespo_k_neg",
        "vespo_lambda_neg",
        "top_entropy_quantile",
        "use_adaptive_entropy",
        "entropy_coef_min",
        "entropy_coef_max",
        "entropy_coef_delta",
        "entropy_target",
        "off_policy_mask_threshold",
        "use_bias_correction_kl",
        "label_smoothing_factor",
        "sync_ref_model",
        "ref_model_mixup_alpha",
        "ref_model_sync_steps",
    ),
    "assay samples by [rollout], and the loss must know the distribution": (
        "min_p",
        "repetition_penalty",
        "generation_kwargs",
        "vllm_structured_outputs_regex",
        "max_tool_calling_iterations",
        "pad_to_multiple_of",
    ),
    "assay renders prompts by [data]": ("chat_template_kwargs",),
    "assay loads the model by [model], without code from elsewhere": ("trust_remote_code",),
    "assay draws prompts itself, and TRL's data loader has placeholders": (
        "shuffle_dataset",
        "ignore_data_skip",
        "remove_unused_columns",
        "label_names",
        "train_sampling_strategy",
        "length_column_name",
        "dataloader_drop_last",
        "dataloader_num_workers",
        "dataloader_pin_memory",
        "dataloader_persistent_workers",
        "dataloader_prefetch_factor",
        "accelerator_config",
        "average_tokens_across_devices",
    ),
    "assay records and publishes by [run]": (
        "logging_strategy",
        "logging_steps",
        "logging_first_step",
        "logging_nan_inf_filter",
        "disable_tqdm",
        "log_completions",
        "log_multimodal",
        "num_completions_to_print",
        "log_unique_prompts",
        "log_completions_hub_repo",
        "push_to_hub",
        "hub_token",
        "hub_private_repo",
        "hub_model_id",
        "hub_strategy",
        "hub_always_push",
        "hub_revision",
        "load_best_model_at_end",
        "metric_for_best_model",
        "greater_is_better",
        "save_on_each_node",
        "enable_jit_checkpoint",
        "resume_from_checkpoint",
        "restore_callback_states_from_checkpoint",
        "do_train",
        "do_eval",
        "do_predict",
    ),
    "assay needs it as it is": ("ddp_find_unused_parameters", "ds3_gather_for_generation"),
}

OWNED: Mapping[str, str] = {
    **{name: f"assay sets it by {key}" for key, names in _BY_SETTING.items() for name in names},
    **{name: why for why, names in _BY_OTHERS.items() for name in names},
}
"""Options that [trl] may not have, each with the reason."""


def problem(options: Mapping[str, Any]) -> str:
    """The first option that Assay owns, as a sentence; empty where there is none."""
    for name in options:
        if name in OWNED:
            return f"trl.{name}: {OWNED[name]}"
    return ""
