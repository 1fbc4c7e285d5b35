"""Our losses over stored responses beside TRL 1.16's DPOTrainer and SFTTrainer, on one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from assay.trainer.algos.packing import TOGETHER
from assay.trainer.core.objective import count, policy_loss
from assay.trainer.methods.offline.losses import DpoConfig
from assay.trainer.methods.offline.surrogates import BETTER
from assay.trainer.settings.objective import LossConfig
from genrm_support import make_model

N, PROMPT, T, BETA = 3, 3, 7, 0.3
LENGTHS = (7, 3, 1, 5, 7, 2)
USUAL: dict[str, Any] = {
    "per_device_train_batch_size": N, "bf16": False, "gradient_checkpointing": False,
    "use_cpu": True, "report_to": "none", "save_strategy": "no", "disable_tqdm": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"), hidden=32, layers=1)


@pytest.fixture
def ids() -> torch.Tensor:
    """(2N, PROMPT + T): the better responses, then the worse ones to the same prompts."""
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(10, 250, (2 * N, PROMPT + T), generator=source)
    ids[N:, :PROMPT] = ids[:N, :PROMPT]
    return ids


def masks(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and those of responses."""
    lengths = torch.tensor(LENGTHS[:rows]).unsqueeze(1)
    there = torch.arange(PROMPT + T) < PROMPT + lengths
    return there.long(), (there & (torch.arange(PROMPT + T) >= PROMPT)).long()


def logps_of(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=ids, attention_mask=mask).logits[:, PROMPT - 1 : -1]
    found: torch.Tensor = logits.log_softmax(-1).gather(-1, ids[:, PROMPT:].unsqueeze(-1))
    return found.squeeze(-1)


def ours(objective: str, own: Any, logps_BT: torch.Tensor, **columns: torch.Tensor) -> torch.Tensor:
    rows = len(logps_BT)
    batch = {
        "loss_mask": masks(rows)[1][:, PROMPT:].bool(),
        "advantages": torch.zeros(rows, T),
        "correct": torch.zeros(rows, dtype=torch.bool),
        "old_logps": torch.full((rows, T), float("nan")),
        "rewards": torch.zeros(rows),
        **columns,
    }
    means = {"dpo": "seq-mean-token-mean", "sft": "token-mean"}
    config = LossConfig(objective=objective, aggregation=means[objective])
    entropies_BT = torch.zeros_like(logps_BT)
    return policy_loss(
        logps_BT, entropies_BT, batch, config, count(batch), max_length=T, own=own
    ).loss


@pytest.mark.filterwarnings("ignore")
def test_dpo_is_trl_s(folder: Path, ids: torch.Tensor) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    told = [{"prompt": "a", "chosen": "b", "rejected": "c"}] * N
    trainer = DPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        args=DPOConfig(output_dir=str(folder / "dpo"), beta=BETA, **USUAL),
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(told),
    )
    model: Any = trainer.model
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():  # away from the reference
        for weight in model.parameters():
            weight.add_(0.02 * torch.randn(weight.shape, generator=noise))
    mask, completion = masks(2 * N)
    inputs = {"input_ids": ids, "attention_mask": mask, "completion_mask": completion}
    theirs = trainer.compute_loss(model, inputs)
    (slopes,) = torch.autograd.grad(theirs, [model.lm_head.weight])
    with torch.no_grad():
        old_BT = logps_of(trainer.ref_model, ids, mask)
    mine = ours(
        "dpo",
        DpoConfig(beta=BETA),
        logps_of(model, ids, mask),
        old_logps=old_BT,
        **{
            TOGETHER: torch.arange(N).repeat(2),
            BETTER: torch.arange(2 * N) < N,
        },
    )
    (own_slopes,) = torch.autograd.grad(mine, [model.lm_head.weight])
    assert float(theirs) != pytest.approx(float(torch.tensor(2.0).log()), abs=1e-3)
    assert float(mine) == pytest.approx(float(theirs), abs=1e-6)
    torch.testing.assert_close(own_slopes, slopes, atol=1e-6, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_sft_is_trl_s(folder: Path, ids: torch.Tensor) -> None:
    told = [{"prompt": "a", "completion": "b"}] * N
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        args=SFTConfig(output_dir=str(folder / "sft"), **USUAL),
        processing_class=AutoTokenizer.from_pretrained(folder),
        train_dataset=Dataset.from_list(told),
    )
    model: Any = trainer.model
    mask, completion = masks(N)
    labels = ids[:N].masked_fill(completion == 0, -100)
    inputs = {"input_ids": ids[:N], "attention_mask": mask, "labels": labels}
    theirs = trainer.compute_loss(model, dict(inputs))
    mine = ours("sft", None, logps_of(model, ids[:N], mask))
    assert float(mine) == pytest.approx(float(theirs), abs=1e-6)
