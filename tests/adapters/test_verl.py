"""The adapters for verl, called by verl: its loaders, its managers, its advantages."""

from __future__ import annotations

import asyncio
import importlib
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import assay.clients.trainers.verl as adapter
from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices
from assay.clients.trainers.common.faults import FaultError
from assay.kit.errors import ConfigError
from trainer_support import tiny_tokenizer

pytest.importorskip("verl", reason="see `make test-adapters`")

import ray
import verl.trainer.config
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import (
    RewardLoopManager,
    RewardLoopWorker,
    migrate_legacy_reward_impl,
)
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.reward import load_reward_manager
from verl.workers.reward_manager.batch import BatchRewardManager

from assay.clients.trainers.verl_manager import grpo_over_judgements

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

MODULES = pytest.mark.parametrize("path", ["pkg://assay.clients.trainers.verl", adapter.__file__])
FUNCTIONS = pytest.mark.parametrize("name", ["compute_score", "compute_score_async"])
MANAGER = [
    "reward.reward_manager.source=importlib",
    "reward.reward_manager.module.path=pkg://assay.clients.trainers.verl_manager",
    "reward.reward_manager.name=AssayRewardManager",
]


def config_of(*overrides: str) -> Any:
    """verl's own configuration of `main_ppo`, as its command line overrides it."""
    folder = str(Path(verl.trainer.config.__file__).parent)
    with initialize_config_dir(config_dir=folder, version_base=None):
        return migrate_legacy_reward_impl(compose("ppo_trainer", overrides=list(overrides)))


def rows(responses: list[str], reference: Any = "4", **extra: Any) -> DataProto:
    """A batch as the agent loop hands it to the reward loop."""
    tokenizer = tiny_tokenizer()
    ids = [tokenizer.encode(text) for text in responses]
    width = max(map(len, ids))
    padded = [[*row, *[0] * (width - len(row))] for row in ids]
    mask = [[1, 1, *[1] * len(row), *[0] * (width - len(row))] for row in ids]
    return DataProto.from_dict(
        tensors={
            "prompts": torch.ones(len(ids), 2, dtype=torch.long),
            "responses": torch.tensor(padded),
            "attention_mask": torch.tensor(mask),
        },
        non_tensors={
            "data_source": np.array(["math"] * len(ids), dtype=object),
            "reward_model": np.array([{"ground_truth": reference} for _ in ids], dtype=object),
            "extra_info": np.array([dict(extra) for _ in ids], dtype=object),
            "raw_prompt": np.array(
                [[{"role": "user", "content": "2+2?"}]] * len(ids), dtype=object
            ),
            "uid": np.array(["g"] * len(ids), dtype=object),
        },
    )


def scored(manager: Any, data: DataProto) -> list[dict[str, Any]]:
    async def all_of_them() -> list[dict[str, Any]]:
        manager.loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(manager.run_single(data[i : i + 1]) for i in range(len(data)))
        )

    return asyncio.run(all_of_them())


@MODULES
@FUNCTIONS
def test_verl_loads_the_function_by_path_and_name(
    server: EmbeddedServices, path: str, name: str
) -> None:
    kwargs = "+reward.custom_reward_function.reward_kwargs"
    config = config_of(
        f"reward.custom_reward_function.path={path}",
        f"reward.custom_reward_function.name={name}",
        f"{kwargs}.target={server.address}",
        f"{kwargs}.components=[correctness,style]",
    )
    found = scored(load_reward_manager(config, tiny_tokenizer()), rows([RIGHT, WRONG]))
    assert [one["reward_score"] for one in found] == [1.0, 0.0]
    told = found[0]["reward_extra_info"]
    assert (told["score"], told["verdict"], told["fault"]) == (1.0, "correct", "")
    assert told["component_correctness"] == 1.0
    assert math.isnan(told["component_style"])
    assert [one["reward_extra_info"].keys() for one in found] == [told.keys()] * 2
    assert "acc" not in told


