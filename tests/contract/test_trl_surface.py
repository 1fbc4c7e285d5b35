"""The surface of TRL that assay.trainer.grpo stands on. When this fails after an upgrade, read that
module again."""

from __future__ import annotations

import importlib.metadata
import inspect

import pytest
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from assay.trainer.grpo import FaultAwareGRPOTrainer

OVERRIDDEN = {
    "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
    "_generate_and_score_completions": ["self", "inputs"],
    "_compute_loss": ["self", "model", "inputs"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_load_optimizer_and_scheduler": ["self", "checkpoint"],
}


def test_the_version_is_the_one_that_was_read() -> None:
    assert importlib.metadata.version("trl") == "1.16.0"


@pytest.mark.parametrize(("name", "parameters"), OVERRIDDEN.items())
def test_overridden_methods_have_the_signatures_that_we_expect(
    name: str, parameters: list[str]
) -> None:
    assert list(inspect.signature(getattr(GRPOTrainer, name)).parameters) == parameters
    assert list(inspect.signature(getattr(FaultAwareGRPOTrainer, name)).parameters) == parameters


def test_nothing_else_is_overridden() -> None:
    own = {name for name in vars(FaultAwareGRPOTrainer) if not name.startswith("__")}
    assert own - set(OVERRIDDEN) == {"create_model_card"}


@pytest.mark.parametrize(
    ("method", "line"),
    [
        # the loss mask is completion_mask times tool_mask, and nothing else reads tool_mask
        (
            "_compute_loss",
            'if "tool_mask" not in inputs else completion_mask * inputs["tool_mask"]',
        ),
        # the token loss divides by what the batch says
        (
            "_compute_loss",
            'inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes',
        ),
        # these two are means over rows, which row_scale corrects
        (
            "_compute_loss",
            "loss = ((per_token_loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()",
        ),
        (
            "_compute_loss",
            "(per_token_loss * mask).sum() / (per_token_loss.size(0) * self.max_completion_length)",
        ),
        # what a checkpoint must bring back for a run to continue inside a rollout
        (
            "_prepare_inputs",
            "if self._step % generate_every == 0 or self._buffered_inputs is None:",
        ),
        # a reward of None becomes NaN in rewards_per_func, and stays NaN
        (
            "_calculate_rewards",
            "reward if reward is not None else torch.nan for reward in output_reward_func",
        ),
        ("_generate_and_score_completions", "advantages = advantages / (std_rewards + 1e-4)"),
    ],
)
def test_lines_of_trl_that_we_rely_on(method: str, line: str) -> None:
    assert line in inspect.getsource(getattr(GRPOTrainer, method))


def test_settings_that_we_pass_exist() -> None:
    known = set(inspect.signature(GRPOConfig).parameters)
    ours = {
        *("num_generations", "num_iterations", "steps_per_generation", "max_completion_length"),
        *("loss_type", "scale_rewards", "epsilon", "epsilon_high", "beta", "shuffle_dataset"),
        *("mask_truncated_completions", "use_vllm", "vllm_mode", "vllm_server_base_url"),
        *("vllm_gpu_memory_utilization", "vllm_tensor_parallel_size", "vllm_max_model_length"),
    }
    assert ours <= known
