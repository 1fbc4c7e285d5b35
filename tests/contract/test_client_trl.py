"""The reward functions as TRL calls them: its own `_calculate_rewards`, over the wire."""

from __future__ import annotations

import asyncio
import inspect
import math
import pickle
import threading
from collections import defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import PartialState  # type: ignore[import-untyped]  # it ships no types
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import get_callable_name, is_async_callable

from assay.clients import Item, RewardClient
from assay.clients.testing import FakeRewardServer, Knobs
from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.trl import reward_function, sync_reward_function, text_of
from assay.kit.errors import ConfigError


class Trainer:
    """What `_calculate_rewards` uses of a trainer, and nothing else."""

    def __init__(self, *reward_funcs: Any) -> None:
        self.accelerator = SimpleNamespace(device=torch.device("cpu"), is_main_process=True)
        self.reward_funcs = list(reward_funcs)
        self.reward_processing_classes = [None] * len(reward_funcs)
        self.reward_func_names = [get_callable_name(function) for function in reward_funcs]
        self.state = SimpleNamespace(global_step=0)
        self.args = SimpleNamespace(report_to=[])
        self.environments = None
        self.found = torch.empty(0)
        self._pending_extra_logs: dict[str, list[Any]] = defaultdict(list)
        self._pending_metrics: dict[str, list[float]] = defaultdict(list)
        self.async_loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.async_loop.run_forever, daemon=True)
        self._thread.start()

    _log_completion_extra = GRPOTrainer._log_completion_extra
    _log_metric = GRPOTrainer._log_metric

    def rewards(self, rows: list[dict[str, Any]], completions: list[Any]) -> torch.Tensor:
        prompts = [row["prompt"] for row in rows]
        ids = [[1, 2, 3]] * len(rows)
        found: torch.Tensor = GRPOTrainer._calculate_rewards(self, rows, prompts, completions, ids)
        return found

    def close(self) -> None:
        self.async_loop.call_soon_threadsafe(self.async_loop.stop)
        self._thread.join()
        self.async_loop.close()


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    """TRL logs and gathers through accelerate, which wants to know how many processes there are."""
    PartialState(cpu=True)
    yield
    PartialState._reset_state()


@pytest.fixture
def server() -> Iterator[FakeRewardServer]:
    with FakeRewardServer() as fake:
        yield fake


def rewards_of(function: Any, rows: list[dict[str, Any]], completions: list[Any]) -> Trainer:
    trainer = Trainer(function)
    try:
        trainer.found = trainer.rewards(rows, completions)
    finally:
        trainer.close()
    return trainer


def same(found: torch.Tensor, expected: list[float]) -> bool:
    pairs = zip(found.flatten().tolist(), expected, strict=True)
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


ROWS = [{"prompt": "p", "reference": "1"}, {"prompt": "p", "reference": "1"}]


@pytest.mark.parametrize("make", [reward_function, sync_reward_function])
def test_trl_gets_rewards_and_nan_for_faults(make: Any) -> None:
    with FakeRewardServer(knobs=Knobs(fault_ids=frozenset({"1"}))) as server:
        function = make(server.address, verifier="exact", name="mine")
        trainer = rewards_of(function, ROWS, ["1", "1"])
        assert same(trainer.found, [1.0, math.nan])
        function.client.close()
    assert trainer.reward_func_names == ["mine"]
    assert trainer._pending_metrics == {
        "mine/fault/VERIFIER_FAILED": [1.0],
        "mine/verdict/correct": [1.0],
        "mine/fault_ratio": [0.5],
    }
    assert trainer._pending_extra_logs["mine_verdict"] == ["correct", "VERIFIER_FAILED"]
    assert trainer._pending_extra_logs["mine_explanation"] == ["equal", "the fake is set to"]


def test_conversations_columns_and_parameters(server: FakeRewardServer) -> None:
    prompt = [{"role": "user", "content": "1+1?"}]
    rows: list[dict[str, Any]] = [
        {"prompt": prompt, "answer": 2, "task": "exact", "parameters": {"strip": True, "n": None}},
        {"prompt": prompt, "answer": "3", "task": "exact", "parameters": None},
    ]
    completions = [[{"role": "assistant", "content": text}] for text in ("2", "2")]
    with RewardClient(server.address) as client:
        trainer = rewards_of(reward_function(client, parameters={"x": 1}), rows, completions)
    assert same(trainer.found, [1.0, 0.0])
    first, second = server.requests[0]
    assert first.task == "exact"
    assert first.prompt[0].content == "1+1?"
    assert set(first.parameters) == {"strip", "x"}
    assert set(second.parameters) == {"x"}
    assert first.response_token_count == 3
    assert first.group_id == second.group_id


@pytest.mark.parametrize("make", [reward_function, sync_reward_function])
def test_a_server_that_never_was_stops_trl(make: Any) -> None:
    nobody = r"no reward server answers at 127\.0\.0\.1:1 "
    with (
        RewardClient("127.0.0.1:1", timeout_s=0.3) as client,
        pytest.raises(FirstContactError, match=nobody),
    ):
        rewards_of(make(client), ROWS, ["1", "1"])


@pytest.mark.parametrize("make", [reward_function, sync_reward_function])
def test_a_server_that_is_gone_gives_no_reward_at_all(make: Any) -> None:
    with FakeRewardServer() as server:
        function = make(server.address, verifier="exact", timeout_s=1.0)
        assert same(rewards_of(function, ROWS, ["1", "2"]).found, [1.0, 0.0])
    trainer = rewards_of(function, ROWS, ["1", "1"])
    function.client.close()
    assert same(trainer.found, [math.nan, math.nan])
    assert trainer._pending_metrics["assay/fault_ratio"] == [1.0]


def test_trl_sees_coroutine_functions_with_names_that_can_be_pickled(
    server: FakeRewardServer,
) -> None:
    function = reward_function(server.address, verifier="exact", name="mine")
    assert inspect.iscoroutinefunction(function)
    assert is_async_callable(function)
    assert function.__name__ == get_callable_name(function) == "mine"
    copy = pickle.loads(pickle.dumps(function))
    assert asyncio.run(copy(prompts=["p"], completions=["1"], reference=["1"])) == [1.0]
    copy.client.close()
    assert not is_async_callable(sync_reward_function(server.address))


def test_wrong_columns_are_said() -> None:
    function = sync_reward_function("127.0.0.1:1", reference_column="gold")
    with pytest.raises(ConfigError, match=r"'gold'; it has: reference"):
        function(prompts=["p"], completions=["1"], reference=["1"])
    with pytest.raises(ConfigError, match="row 0 is a bytes"):
        sync_reward_function("127.0.0.1:1")(prompts=["p"], completions=["1"], reference=[b"1"])


def test_the_text_of_a_completion() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    turns: list[dict[str, Any]] = [
        {"role": "assistant", "content": "x"},
        {"role": "tool", "content": "ignored"},
        {"role": "assistant", "content": blocks},
    ]
    assert text_of(turns) == "x\n\nab"
    assert text_of("plain") == "plain"
    assert Item(text_of([])).response == ""
