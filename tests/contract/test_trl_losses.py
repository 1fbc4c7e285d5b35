"""Our losses beside those of TRL 1.16's GRPOTrainer, on one model and batch: values and gradients.

The batch has old and reference policies of its own, so that ratios are clipped and the KL is not 0.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from assay.trainer.algos.aggregation import aggregate, row_count
from assay.trainer.algos.kl import kl_token_losses
from assay.trainer.algos.policy_losses import cispo_token_losses, ppo_token_losses
from assay.trainer.algos.ratios import log_ratio, sequence_log_ratio
from genrm_support import make_model

B, PROMPT, T = 6, 3, 7
LOW, HIGH, DELTA, CISPO_HIGH, BETA, ENTROPY = 0.2, 0.28, 3.0, 2.5, 0.1, 0.02
AGGREGATIONS = {
    "grpo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dapo": "token-mean",
    "cispo": "token-mean",
    "dr_grpo": "constant",
}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> GRPOTrainer:
    folder = make_model(tmp_path_factory.mktemp("model"), hidden=32, layers=1)
    arguments = GRPOConfig(
        output_dir=str(folder / "out"), per_device_train_batch_size=B, num_generations=2,
        max_completion_length=T, beta=BETA, epsilon=LOW, epsilon_high=HIGH, bf16=False,
        gradient_checkpointing=False, use_cpu=True, report_to="none", save_strategy="no",
    )  # fmt: skip
    made = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(folder),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        train_dataset=Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}]),
        args=arguments,
    )
    made.current_gradient_accumulation_steps = 1
    made.model.train()
    return made


@pytest.fixture
def batch(trainer: GRPOTrainer) -> dict[str, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(10, 250, (B, PROMPT + T), generator=source)
    prompt_mask = torch.ones(B, PROMPT, dtype=torch.long)
    prompt_mask[1, 0] = 0
    completion_mask = torch.arange(T) < torch.tensor([7, 3, 1, 5, 7, 2]).unsqueeze(1)
    inputs = {
        "prompt_ids": ids[:, :PROMPT],
        "completion_ids": ids[:, PROMPT:],
        "prompt_mask": prompt_mask,
        "completion_mask": completion_mask.long(),
        "advantages": torch.tensor([1.5, -0.7, 0.0, 0.4, -1.1, -0.1]),
    }
    logps_BT, _ = forward(trainer.model, inputs)
    noise = 0.8 * torch.randn(2, B, T, generator=source)
    inputs["old_per_token_logps"] = logps_BT.detach() + noise[0]
    inputs["ref_per_token_logps"] = logps_BT.detach() + noise[1]
    inputs["num_items_in_batch"] = completion_mask.sum()
    return inputs


def forward(model: Any, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies of the completion, by way of plain logits."""
    ids, mask = (
        torch.cat([inputs[f"prompt_{part}"], inputs[f"completion_{part}"]], dim=1)
        for part in ("ids", "mask")
    )
    logits = model(input_ids=ids, attention_mask=mask).logits[:, PROMPT - 1 : -1]
    logps = logits.log_softmax(-1).gather(-1, inputs["completion_ids"].unsqueeze(-1)).squeeze(-1)
    return logps, torch.distributions.Categorical(logits=logits).entropy()


def ours(model: Any, inputs: dict[str, torch.Tensor], settings: dict[str, Any]) -> torch.Tensor:
    logps_BT, entropies_BT = forward(model, inputs)
    mask_BT = inputs["completion_mask"] * inputs.get("tool_mask", 1)
    advantages = inputs["advantages"]
    advantages_BT = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
    ratio_BT = log_ratio(logps_BT, inputs["old_per_token_logps"])
    if settings["importance_sampling_level"] == "sequence":
        ratio_BT = sequence_log_ratio(ratio_BT, mask_BT)
    if settings["loss_type"] == "cispo":
        losses_BT = cispo_token_losses(
            logps_BT, ratio_BT, advantages_BT, clip_low=1.0, clip_high=CISPO_HIGH - 1
        ).losses_BT
    else:
        losses_BT = ppo_token_losses(
            ratio_BT, advantages_BT, clip_low=LOW, clip_high=HIGH, dual_clip=settings["delta"]
        ).losses_BT
    weight_BT = ratio_BT if settings["use_bias_correction_kl"] else None
    kl_BT = kl_token_losses(logps_BT, inputs["ref_per_token_logps"], "k3", log_ratio_BT=weight_BT)
    losses_BT = losses_BT + settings["beta"] * kl_BT
    mode: Any = AGGREGATIONS[settings["loss_type"]]
    loss = aggregate(losses_BT, mask_BT, mode, max_length=T)
    return loss - settings["entropy_coef"] * aggregate(entropies_BT, mask_BT, "token-mean")