def test_the_keys_of_older_versions(server: EmbeddedServices) -> None:
    config = config_of(
        "custom_reward_function.path=pkg://assay.clients.trainers.verl",
        "custom_reward_function.name=compute_score",
        f"+custom_reward_function.reward_kwargs.target={server.address}",
    )
    [found] = scored(load_reward_manager(config, tiny_tokenizer()), rows([RIGHT]))
    assert found["reward_score"] == 1.0


def test_the_environment_and_the_row_say_what_the_config_does_not(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("ASSAY_TASK")
    info = {"verifier": "exact", "parameters": {"case_sensitive": False, "strip": None}}
    told = adapter.compute_score("any", "YES", "yes", info)
    assert told["score"] == 1.0
    listed = adapter.compute_score(
        "x", RIGHT, np.array(["4", "5"], dtype=object), tasks={"x": "math"}
    )
    assert listed["score"] == 1.0
    with pytest.raises(FaultError, match="UNKNOWN_TASK"):
        adapter.compute_score("a source without a task", RIGHT, "4")


def test_what_is_no_option_is_refused(environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="'verifer'; choose from: target"):
        adapter.compute_score("math", RIGHT, "4", verifer="math")
    with pytest.raises(ConfigError, match="with verl choose one of: raise, mask"):
        adapter.compute_score("math", RIGHT, "4", on_fault="drop")
    router = {"reward_router_address": "127.0.0.1:1", "reward_model_tokenizer": None}
    assert adapter.compute_score("math", RIGHT, "4", {}, **router)["score"] == 1.0


@FUNCTIONS
def test_a_fault_raises_through_verls_manager(troubled: Trouble, name: str) -> None:
    config = config_of(
        "reward.custom_reward_function.path=pkg://assay.clients.trainers.verl",
        f"reward.custom_reward_function.name={name}",
    )
    manager = load_reward_manager(config, tiny_tokenizer())
    with pytest.raises(FaultError, match=troubled.reason):
        scored(manager, rows([RIGHT], troubled.reference))


def test_the_batch_manager_of_the_older_trainer(
    environment: pytest.MonkeyPatch, dead_target: str
) -> None:
    manager = BatchRewardManager(
        tiny_tokenizer(), 0, adapter.compute_score_batch, task="math", timeout_s=1.5
    )
    told = manager(rows([RIGHT, WRONG]), return_dict=True)
    assert told["reward_tensor"].sum(-1).tolist() == [1.0, 0.0]
    assert told["reward_extra_info"]["verdict"] == ["correct", "incorrect"]
    environment.setenv("ASSAY_TARGET", dead_target)
    with pytest.raises(FaultError, match="UNREACHABLE"):
        manager(rows([RIGHT, WRONG]))


def test_the_reward_manager_in_verls_worker(
    server: EmbeddedServices, tokenizer_folder: Path
) -> None:
    config = config_of(
        *MANAGER,
        f"actor_rollout_ref.model.path={tokenizer_folder}",
        f"+reward.reward_kwargs.target={server.address}",
    )
    worker = RewardLoopWorker(config)
    found = asyncio.run(worker.compute_score_batch(rows([RIGHT, WRONG])))
    assert [one["reward_score"] for one in found] == [1.0, 0.0]
    assert found[1]["reward_extra_info"]["verdict"] == "incorrect"


@pytest.fixture
def cluster() -> Iterator[None]:
    """Ray on this machine; its sockets want a short path."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        _temp_dir=folder,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cluster")
def test_rewards_and_faults_of_rays_actors(
    server: EmbeddedServices, tokenizer_folder: Path
) -> None:
    config = config_of(
        *MANAGER,
        f"actor_rollout_ref.model.path={tokenizer_folder}",
        "reward.num_workers=1",
        f"+reward.reward_kwargs.target={server.address}",
    )
    manager = RewardLoopManager(config)
    told = manager.compute_rm_score(rows([RIGHT, WRONG]))
    assert told.batch["rm_scores"].sum(-1).tolist() == [1.0, 0.0]
    assert told.non_tensor_batch["verdict"].tolist() == ["correct", "incorrect"]
    with pytest.raises(FaultError, match="UNUSABLE_REFERENCE"):
        manager.compute_rm_score(rows([RIGHT], " "))


def test_the_v1_trainer_leaves_a_fault_out_of_its_group(
    server: EmbeddedServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own `_run_prompt`, three sessions of one prompt; the queue is a list."""
    told: list[str] = []

    async def put(key: str, partition_id: str, tag: dict[str, str]) -> None:
        told.append(tag["status"])

    queue = ModuleType("transfer_queue")
    queue.async_kv_put = put  # type: ignore[attr-defined]
    queue.KVBatchMeta = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transfer_queue", queue)
    loops = importlib.import_module("verl.trainer.ppo.v1.agent_loop_tq")
    kept: dict[int, float] = {}

    class Worker(loops.AgentLoopWorkerTQ.__ray_metadata__.modified_class):
        def __init__(self) -> None:
            rollout = SimpleNamespace(n=3)
            self.config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))

        async def _run_agent_loop(self, *_: Any, session_id: int, **__: Any) -> None:
            gold = " " if session_id == 1 else "4"
            found = await adapter.compute_score_async("math", RIGHT, gold, target=server.address)
            kept[session_id] = found["score"]

    asyncio.run(Worker()._run_prompt({"uid": "u"}, {}, {"validate": False}))
    assert told == ["running", "failure"]
    assert kept == {0: 1.0, 2: 1.0}


