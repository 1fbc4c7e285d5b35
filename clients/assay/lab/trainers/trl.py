"""TRL: `GRPOTrainer` scores a batch whose completions are given, and its loss has a gradient."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from assay.lab.steps import Groups, LabRow
from assay.lab.trainers.tiny import (
    first_of_pairs,
    gradient_of,
    in_pairs,
    joined,
    tiny_policy,
    tiny_tokenizer,
)


def nothing(prompts: Sequence[str], **_columns: Any) -> list[float]:
    """Another reward function, by which all rows are equal."""
    return [0.0] * len(prompts)


@dataclass
class Trl:
    """One step of `GRPOTrainer`, with the loss that it has by default."""

    title: str = "TRL, mask"
    default: bool = True
    beside: bool = False
    compared = "gradient"
    read = ""

    def version(self) -> str:
        """See Contestant."""
        import trl.trainer.grpo_trainer  # noqa: F401

        return f"trl {version('trl')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; groups of one size are scored in one call."""
        from assay.clients.trainers.trl import reward_function

        model = tiny_policy(tiny_tokenizer())
        reward = reward_function(target, verifier="exact", timeout_s=3.0)
        functions = [reward, nothing] if self.beside else [reward]
        parts = []
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for size in sorted({len(group) for group in groups}):
                same = in_pairs([group for group in groups if len(group) == size])
                rows = [row for group in same for row in group]
                trainer = self._trainer(model, functions, rows, max(size, 2), folder)
                inputs = [{"prompt": row.prompt, "reference": row.name} for row in rows]
                part = trainer._generate_and_score_completions(inputs)
                if size == 1:
                    part = first_of_pairs(part)
                    part["num_items_in_batch"] = part["completion_mask"].sum()
                parts.append(part)
            batch = joined(parts, {"completion_ids": 0}, ["num_items_in_batch"])
            loss = trainer._compute_loss(model, batch)
        reward.client.close()
        return gradient_of(model, loss)

    def _trainer(
        self, model: Any, functions: list[Any], rows: Sequence[LabRow], size: int, folder: str
    ) -> Any:
        from datasets import Dataset
        from trl.trainer.grpo_config import GRPOConfig
        from trl.trainer.grpo_trainer import GRPOTrainer

        tokenizer = tiny_tokenizer()

        def said(prompts: Sequence[str], _trainer: Any) -> dict[str, Any]:
            """What the policy said: given, and not drawn."""
            end = [tokenizer.eos_token_id]
            return {
                "prompt_ids": [tokenizer.encode(prompt) for prompt in prompts],
                "completion_ids": [tokenizer.encode(row.response) + end for row in rows],
                "logprobs": None,
            }

        settings = GRPOConfig(
            output_dir=folder, per_device_train_batch_size=len(rows), num_generations=size,
            max_completion_length=64, use_cpu=True, bf16=False, gradient_checkpointing=False,
            report_to="none", disable_tqdm=True, save_strategy="no",
        )  # fmt: skip
        trainer: Any = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=functions,
            train_dataset=Dataset.from_dict({"prompt": [row.prompt for row in rows]}),
            args=settings,
            rollout_func=said,
        )
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        return trainer


TRL = Trl()
TRL_BESIDE = Trl("TRL, mask beside another reward function", default=False, beside=True)
