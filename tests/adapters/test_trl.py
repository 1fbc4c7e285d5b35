"""TRL's AsyncGRPOTrainer: a function that travels to another process, and its scoring of groups."""

from __future__ import annotations

import math
import multiprocessing
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices, RewardClient
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.trl import reward_function, sync_reward_function
from assay.clients.trainers.trl_streaming import stream_rewards
from assay.kit.errors import ConfigError
from trainer_support import tiny_tokenizer

pytest.importorskip("aiohttp", reason="see `make test-adapters`")

from trl_async_support import in_child, scored

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

MAKERS = pytest.mark.parametrize("make", [reward_function, sync_reward_function])


@MAKERS
def test_it_travels_to_a_spawned_process(server: EmbeddedServices, make: Any) -> None:
    pickled = pickle.dumps(make(server.address, task="math", name="mine"))
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=in_child, args=(pickled, [RIGHT, WRONG], there)
    )
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


BY_LENGTH: dict[str, Any] = {
    "verifier": "length",
    "parameters": {"shape": "linear", "unit": "characters", "max_length": 80},
}


def policy() -> Any:
    """A model that says anything, and ends a response now and then."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=1, num_key_value_heads=1, head_dim=16, max_position_embeddings=128,
            pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )  # fmt: skip


def trained(reward: Any, folder: Path, *, streamed: bool) -> list[float]:
    """The rewards of two steps of TRL's trainer."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = [{"prompt": "ab"[n % 2]} for n in range(8)]
    trainer = GRPOTrainer(
        model=policy(),
        processing_class=tiny_tokenizer(),
        reward_funcs=reward,
        train_dataset=Dataset.from_list(rows),
        args=GRPOConfig(
            output_dir=str(folder), per_device_train_batch_size=16, num_generations=4, max_steps=2,
            max_completion_length=60, use_cpu=True, bf16=False, gradient_checkpointing=False,
            save_strategy="no", report_to="none", disable_tqdm=True, logging_steps=1, seed=3,
        ),
    )  # fmt: skip
    if streamed:
        stream_rewards(trainer, reward)
    trainer.train()
    return [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]


def test_streamed_rewards_are_those_of_a_whole_batch(
    server: EmbeddedServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early: list[Any] = []
    send = RewardClient.submit_one
    monkeypatch.setattr(
        RewardClient, "submit_one", lambda client, item: early.append(item) or send(client, item)
    )
    late: list[int] = []
    score = RewardClient.submit
    monkeypatch.setattr(
        RewardClient,
        "submit",
        lambda client, items: late.append(len(items)) or score(client, items),
    )
    found = {}
    for streamed in (False, True):
        with reward_function(server.address).client as client:
            reward = reward_function(client, **BY_LENGTH)
            found[streamed] = trained(reward, tmp_path / str(streamed), streamed=streamed)
            assert not reward.early
    assert found[True] == found[False]
    assert 0 < found[True][0] < 1
    assert early
    assert late[:2] == [16, 16]
    assert len(early) + sum(late[2:]) == 32  # each is scored once


def test_streaming_from_a_server_that_is_gone(dead_target: str, tmp_path: Path) -> None:
    with reward_function(dead_target, timeout_s=0.5).client as client:
        reward = reward_function(client, **BY_LENGTH)
        with pytest.raises(ConfigError, match="does not have this reward function"):
            stream_rewards(SimpleNamespace(reward_funcs=[], tools=None), reward)
        rewards = trained(reward, tmp_path, streamed=True)
    assert rewards == [None, None]
