"""TRL's own GRPOTrainer, as its users have it, on rewards from a real server: one argument."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import pytest

from assay.clients import EmbeddedServices
from assay.clients.trainers.trl import reward_function
from assay.reward_server.journal.reader import Reader


@pytest.mark.slow
def test_trl_trains_on_rewards_from_a_server(
    tiny_model: Path, sums_file: Path, tmp_path: Path
) -> None:
    import torch
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    rows = load_dataset(
        "json", data_files=str(sums_file), split="train", cache_dir=str(tmp_path / "cache")
    )
    rows = rows.rename_column("question", "prompt")
    policy = AutoModelForCausalLM.from_pretrained(tiny_model)
    before = [weight.detach().clone() for weight in policy.parameters()]
    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=4,
        max_steps=3,
        learning_rate=4e-4,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    journal = tmp_path / "verdicts.sqlite"
    kept = {"reward": ["--journal", str(journal)]}
    with EmbeddedServices(arguments=kept) as services, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL's and accelerate's own advice
        trainer = GRPOTrainer(
            model=policy,
            processing_class=AutoTokenizer.from_pretrained(tiny_model),
            reward_funcs=reward_function(services.address, task="math", labels={"run": "plain"}),
            train_dataset=rows,
            args=settings,
        )
        trainer.train()
    steps = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert len(steps) == 3
    assert all(0 < entry["reward"] < 1 for entry in steps)
    assert all(entry["assay/fault_ratio"] == 0 for entry in steps)
    with Reader(journal) as reader:
        found = Counter(tuple(sorted(record["labels"].items())) for record in reader.each())
    assert found == {
        (("run", "plain"), ("step", str(step)), ("trainer", "trl")): 32 for step in range(3)
    }
    after = list(trainer.model.parameters())
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
