"""The surface of TRL that assay.trainer.core.trainer stands on. When this fails after an upgrade,
read that module, and docs/understand/architecture.md, again."""

from __future__ import annotations

import importlib.metadata
import inspect
from typing import Any

import pytest
import trl.models.utils
import trl.trainer.utils
from transformers import Trainer
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from assay.trainer.core.publishing import Published
from assay.trainer.core.trainer import PolicyTrainer

OVERRIDDEN = {
    "_generate_and_score_completions": ["self", "inputs"],
    "_prepare_inputs": ["self", "generation_batch"],
    "_compute_loss": ["self", "model", "inputs"],
    "training_step": ["self", "model", "inputs", "num_items_in_batch"],
    "create_optimizer": ["self", "model"],
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
    assert list(inspect.signature(getattr(PolicyTrainer, name)).parameters) == parameters


def test_nothing_else_is_overridden() -> None:
    theirs = set(dir(GRPOTrainer))
    ours = {**vars(PolicyTrainer), **vars(Published)}
    own = {name for name in ours if not name.startswith("__")}
    assert own & theirs == set(OVERRIDDEN) | {"create_model_card"}


@pytest.mark.parametrize(
    ("method", "line"),
    [
        # what we return as a batch is shuffled and cut, tensors without dimension are kept whole
        ("_prepare_inputs", "generation_batch = shuffle_sequence_dict(generation_batch)"),
        (
            "_prepare_inputs",
            "split_tensor_dict(generation_batch, self.args.steps_per_generation)",
        ),
        # a rollout begins there, and only there
        (
            "_prepare_inputs",
            "if self._step % generate_every == 0 or self._buffered_inputs is None:",
        ),
        # a step takes one micro-batch of TRL's, which is a mini-batch of ours
        ("training_step", "output = super().training_step(model, inputs, num_items_in_batch)"),
        ("training_step", "self._step += 1"),
        # log-probabilities are at the rollout's temperature, through the fused head
        ("_get_per_token_logps_and_entropies", "fused_lm_head=True"),
        # under vLLM the call syncs weights once per update, and gives the drawn tokens' numbers
        ("_generate_single_turn", "logprobs = [[lp[0] for lp in seq] for seq in logprobs]"),
    ],
)
def test_lines_of_trl_that_we_rely_on(method: str, line: str) -> None:
    assert line in inspect.getsource(getattr(GRPOTrainer, method))


@pytest.mark.parametrize(
    "lines",
    [
        # a loop that waits for another in front of a step has said this, and says it again
        (
            "self.accelerator.gradient_state._set_sync_gradients(do_sync_step)",
            "self.callback_handler.on_step_begin(",
            "self.training_step(",
            "self.callback_handler.on_step_end(",
            "self._maybe_log_save_evaluate(",
        ),
    ],
)
def test_the_order_of_a_step_that_loops_which_take_turns_rely_on(lines: tuple[str, ...]) -> None:
    source = inspect.getsource(GRPOTrainer._run_epoch)
    places = [source.index(line) for line in lines]
    assert places == sorted(places)


def test_a_micro_batch_is_asked_for_within_its_step() -> None:
    """So that ours can be dealt out one by one, gradients kept to this process but for the last."""
    source = inspect.getsource(Trainer.training_step)
    assert source.index("model.train()") < source.index("inputs = self._prepare_inputs(inputs)")
    assert "functools.partial(self.accelerator.no_sync, model=model)" in inspect.getsource(
        Trainer._run_epoch
    )


def test_the_loss_is_taken_as_it_is_over_accumulation() -> None:
    """What _compute_loss returns is summed over micro-batches; nothing divides it again."""
    assert GRPOTrainer.loss_is_scaled_for_ga is True


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (
            trl.models.utils.unwrap_model_for_generation,
            ["model", "accelerator", "gather_deepspeed3_params", "generation_kwargs",
             "gradient_checkpointing_kwargs"],
        ),
        (trl.trainer.utils.use_adapter, ["model", "adapter_name"]),
        (
            GRPOTrainer._get_per_token_logps_and_entropies,
            ["self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size",
             "compute_entropy", "compute_aux_loss"],
        ),
        (
            GRPOTrainer._generate_single_turn,
            ["self", "prompt_ids", "images", "multimodal_fields", "num_generations"],
        ),
        (GRPOTrainer._load_from_checkpoint, ["self", "resume_from_checkpoint"]),
    ],
)  # fmt: skip
def test_functions_that_we_call_take_what_we_give(function: Any, parameters: list[str]) -> None:
    known = list(inspect.signature(function).parameters)
    assert known[: len(parameters)] == parameters


def test_settings_that_we_pass_exist() -> None:
    known = set(inspect.signature(GRPOConfig).parameters)
    ours = {
        *("num_generations", "num_iterations", "steps_per_generation", "max_completion_length"),
        *("beta", "shuffle_dataset", "ignore_data_skip", "top_k", "top_p"),
        "use_transformers_continuous_batching",
    }
    assert ours <= known
