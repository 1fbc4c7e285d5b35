"""GRPO by TRL on rewards from a reward server: sums of two digits, a policy small enough for a CPU.

    assay up                              # in a checkout; serves on 127.0.0.1:50051
    python examples/trl_grpo.py           # a minute on two cores; nothing is downloaded

The line that is Assay's is `reward_funcs=`. For your own run put your model's name in the place of
`small_policy()`, and your rows, with a column `answer`, in the place of `sums()`.

Run in the tests as it stands, against a real server: TRL's own GRPOTrainer, all steps.
"""

from __future__ import annotations

import os
import sys
import tempfile

from datasets import Dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

from assay.clients.trainers.trl import reward_function

TARGET = os.environ.get("ASSAY_TARGET", "127.0.0.1:50051")
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def sums() -> Dataset:
    """All sums that have one digit."""
    pairs = [(a, b) for a in range(10) for b in range(10 - a)]
    return Dataset.from_list([{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in pairs])


def small_policy() -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """A model of 60 thousand random weights that says digits, and its tokenizer."""
    words = ["<pad>", "<end>", "<unk>", *"0123456789+="]
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    tokens = {"pad_token": words[0], "eos_token": words[1]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, padding_side="left", **tokens)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config), tokenizer


set_seed(0)
policy, tokenizer = small_policy()
with tempfile.TemporaryDirectory() as folder:
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        reward_funcs=reward_function(TARGET, task="math"),
        train_dataset=sums(),
        args=GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=256,
            num_generations=16,
            max_completion_length=1,
            max_steps=STEPS,
            learning_rate=3e-3,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
        ),
    )
    trainer.train()
steps = [entry for entry in trainer.state.log_history if "reward" in entry]
tenth = max(1, len(steps) // 10)
for name, some in (("first", steps[:tenth]), ("last", steps[-tenth:])):
    mean = sum(entry["reward"] for entry in some) / len(some)
    print(f"reward of the {name} {len(some)} steps: {mean:.2f}")
