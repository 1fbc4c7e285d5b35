"""A group scored as TRL's AsyncGRPOTrainer does it, here or in a spawned process.

In a module that a spawned process can import.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from accelerate import PartialState  # type: ignore[import-untyped]  # it ships no types
from trl.experimental.async_grpo.async_rollout_worker import RolloutGroup, _AsyncRolloutLoop
from trl.trainer.utils import get_callable_name


def scored(function: Any, completions: list[str], reference: str) -> list[Any]:
    """What `AsyncGRPOTrainer`'s worker makes of a group."""
    PartialState(cpu=True)  # TRL's logger asks it
    count = len(completions)
    one = SimpleNamespace(input_ids=[1], completion_mask=[1], old_log_probs=[0.0])
    group = RolloutGroup(
        group_id=0,
        prompts=["2+2?"] * count,
        completions=completions,
        completions_ids=[[1]] * count,
        completions_sequences=[[one]] * count,
        tool_call_counts=[0] * count,
        tool_failure_counts=[0] * count,
        reward_kwargs={"reference": [reference] * count},
        model_version=0,
        env_rewards=[None] * count,
        rollout_rewards=[None] * count,
    )
    loop = SimpleNamespace(
        reward_funcs=[function],
        reward_func_names=[get_callable_name(function)],
        _env_reward_types=[],
        _provides_rollout_reward=False,
    )
    found: list[Any] = asyncio.run(_AsyncRolloutLoop._score_group(loop, group))
    return found


def in_child(pickled: bytes, completions: list[str], pipe: Any) -> None:
    samples = scored(pickle.loads(pickled), completions, "4")
    pipe.send([sample.metrics["rewards/mine"] for sample in samples])
