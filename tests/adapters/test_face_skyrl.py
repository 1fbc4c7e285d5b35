"""An environment in SkyRL: its registry, its environments' interface, its generator."""

from __future__ import annotations

import asyncio
import typing
from typing import Any

import pytest
import typing_extensions

from adapters.face_worlds import CALL, SUMS
from assay.clients.trainers.common.faults import FaultError
from trainer_support import tiny_tokenizer

pytest.importorskip("skyrl_gym", reason="see `make test-adapters`")

import skyrl_gym

from assay.environments.faces.skyrl import register_environment

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 3?"}]


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    register_environment("assay-sums", SUMS)


def made(**extras: Any) -> Any:
    return skyrl_gym.make(
        "assay-sums", env_config={}, extras={"a": 2, "b": 3, "max_turns": 4, **extras}
    )


def test_an_episode_by_skyrls_interface() -> None:
    env = made()
    first, _ = env.init(PROMPT)
    assert [one["role"] for one in first] == ["system", "user"]
    assert first[0]["content"].startswith("Be brief.")
    assert "add" in first[0]["content"]
    assert first[1]["content"] == "What is 2 + 3?"
    stepped = env.step(CALL.format(2, 3))
    assert (stepped["reward"], stepped["done"]) == (0.25, False)
    assert "5" in stepped["observations"][0]["content"]
    stepped = env.step("It is 5.")
    assert (stepped["reward"], stepped["done"], stepped["observations"]) == (1.0, True, [])
    assert env.get_metrics() == {"turns": 2.0, "tool_calls": 1.0, "refused_calls": 0.0}
    environment = env.handle.episode.environment
    closed = type(environment).closed
    env.close()
    env.close()
    assert type(environment).closed == closed  # its end had closed it


def test_skyrl_may_stop_an_episode_before_its_end() -> None:
    env = made()
    env.init(PROMPT)
    environment = env.handle.episode.environment
    closed = type(environment).closed
    env.close()
    assert type(environment).closed == closed + 1


def test_what_the_policy_cannot_call_is_told_to_it() -> None:
    env = made()
    env.init(PROMPT)
    stepped = env.step(CALL.format('"x"', 3))
    assert not stepped["done"]
    assert "integer" in stepped["observations"][0]["content"]
    assert env.get_metrics()["refused_calls"] == 1.0


def test_skyrls_turns_are_the_episodes() -> None:
    env = made(max_turns=1)
    env.init(PROMPT)
    stepped = env.step(CALL.format(2, 3))
    assert (stepped["done"], stepped["metadata"]) == (True, {"ending": "turn-limit"})
    assert stepped["reward"] == 0.25


@pytest.mark.parametrize("turn", [CALL.format(13, 3), "judge"])
def test_a_fault_is_no_reward(turn: str) -> None:
    env = made()
    env.init(PROMPT)
    with pytest.raises(FaultError, match="ENVIRONMENT_FAILED"):
        env.step(turn)
    with pytest.raises(FaultError, match="ENVIRONMENT_FAILED"):
        env.step("5")
    env.close()
    with pytest.raises(FaultError, match="ENVIRONMENT_FAILED"):
        made(a="x").init(PROMPT)


class Engine:
    """SkyRL's client of engines, whose model says what it is told to, in real tokens."""

    def __init__(self, tokenizer: Any, turns: list[str]) -> None:
        self.tokenizer, self.turns = tokenizer, list(turns)

    async def generate(self, given: Any, model: Any = None) -> dict[str, Any]:
        text = self.turns.pop(0)
        ids = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        return {"responses": [text], "response_ids": [ids], "stop_reasons": ["stop"],
                "response_logprobs": [[-0.5] * len(ids)]}  # fmt: skip

    async def finish_session(self, session: str) -> None:
        pass


def loop_of(turns: list[str]) -> Any:
    """SkyRL's own agent loop over one trajectory."""
    pytest.importorskip("skyrl", reason="see `make test-adapters`")
    with pytest.MonkeyPatch.context() as patch:
        # SkyRL says Python 3.12; on 3.11 pydantic reads no TypedDict of typing.
        patch.setattr(typing, "TypedDict", typing_extensions.TypedDict)
        from skyrl.train.config import GeneratorConfig, SkyRLGymConfig
        from skyrl.train.generators import skyrl_gym_generator as generators

    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    config = GeneratorConfig(max_turns=4, max_input_length=4096, batched=False)
    config.sampling_params.logprobs = 1
    generator = generators.SkyRLGymGenerator(
        config, SkyRLGymConfig(max_env_workers=2), Engine(tokenizer, turns), tokenizer
    )
    return asyncio.run(generator.agent_loop(PROMPT, "assay-sums", {"a": 2, "b": 3}, 512, 4096))


def test_skyrls_generator_trains_on_the_policys_tokens_only() -> None:
    found = loop_of([CALL.format(2, 3), "It is 5."])
    own = [token for token, mine in zip(found.response_ids, found.loss_mask, strict=True) if mine]
    tokenizer = tiny_tokenizer()
    text = tokenizer.decode(own, skip_special_tokens=True)
    assert CALL.format(2, 3) in text
    assert "It is 5." in text
    assert 0 in found.loss_mask
    assert sum(found.reward) == pytest.approx(1.25)
    assert found.env_metrics["tool_calls"] == 1.0


def test_a_fault_leaves_no_trajectory_of_skyrls_generator() -> None:
    with pytest.raises(FaultError, match="the adder is broken"):
        loop_of([CALL.format(13, 3), "It is 5."])
