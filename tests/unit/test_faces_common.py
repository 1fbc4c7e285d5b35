"""The driver of episodes that the faces share."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.face_worlds import CALL, SUMS, Sums
from assay.clients.trainers.common.faults import FaultError
from assay.environments import Ending, Environment, EpisodeLimits, Observation, ToolCall
from assay.environments.faces.common import (
    OVER,
    beginning,
    kept,
    opened,
    reward_of,
    row_of,
)
from assay.environments.formats import format_of
from assay.environments.types import Reply
from assay.kit.errors import ConfigError

ROW = {"a": 2, "b": 3}


class Wanders(Environment):
    """Goes on in another conversation."""

    def turn(self, turn: Reply) -> Observation:
        return Observation.user("elsewhere", context="second")

    def reward(self) -> float:
        return 1.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), st.sampled_from("45"))
def test_the_rewards_of_steps_add_up_to_the_episodes(
    calls: list[tuple[int, int]], answer: str
) -> None:
    with opened(Sums) as world:
        handle = world.episode()
        handle.begin(ROW)
        turns: list[Reply | str] = [
            Reply("", (ToolCall("add", {"a": a, "b": b}),)) for a, b in calls
        ]
        steps = [handle.step(turn) for turn in [*turns, answer]]
        assert [following is None for following, _ in steps] == [False] * len(calls) + [True]
        outcome = handle.end()
    assert sum(reward or 0.0 for _, reward in steps) == pytest.approx(reward_of(outcome))
    assert outcome.turns == len(calls) + 1


def test_calls_after_the_end_are_told_so_and_after_a_fault_are_faults() -> None:
    with opened(Sums, limits=EpisodeLimits(turns=1)) as world:
        handle = world.episode()
        handle.begin(ROW)
        assert handle.call_tool("add", {"a": 2, "b": 3}) == "5"
        assert handle.call_tool("add", {"a": 2, "b": 3}) == OVER
        assert handle.end().ending is Ending.TURN_LIMIT
        broken = world.episode()
        broken.begin(ROW)
        for a in (13, 2):
            with pytest.raises(FaultError, match="the adder is broken"):
                broken.call_tool("add", {"a": a, "b": 3})
        with pytest.raises(FaultError):
            reward_of(broken.end())


def test_another_conversation_is_a_fault_where_a_face_has_one() -> None:
    for one, ends in ((True, True), (False, False)):
        with opened(Wanders, one_conversation=one) as world:
            handle = world.episode()
            handle.begin({"prompt": "?"})
            if ends:
                with pytest.raises(FaultError, match="one conversation"):
                    handle.say("on")
            else:
                following = handle.say("on")
                assert following is not None
                assert following.context == "second"
            handle.end()


async def test_calls_at_once_on_any_loop_follow_one_another() -> None:
    with opened(Sums) as world:
        handle = world.episode()
        await handle.abegin(ROW)
        calls = (handle.acall_tool("add", {"a": n, "b": 0}) for n in range(8))
        assert await asyncio.gather(*calls) == [str(n) for n in range(8)]
        assert (await handle.aend(Ending.ANSWERED)).turns == 8


def test_an_environment_is_opened_once_for_its_settings() -> None:
    assert kept(SUMS, {}) is kept(SUMS, {})
    assert kept(SUMS, {}) is not kept(SUMS, {}, task="math")
    with pytest.raises(ConfigError, match="no option 'tsak'"):
        kept(SUMS, {}, tsak="math")


def test_rows_of_trainers() -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    row = row_of({"extra_info": {"a": 1, "b": 2}, "b": 3, "reward_model": {"ground_truth": "4"}},
                 messages)  # fmt: skip
    assert (row["a"], row["b"], row["reference"], row["prompt"]) == (1, 3, "4", "u")
    assert row_of({"prompt": "own", "reference": "r", "reward_spec": {"ground_truth": "4"}}) == {
        "prompt": "own",
        "reference": "r",
        "reward_spec": {"ground_truth": "4"},
    }


def test_a_conversation_begins_with_the_systems_words_and_the_tools() -> None:
    with opened(Sums) as world:
        handle = world.episode()
        first = handle.begin(ROW)
        form = format_of("tagged")
        made = beginning(form, handle, first, [{"role": "system", "content": "Be brief."}])
    assert [one["role"] for one in made] == ["system", "user"]
    assert made[0]["content"].startswith("Be brief.\n\n")
    assert '"add"' in made[0]["content"]
    assert form.read(CALL.format(2, 3)).calls[0].name == "add"
