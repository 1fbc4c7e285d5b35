"""An environment in verl: its agent loop and its tools, by verl's own classes."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from adapters.face_worlds import CALL, SUMS
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.common.verl_rows import TOOL_FAULT
from assay.clients.trainers.verl import compute_score
from assay.kit.errors import ConfigError
from trainer_support import tiny_tokenizer

pytest.importorskip("verl", reason="see `make test-adapters`")

import hydra
from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
from verl.tools.tool_registry import load_all_tools
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from assay.environments.faces.verl import tool_config

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}"
    "{% if m['tool_calls'] %}{% for c in m['tool_calls'] %}<tool_call>\n"
    "{{ c['function'] | tojson }}\n</tool_call>{% endfor %}{% endif %}"
    "{% if m['role'] == 'assistant' %}<end>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
ROW = {"raw_prompt": [{"role": "user", "content": "2 + 3?"}], "extra_info": {"a": 2, "b": 3}}


class Servers:
    """verl's client of its engines, whose model says what it is told to, in real tokens."""

    def __init__(self, tokenizer: Any, turns: list[str]) -> None:
        self.tokenizer, self.turns, self.prompts = tokenizer, list(turns), []

    async def generate(self, *, request_id: str, prompt_ids: list[int], sampling_params: Any,
                       **_: Any) -> TokenOutput:  # fmt: skip
        self.prompts.append(list(prompt_ids))
        ids = self.tokenizer.encode(self.turns.pop(0), add_special_tokens=False)
        ids = [*ids, self.tokenizer.eos_token_id]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids))


def loop_of(turns: list[str], length: int = 4096, tools: Any = (), **own: Any) -> Any:
    """An agent loop, made as verl's worker makes it, by hydra and the name of its class."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    rollout = {
        "prompt_length": 4096, "response_length": length, "full_determinism": False,
        "multi_turn": {"format": "hermes", "max_user_turns": 8, "max_assistant_turns": 8,
                       "max_parallel_calls": 4, "max_tool_response_length": 999,
                       "tool_response_truncate_side": "left"},
    }  # fmt: skip
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    target = "assay.environments.faces.verl.EnvironmentAgentLoop"
    if tools:
        target = f"{ToolAgentLoop.__module__}.ToolAgentLoop"
    return hydra.utils.instantiate(
        {"_target_": target, **own},
        trainer_config=DictConfigWrap(config),
        server_manager=Servers(tokenizer, turns),
        tokenizer=tokenizer,
        processor=None,
        dataset_cls=RLHFDataset,
        data_config=DictConfigWrap(config.data),
        tools=ToolListWrap(list(tools)),
    )


def run(turns: list[str], length: int = 4096, row: Any = ROW, **own: Any) -> tuple[Any, Any]:
    async def act() -> tuple[Any, Any]:
        loop = loop_of(turns, length, environment=SUMS, format="tagged", **own)
        return loop, await loop.run({"temperature": 1.0}, **row)

    return asyncio.run(act())


def test_an_episode_in_tokens() -> None:
    loop, found = run([CALL.format(2, 3), "It is 5."])
    decode = loop.tokenizer.decode
    pairs = list(zip(found.response_ids, found.response_mask, strict=True))
    own = decode([token for token, mine in pairs if mine])
    assert own == f"{CALL.format(2, 3)}<end>It is 5.<end>"
    others = decode([token for token, mine in pairs if not mine])
    assert "5" in others
    assert CALL.format(2, 3) not in others
    assert decode(found.prompt_ids).endswith("[user]What is 2 + 3?[assistant]")
    assert (
        loop.server_manager.prompts[1]
        == found.prompt_ids + found.response_ids[: -len("It is 5.") - 1]
    )
    assert found.reward_score == pytest.approx(1.25)
    assert found.extra_fields["turn_scores"] == [0.25, 0.0]
    assert found.extra_fields["assay_ending"] == "answered"
    logprobs = zip(found.response_logprobs, found.response_mask, strict=True)
    assert all((one == -0.5) == bool(mine) for one, mine in logprobs)


def test_a_full_response_ends_the_episode() -> None:
    _, found = run([CALL.format(2, 3), "It is 5."], length=40)
    assert found.extra_fields["assay_ending"] == "token-limit"
    assert len(found.response_ids) == 40
    assert found.reward_score == 0.0


@pytest.mark.parametrize("turns", [[CALL.format(13, 3)], ["judge"]])
def test_a_fault_is_raised_or_all_of_it_is_masked(turns: list[str]) -> None:
    with pytest.raises(FaultError, match="is broken"):
        run(list(turns))
    _, found = run(list(turns), on_fault="mask")
    assert math.isnan(found.reward_score)
    assert not any(found.response_mask)
    assert "is broken" in found.extra_fields["assay_fault"]


def test_a_fault_before_the_first_token_has_verls_shapes() -> None:
    row = {**ROW, "extra_info": {"a": "x", "b": 1}}
    _, found = run([], on_fault="mask", row=row)
    assert (found.response_mask, len(found.response_ids)) == ([0], 1)
    assert found.prompt_ids
    assert math.isnan(found.as_dict()["rm_scores"][-1])


@pytest.fixture
def tools(tmp_path: Path) -> list[Any]:
    """The environment's tools as verl reads them from a file."""
    file = tmp_path / "tools.yaml"
    OmegaConf.save(OmegaConf.create(tool_config(SUMS)), file)
    return load_all_tools(str(file), None)


