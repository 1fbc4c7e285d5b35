"""The adapter for slime: loaded by path, single and batched; what its filters make of a fault.

slime is not on PyPI. Where it can be imported (a checkout of THUDM/slime on the path) its own
classes and its own loader are used; elsewhere stand-ins with the fields that its source has at
commit 624b824a.
"""

from __future__ import annotations

import asyncio
import importlib
import math
import sys
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.slime import post_process_rewards
from assay.kit.errors import ConfigError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

PATH = "assay.clients.trainers.slime."

try:
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput
    from slime.rollout.rm_hub import async_rm, batched_async_rm
    from slime.utils.misc import load_function
    from slime.utils.types import Sample
except ImportError:

    @dataclass
    class Sample:  # type: ignore[no-redef]
        prompt: Any = ""
        response: str = ""
        response_length: int = 0
        label: str | None = None
        index: int | None = None
        group_index: int | None = None
        reward: Any = None
        remove_sample: bool = False
        metadata: dict[str, Any] = field(default_factory=dict)
        custom_rm_path: str | None = None

        class Status(Enum):
            COMPLETED = "completed"
            TRUNCATED = "truncated"

        status: Status = Status.COMPLETED

        def get_reward_value(self, args: Any) -> float:
            return self.reward if not args.reward_key else self.reward[args.reward_key]

    @dataclass
    class DynamicFilterOutput:  # type: ignore[no-redef]
        keep: bool
        reason: str | None = None

    def load_function(path: str) -> Any:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)

    async def async_rm(args: Any, sample: Any, **kwargs: Any) -> Any:
        return await load_function(args.custom_rm_path)(args, sample, **kwargs)

    batched_async_rm = async_rm

    base_types = ModuleType("slime.rollout.filter_hub.base_types")
    base_types.DynamicFilterOutput = DynamicFilterOutput  # type: ignore[attr-defined]
    for name in ("slime", "slime.rollout", "slime.rollout.filter_hub"):
        sys.modules[name] = ModuleType(name)
    sys.modules["slime.rollout.filter_hub.base_types"] = base_types


def args_of(**changes: Any) -> Any:
    return SimpleNamespace(**{
        "custom_rm_path": PATH + "custom_rm",
        "reward_key": None,
        "advantage_estimator": "grpo",
        "rewards_normalization": True,
        "grpo_std_normalization": True,
        "n_samples_per_prompt": 2,
        "rollout_batch_size": 1,
        **changes,
    })  # fmt: skip


def samples_of(label: str = "4") -> list[Any]:
    return [
        Sample(prompt="2+2?", response=text, label=label, index=row, group_index=0)
        for row, text in enumerate((RIGHT, WRONG))
    ]


def rewarded(args: Any, samples: list[Any]) -> list[Any]:
    for sample, reward in zip(samples, asyncio.run(batched_async_rm(args, samples)), strict=True):
        sample.reward = reward
    return samples


def test_single_and_batched(environment: pytest.MonkeyPatch) -> None:
    first, second = samples_of()
    assert asyncio.run(async_rm(args_of(), first)) == 1.0
    assert asyncio.run(async_rm(args_of(), second)) == 0.0
    assert asyncio.run(batched_async_rm(args_of(), [first, second])) == [1.0, 0.0]
    keyed = asyncio.run(async_rm(args_of(reward_key="total"), first))
    assert (keyed["total"], keyed["verdict"], keyed["fault"]) == (1.0, "correct", "")


def test_a_sample_may_name_its_verifier(environment: pytest.MonkeyPatch) -> None:
    [sample, _] = samples_of(label='["SO \\\\boxed{4}"]')
    sample.metadata = {"verifier": "exact", "parameters": {"case_sensitive": False}}
    environment.setenv("ASSAY_REFERENCE", "json")
    assert asyncio.run(async_rm(args_of(), sample)) == 1.0


def test_a_fault_ends_the_rollout(troubled: Trouble) -> None:
    with pytest.raises(FaultError, match=troubled.reason):
        rewarded(args_of(), samples_of(troubled.reference))


def test_a_faulted_group_is_dropped(troubled: Trouble, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "drop")
    drop = load_function(PATH + "drop_faulted_groups")
    told = drop(args_of(), rewarded(args_of(), samples_of(troubled.reference)))
    assert told == DynamicFilterOutput(keep=False, reason="fault")
    good = samples_of()
    for sample in good:
        sample.reward = 0.5
    assert drop(args_of(), good) == DynamicFilterOutput(keep=True)


def test_a_masked_fault_moves_nobody(troubled: Trouble, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    faulted = rewarded(args_of(), samples_of(troubled.reference))
    assert [sample.remove_sample for sample in faulted] == [True, True]
    raw, rewards = load_function(PATH + "post_process_rewards")(args_of(), faulted)
    assert all(map(math.isnan, raw))
    assert rewards == [0.0, 0.0]
    with pytest.raises(ConfigError, match="on_fault=drop"):
        post_process_rewards(args_of(advantage_estimator="ppo"), faulted)


def slimes_own(args: Any, raw: list[float]) -> list[float]:
    """`RolloutManager._post_process_rewards` of slime, which needs a cluster to be made."""
    import torch

    rewards = torch.tensor(raw, dtype=torch.float)
    if rewards.shape[-1] == args.n_samples_per_prompt * args.rollout_batch_size:
        rewards = rewards.reshape(-1, args.n_samples_per_prompt)
    else:
        rewards = rewards.view(-1, rewards.shape[-1])
    rewards = rewards - rewards.mean(dim=-1, keepdim=True)
    if args.advantage_estimator in ["grpo", "gspo", "cispo"] and args.grpo_std_normalization:
        rewards = rewards / (rewards.std(dim=-1, keepdim=True) + 1e-6)
    return rewards.flatten().tolist()


@given(
    st.lists(st.lists(st.floats(-3, 3, width=16), min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from(["grpo", "reinforce_plus_plus_baseline"]),
)
def test_without_faults_the_rewards_are_slimes(groups: list[list[float]], estimator: str) -> None:
    args = args_of(
        advantage_estimator=estimator, n_samples_per_prompt=3, rollout_batch_size=len(groups)
    )
    raw = [reward for group in groups for reward in group]
    _, ours = post_process_rewards(args, [Sample(reward=reward) for reward in raw])
    assert ours == pytest.approx(slimes_own(args, raw), abs=2e-3)


@given(st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=2, max_size=8))
def test_faults_leave_the_baseline(raw: list[float]) -> None:
    _, rewards = post_process_rewards(
        args_of(n_samples_per_prompt=len(raw)), [Sample(reward=reward) for reward in raw]
    )
    judged = [reward for reward in raw if not math.isnan(reward)]
    _, alone = post_process_rewards(
        args_of(n_samples_per_prompt=len(judged)), [Sample(reward=reward) for reward in judged]
    )
    left = iter(alone)
    assert rewards == [0.0 if math.isnan(reward) else next(left) for reward in raw]