def theirs(
    trainer: GRPOTrainer, inputs: dict[str, torch.Tensor], settings: dict[str, Any]
) -> torch.Tensor:
    for name in ("loss_type", "importance_sampling_level", "beta", "entropy_coef"):
        setattr(trainer, name, settings[name])
    trainer.epsilon_high = CISPO_HIGH if settings["loss_type"] == "cispo" else HIGH
    trainer.args.delta = settings["delta"]
    trainer.args.use_bias_correction_kl = settings["use_bias_correction_kl"]
    trainer._entropy_bonus_enabled = settings["entropy_coef"] != 0
    loss: torch.Tensor = trainer._compute_loss(trainer.model, inputs)
    return loss


def gradients(model: Any, loss: torch.Tensor) -> torch.Tensor:
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([part.flatten() for part in parts])


def agree(trainer: GRPOTrainer, inputs: dict[str, torch.Tensor], **changes: Any) -> None:
    settings: dict[str, Any] = {
        "loss_type": "dapo", "importance_sampling_level": "token", "beta": 0.0, "delta": None,
        "use_bias_correction_kl": False, "entropy_coef": 0.0, **changes,
    }  # fmt: skip
    mine = ours(trainer.model, inputs, settings)
    other = theirs(trainer, inputs, settings)
    assert mine.item() == pytest.approx(other.item(), abs=1e-5)
    mine_N, other_N = gradients(trainer.model, mine), gradients(trainer.model, other)
    assert other_N.abs().max() > 1e-3
    assert torch.allclose(mine_N, other_N, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, BETA])
@pytest.mark.parametrize("loss_type", AGGREGATIONS)
def test_token_ratios(
    trainer: GRPOTrainer, batch: dict[str, torch.Tensor], loss_type: str, beta: float
) -> None:
    agree(trainer, batch, loss_type=loss_type, beta=beta)


@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_sequence_ratios(
    trainer: GRPOTrainer, batch: dict[str, torch.Tensor], loss_type: str
) -> None:
    agree(trainer, batch, loss_type=loss_type, beta=BETA, importance_sampling_level="sequence")


def test_the_kl_s_importance_weight(trainer: GRPOTrainer, batch: dict[str, torch.Tensor]) -> None:
    agree(trainer, batch, beta=BETA, use_bias_correction_kl=True)


def test_delta_is_the_dual_clip(trainer: GRPOTrainer, batch: dict[str, torch.Tensor]) -> None:
    low_BT = batch["old_per_token_logps"] - 1.5
    agree(trainer, {**batch, "old_per_token_logps": low_BT}, delta=DELTA)


def test_advantages_of_tokens_a_mask_of_tools_and_an_entropy_bonus(
    trainer: GRPOTrainer, batch: dict[str, torch.Tensor]
) -> None:
    source = torch.Generator().manual_seed(1)
    tool_mask = torch.ones(B, T, dtype=torch.long)
    tool_mask[0, 2:4] = 0
    inputs = {
        **batch,
        "advantages": torch.randn(B, T, generator=source),
        "tool_mask": tool_mask,
        "num_items_in_batch": (batch["completion_mask"] * tool_mask).sum(),
    }
    for loss_type in ("grpo", "dapo"):
        agree(trainer, inputs, loss_type=loss_type, entropy_coef=ENTROPY)


def test_a_row_without_tokens_is_no_row_here_and_one_there(
    trainer: GRPOTrainer, batch: dict[str, torch.Tensor]
) -> None:
    """The one difference in aggregation: TRL divides by all rows, also by those masked whole."""
    tool_mask = torch.ones(B, T, dtype=torch.long)
    tool_mask[1] = 0
    inputs = {**batch, "tool_mask": tool_mask}
    settings = {
        "loss_type": "grpo", "importance_sampling_level": "token", "beta": 0.0, "delta": None,
        "use_bias_correction_kl": False, "entropy_coef": 0.0,
    }  # fmt: skip
    mine, other = ours(trainer.model, inputs, settings), theirs(trainer, inputs, settings)
    rows = row_count(batch["completion_mask"] * tool_mask).item()
    assert rows == B - 1
    assert mine.item() * rows == pytest.approx(other.item() * B, abs=1e-5)