def by_verls_loop(tools: list[Any], turns: list[str]) -> Any:
    async def act() -> Any:
        loop = loop_of(turns, tools=tools)
        create = {"create_kwargs": {"a": 2, "b": 3}}
        return loop, await loop.run({}, **ROW, tools_kwargs={"add": create})

    return asyncio.run(act())


def call(a: int, b: int) -> str:
    return (
        f"<tool_call>\n{json.dumps({'name': 'add', 'arguments': {'a': a, 'b': b}})}\n</tool_call>"
    )


def test_verls_own_loop_calls_the_tools(tools: list[Any]) -> None:
    loop, found = by_verls_loop(tools, [call(2, 3), call(1, 1), "It is 5."])
    text = loop.tokenizer.decode(found.response_ids)
    assert "[tool]5[" in text
    assert "[tool]2[" in text
    assert found.extra_fields["tool_rewards"] == [0.25, 0.0]
    assert TOOL_FAULT not in found.extra_fields


def test_a_fault_of_a_tool_is_no_reward_though_verls_loop_goes_on(tools: list[Any]) -> None:
    _, found = by_verls_loop(tools, [call(13, 3), "It is 5."])
    marked = found.extra_fields[TOOL_FAULT]
    assert marked["reason"] == "ENVIRONMENT_FAILED"
    given = ("math", r"\boxed{5}", "5", {TOOL_FAULT: marked})
    with pytest.raises(FaultError, match="the adder is broken"):
        compute_score(*given, target="127.0.0.1:1")
    told = compute_score(*given, target="127.0.0.1:1", on_fault="mask")
    assert (math.isnan(told["score"]), told["fault"]) == (True, "ENVIRONMENT_FAILED")


async def test_a_tool_alone_has_an_episode_of_its_own(tools: list[Any]) -> None:
    [tool] = tools
    name, _ = await tool.create(create_kwargs={"a": 2, "b": 3})
    response, reward, _ = await tool.execute(name, {"a": 2, "b": 3})
    assert (response.text, reward) == ("5", 0.25)
    assert await tool.calc_reward(name) == 0.25
    await tool.release(name)
    broken, _ = await tool.create(create_kwargs={"a": 2, "b": 3})
    with pytest.raises(FaultError):
        await tool.execute(broken, {"a": 13, "b": 3})


def test_a_tool_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are: add"):
        tool_config(SUMS, tools=["rm"])
