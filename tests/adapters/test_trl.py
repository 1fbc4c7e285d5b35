"""TRL's AsyncGRPOTrainer: a function that travels to another process, and its scoring of groups."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices
from assay.clients.adapters.faults import FaultError
from assay.clients.trl import reward_function, sync_reward_function
from assay.rpc.errors import ConfigError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

pytest.importorskip("aiohttp", reason="see `make test-adapters`")

from trl.experimental.async_grpo.async_rollout_worker import RolloutGroup, _AsyncRolloutLoop
from trl.trainer.utils import get_callable_name

MAKERS = pytest.mark.parametrize("make", [reward_function, sync_reward_function])


def scored(function: Any, completions: list[str], reference: str) -> list[Any]:
    """What `AsyncGRPOTrainer`'s worker makes of a group."""
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


def in_child(pickled: bytes, pipe: Any) -> None:
    samples = scored(pickle.loads(pickled), [RIGHT, WRONG], "4")
    pipe.send([sample.metrics["rewards/mine"] for sample in samples])


@MAKERS
def test_it_travels_to_a_spawned_process(server: EmbeddedServices, make: Any) -> None:
    pickled = pickle.dumps(make(server.address, task="math", name="mine"))
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=in_child, args=(pickled, there))
    child.start()
    there.close()
    assert here.recv() == [1.0, 0.0]
    child.join()


@MAKERS
def test_a_fault_has_no_reward_and_no_advantage(trouble: Trouble, make: Any) -> None:
    with make(trouble.target, task="math", timeout_s=1.5).client as client:
        samples = scored(make(client, task="math"), [RIGHT, WRONG], trouble.reference)
        assert [sample.advantage for sample in samples] == [0.0, 0.0]
        assert all(math.isnan(sample.metrics["reward"]) for sample in samples)
        with pytest.raises(FaultError, match=trouble.reason):
            scored(make(client, task="math", on_fault="raise"), [RIGHT, WRONG], trouble.reference)


def test_trl_cannot_drop() -> None:
    with pytest.raises(ConfigError, match="with TRL choose one of: mask, raise"):
        reward_function("127.0.0.1:1", on_fault="drop")
