"""An environment of ours as TRL drives it, without TRL: what comes of calls, answers and faults."""

from __future__ import annotations

import asyncio
import math
import pickle
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.environments.environment import Environment, tool
from assay.environments.faces.common import opened
from assay.environments.faces.relay import call_relayed, relayed
from assay.environments.faces.trl import environment_factory, environment_reward
from assay.kit.errors import ConfigError
from faces_support import Sums

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
CALLS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c", ""]), JSON), max_size=3)


def row(**more: Any) -> dict[str, Any]:
    prompt = [{"role": "user", "content": "Hello."}]
    return {"prompt": prompt, "terms": [2, 3], **more}


async def episode(made: Any, calls: Sequence[dict[str, Any]], completion: Any, **given: Any) -> Any:
    """One episode as TRL drives it; the tools' answers and the reward."""
    instance = made()
    instance.reset(**row(**given))
    answers = [await instance.add(**arguments) for arguments in calls]
    [reward] = await environment_reward(max_fault_ratio=1.0)(
        prompts=[0], completions=[completion], environments=[instance]
    )
    return answers, reward


def said(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text, **more}]


@pytest.mark.slow
@given(
    calls=CALLS,
    text=st.text(max_size=20),
    broken=st.sampled_from(["", "reset", "add", "reward"]),
    done=st.booleans(),
)
def test_whatever_a_policy_writes_a_tool_answers_and_only_a_fault_is_none(
    calls: list[dict[str, Any]], text: str, broken: str, done: bool
) -> None:
    made = environment_factory(Sums)
    answers, reward = asyncio.run(
        episode(made, calls, said(text), **{"break": broken, "done": done})
    )
    assert all(isinstance(answer, str) for answer in answers)
    broke = any("broke" in answer for answer in answers)
    if broken in ("reset", "reward") or broke:
        assert reward is None
    else:
        assert reward is not None
        assert math.isfinite(reward)


async def test_what_a_policy_writes_is_a_text_for_it_and_no_fault() -> None:
    made = environment_factory(Sums)
    odd: list[dict[str, Any]] = [{}, {"a": "x"}, {"a": 1, "c": 2}, {"a": 10**9}, {"a": None}]
    answers, reward = await episode(made, odd, said("5"))
    assert all(answer.startswith("error: ") for answer in answers)
    assert reward == 1.0
    assert await episode(made, [], said("6")) == ([], 0.0)
    assert await episode(made, [], "5") == ([], 1.0)  # a plain completion
    assert await episode(made, [], said("5", tool_calls=[{}])) == ([], 0.0)  # cut in its calls
    assert await episode(made, [{"a": 1}], [{"role": "tool", "content": "1"}]) == (["1"], 0.25)
    assert await episode(made, [], []) == ([], 0.0)


async def test_half_a_surrogate_pair_breaks_no_tokenizer() -> None:
    instance: Any = environment_factory(Sums)()
    instance.reset(**row())
    assert "half a surrogate pair" in await instance.echo(text="\ud800x")
    assert (await instance.echo(**{"\udfff": 1})).encode()


async def test_after_its_end_an_episode_answers_so_and_earns_what_it_earned() -> None:
    made = environment_factory(Sums)
    answers, reward = await episode(made, [{"a": 5}, {"a": 5}], said("5"), done=True)
    assert answers == ["5", "error: the episode is over"]
    assert reward == 0.25  # it had not answered when it ended


def test_the_tools_are_what_transformers_reads() -> None:
    from transformers.utils import get_json_schema

    instance: Any = environment_factory(Sums)()
    schema = get_json_schema(type(instance).add)["function"]
    assert schema["description"] == "Adds two numbers."
    assert schema["parameters"]["required"] == ["a"]
    assert schema["parameters"]["properties"]["b"] == {
        "type": "integer",
        "description": "the second.",
    }


def test_a_factory_travels_and_opens_anew() -> None:
    made = environment_factory(Sums)
    made()
    again = pickle.loads(pickle.dumps((made, environment_reward(name="mine"))))
    assert again[0]().reset(**row()) == " Add 2 and 3."
    assert again[1].__name__ == "mine"


class Taken(Environment):
    """Has a tool with a name that is TRL's own."""

    @tool
    def get_reward(self) -> str:
        """Says what it earned."""
        return "1"


def test_what_trl_cannot_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="TRL takes no method 'get_reward' as a tool"):
        environment_factory(Taken)()
    with pytest.raises(ConfigError, match="with TRL choose one of: mask, raise"):
        environment_reward(on_fault="drop")


async def test_without_our_factory_it_says_so() -> None:
    with pytest.raises(ConfigError, match="environment_factory="):
        await environment_reward()(prompts=[0], completions=["5"])


def test_a_relay_takes_calls_of_who_knows_the_address_and_nothing_else() -> None:
    with opened(Sums) as world:
        handle = world.episode()
        handle.begin(row())
        with relayed(handle) as address:
            assert call_relayed(address, "add", {"a": 1, "b": 1}, 5.0) == "2"
            assert call_relayed(address, "add", {"a": "x"}, 5.0).startswith("error: add: a")
            for body, path in ((b"{", address), (b"[]", address), (b"{}", address + "x")):
                request = urllib.request.Request(path, data=body, method="POST")
                with pytest.raises(urllib.error.HTTPError, match=r"400|404"):
                    urllib.request.urlopen(request, timeout=5.0)
        with pytest.raises(RuntimeError, match="cannot be reached"):
            call_relayed(address, "add", {"a": 1}, 5.0)
        asyncio.run(handle.aend())