def test_a_masked_fault_is_nan_and_moves_nobody(troubled: Trouble) -> None:
    troubled_rows = rows([RIGHT], troubled.reference)
    config = config_of(*MANAGER, "+reward.reward_kwargs.on_fault=mask")
    [found] = scored(load_reward_manager(config, tiny_tokenizer()), troubled_rows)
    assert math.isnan(found["reward_score"])
    assert found["reward_extra_info"]["fault"] == troubled.reason
    batch = rows([RIGHT, WRONG, RIGHT])
    batch.batch["response_mask"] = batch.batch["attention_mask"][:, 2:]
    scores = torch.zeros_like(batch.batch["responses"], dtype=torch.float32)
    scores[:, -1] = torch.tensor([1.0, 0.0, found["reward_score"]])
    batch.batch["token_level_rewards"] = scores
    told = compute_advantage(batch, "assay_grpo", config=config.algorithm).batch["advantages"]
    half = 0.5**0.5
    assert torch.allclose(told[:, 0], torch.tensor([half, -half, 0.0]), atol=1e-4)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5, width=32)), min_size=1, max_size=12),
    st.booleans(),
)
def test_without_faults_the_estimator_is_verls_grpo(
    drawn: list[tuple[int, float]], by_deviation: bool
) -> None:
    index = np.array([group for group, _ in drawn])
    rewards = torch.tensor([[0.0, reward] for _, reward in drawn])
    mask = torch.ones_like(rewards)
    config = OmegaConf.create({"norm_adv_by_std_in_grpo": by_deviation})
    ours, _ = grpo_over_judgements(rewards, mask, index, config=config)
    theirs, _ = core_algos.compute_grpo_outcome_advantage(
        rewards, mask, index, norm_adv_by_std_in_grpo=by_deviation
    )
    assert torch.allclose(ours, theirs, atol=1e-5)


@given(st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=2, max_size=8))
def test_faults_leave_the_baseline(rewards: list[float]) -> None:
    found = torch.tensor(rewards)[:, None]
    told, _ = grpo_over_judgements(found, torch.ones_like(found), ["g"] * len(rewards))
    judged = ~found.isnan()
    assert not told.isnan().any()
    assert (told[~judged] == 0).all()
    alone = found[judged][:, None]
    if len(alone) > 1:
        want, _ = grpo_over_judgements(alone, torch.ones_like(alone), ["g"] * len(alone))
        assert torch.equal(told[judged], want[:, 0])
