"""Whatever an episode was, its record says it, reads back as it, and replays to it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.types import Component, Fault, Item, Judgement, Result, Span
from assay.environments import (
    Ending,
    Environment,
    EpisodeLimits,
    EpisodeMessage,
    Observation,
    Reply,
    ToolCall,
    ToolResult,
    tool,
)
from assay.environments.record import (
    agents_of,
    digest_of,
    plain,
    read,
    record_of,
    result_from,
    result_json,
    written,
)
from assay.environments.replay import EpisodeReplay
from assay.kit.errors import ConfigError
from environments_support import Script, Tally, Trouble, acted, calls, told

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
named = st.one_of(
    st.tuples(st.just("add"), st.builds(lambda n: {"amount": n}, st.integers(0, 3))),
    st.tuples(st.sampled_from(["add", "halve", "\ud800", "x" * 500]), json_values),
    st.sampled_from(["halve", "spend", "stop", ""]),
)
turns = st.one_of(
    st.lists(named, min_size=1, max_size=3).map(lambda some: calls(*some)),
    st.sampled_from([Reply("go on", answer="go on"), Reply("end", answer="end", tokens=3)]),
    st.text(max_size=20).map(lambda text: Reply(text, answer=text, void=not text)),
)
scripts = st.lists(turns, max_size=5)
limits = st.builds(EpisodeLimits, turns=st.sampled_from([0, 2]), calls=st.sampled_from([0, 2]))


@given(scripts, limits, st.frozensets(st.integers(0, 8), max_size=1))
def test_a_record_is_json_and_reads_back(
    script: Script, limit: EpisodeLimits, breaks: frozenset[int]
) -> None:
    world = Tally(shared=Trouble(breaks))
    episode = asyncio.run(acted(world, {"start": 1}, script, limits=limit))
    record = record_of(episode)
    kept = json.loads(json.dumps(record, allow_nan=False))
    assert kept == record == written(read(kept))
    back = read(kept)
    assert back.outcome is not None
    assert episode.outcome is not None
    assert (back.outcome.ending, back.outcome.trains) == (episode.ending, episode.outcome.trains)
    assert back.outcome.result == episode.outcome.result
    assert [one.turn.text for one in back.steps] == [one.turn.text for one in episode.steps]
    assert [len(one.turn.calls) for one in back.steps] == [
        len(one.turn.calls) for one in episode.steps
    ]
    assert (kept["trusted"], kept["trains"]) == (
        episode.outcome.ending.trusted, episode.outcome.trains,
    )  # fmt: skip


@given(scripts, limits)
def test_a_replay_is_the_episode(script: Script, limit: EpisodeLimits) -> None:
    async def main() -> None:
        episode = await acted(Tally(), {"start": 1}, script, limits=limit)
        record = json.loads(json.dumps(record_of(episode)))
        replay = EpisodeReplay(record, kind=Tally)
        again = await replay.again()
        assert not again.differences
        assert episode.outcome is not None
        assert again.outcome.result == episode.outcome.result
        assert again.outcome.turn_rewards == episode.outcome.turn_rewards
        recorded = await replay.again(tools=False)
        assert [one for one in recorded.differences if one.what.startswith("answer")] == []
        if episode.ending is Ending.ANSWERED and script:
            steps = len(episode.steps)
            branched = await replay.branch(steps - 1)
            assert branched.due is not None
            assert await branched.take(episode.steps[-1].turn) is None
            await branched.end()
            assert told(branched) == told(episode)

    asyncio.run(main())


@given(st.deferred(lambda: json_values) | st.sets(st.integers()) | st.binary())
def test_any_value_has_a_json_value(value: Any) -> None:
    kept = plain(value)
    json.dumps(kept, allow_nan=False)
    assert plain(kept) == kept
    assert digest_of(value) == digest_of(value)


def test_hostile_values_are_recorded_and_nothing_is_raised() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)

    @dataclass
    class Held:
        one: Any

    for value in (Rude(), deep, loop, Held(loop), {Rude(): 1}, float("inf"), {1, "a"}, 10**5000):
        json.dumps(plain(value), allow_nan=False)


def test_results_read_back() -> None:
    judged = Judgement(
        0.5, "partial", (Component("a", 1.0, 0.5),), (Span(0, 3, 0.25, "turn", 1),), "4", "why",
        "exact-match", "1.0", ("odd",),
    )  # fmt: skip
    for outcome in (judged, Fault("TIMED_OUT", "late", "DEADLINE_EXCEEDED", {"after": "3"})):
        kept = json.loads(json.dumps(result_json(Result("", outcome))))
        assert result_from(kept) == Result("", outcome)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({}, "has no version"),
        ([], "has no version"),
        ({"version": 99}, "later|release"),
        ({"version": 1, "steps": [{}]}, "cannot be read"),
        ({"version": 1, "steps": 3}, "cannot be read"),
    ],
)
def test_what_is_no_record_is_refused(record: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(record)


class Talk(Environment):
    """Two agents and two contexts, judged by services, with a tool that ends."""

    name = "talk"

    def reset(self, row: Any) -> Observation:
        """The second agent begins."""
        return Observation.user("first", agent="asker#2", context="one", tools=())

    def turn(self, turn: Reply) -> Observation | None:
        """From context to context."""
        if turn.agent == "asker#2":
            said = EpisodeMessage("assistant", "mine", (ToolCall("x", {}, "7"),))
            return Observation((said,), "solver", "two", reward=0.25)
        return None

    def reward(self) -> Any:
        """Each its own."""
        return {"asker#2": 0.0, "solver": 1.0}


def test_agents_contexts_and_tools_offered_are_kept() -> None:
    episode = asyncio.run(acted(Talk(), {"prompt": ""}, [Reply("why"), Reply("because")]))
    record = record_of(episode)
    back = read(record)
    assert agents_of(back) == ["asker#2", "solver"]
    assert [one.before for one in back.steps] == [one.before for one in episode.steps]
    assert back.steps[0].before.tools == ()
    assert back.steps[0].reward == 0.25


class Fickle(Tally):
    """Its tools answer otherwise each time."""

    name = "fickle"
    answers = iter(map(str, range(100)))

    @tool
    def look(self) -> ToolResult:
        """Looks."""
        return ToolResult(next(self.answers))


def test_a_replay_says_where_it_differs_and_a_branch_is_refused_there() -> None:
    async def main() -> None:
        script = [calls(("add", {"amount": 1})), calls("look"), Reply("end")]
        record = record_of(await acted(Fickle(), {"start": 0}, script))
        replay = EpisodeReplay(record, kind=Fickle)
        again = await replay.again()
        assert [(one.turn, one.what) for one in again.differences] == [
            (1, "answer of look"), (2, "read"),
        ]  # fmt: skip
        assert "was '0', is '1'" in str(again.differences[0])
        assert (await replay.again(tools=False)).differences == []
        assert (await replay.branch(1)).due is not None
        with pytest.raises(ConfigError, match="turn 1, answer of look"):
            await replay.branch(2)
        with pytest.raises(ConfigError, match="has 3 turns"):
            await replay.branch(4)
        ended = EpisodeReplay(
            record_of(await acted(Tally(), {"start": 0}, script[::2])), kind=Tally
        )
        with pytest.raises(ConfigError, match="the episode ended"):
            await ended.branch(2)

    asyncio.run(main())


def test_what_is_not_repeatable_has_no_branch_behind_a_turn() -> None:
    async def main() -> None:
        record = record_of(await acted(Talk(), {"prompt": ""}, [Reply("why"), Reply("x")]))
        replay = EpisodeReplay(record, kind=Talk)
        assert (await replay.branch(0)).due is not None
        with pytest.raises(ConfigError, match="is not repeatable"):
            await replay.branch(1)

    asyncio.run(main())


class Asking(Environment):
    """Judged by the services."""

    name = "asking"

    def turn(self, turn: Reply) -> None:
        """Ends."""


class Judges:
    """Services that judge by length, or are away."""

    away = False

    async def score(self, item: Item) -> Result:
        """One result."""
        if self.away:
            return Result("", Fault("UNAVAILABLE", "away"))
        return Result("", Judgement(float(len(item.response or "")), "judged"))


def test_what_the_services_failed_to_judge_is_judged_again() -> None:
    async def main() -> None:
        services = Judges()
        services.away = True
        row = {"prompt": "say", "reference": "x"}
        episode = await acted(Asking(services=services), row, [Reply("four", answer="four")])
        assert episode.ending is Ending.FAULT
        services.away = False
        again = await EpisodeReplay(record_of(episode), kind=Asking).again(services)
        assert again.outcome.trains
        assert again.outcome.result.reward == 4.0

    asyncio.run(main())
