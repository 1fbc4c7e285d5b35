"""Presets at scale: a method's file under an overlay, on what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).parent.parent / "configs"
METHODS = ("grpo", "dapo", "vapo", "t_ppo", "pag")
# processes, and the launcher's config
SCALES = {"1.5b": "", "7b": "fsdp2.yaml", "32b": "fsdp2_two_nodes.yaml"}

# as the models' own configurations have them, for plans without a network
SHAPES: dict[str, dict[str, Any]] = {
    "1.5b": {
        "vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "7b": {
        "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "32b": {
        "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 27648,
        "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    },
}  # fmt: skip

# the same files, shrunk to the tiny model of the tests
SMALL = (
    "model.device=cpu", "model.precision=float32", "reward.verifier=exact", "reward.timeout_s=30",
    "data.template={question}", "rollout.backend=hf", "rollout.batch=8",
    "rollout.prompts_per_step=4", "rollout.group_size=4", "rollout.max_new_tokens=8",
    "optim.mini_batches=2", "optim.micro_batch=2", "optim.warmup_steps=0", "eval.prompts=0",
    "run.steps=2", "run.checkpoint_every=0", "run.samples_every=0", "run.report_to=[]",
)  # fmt: skip
SHRUNK = {
    "dapo": (
        "method.shaping.overlong_cache=2", "method.dynamic_sampling.max_rounds=40",
        "optim.warmup_steps=1",
    ),
    "vapo": ("method.critic.pretrain_steps=2",),
    "t_ppo": (
        "method.truncation.window=3", "method.truncation.min_finished=2",
        "method.critic.pretrain_steps=2", "method.critic.below_minimum=warn",
    ),
}  # fmt: skip


def given(method: str, scale: str) -> list[str]:
    """What a user would type behind the method's file."""
    return [f"over={CONFIGS / 'scale' / scale}.toml", "data=rows.jsonl"]
