"""The core of episodes: endings, faults, limits, tools' schemas, and what a policy cannot do."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from assay.clients.types import Fault, Judgement, Result
from assay.environments import (
    Ending,
    Environment,
    Episode,
    EpisodeLimits,
    EpisodeMessage,
    Observation,
    Reply,
    ToolCall,
    ToolError,
    ToolResult,
    environment_of,
    tool,
)
from assay.environments.environment import BudgetSpent, EpisodeFault
from assay.environments.episode import result_of
from assay.environments.record import record_of
from assay.environments.registry import settings_of
from assay.environments.tools import tools_of
from assay.kit.errors import CallError, ConfigError
from assay.kit.reasons import Reason
from environments_support import Tally, Trouble, acted, calls

ROW = {"prompt": "go", "start": 1}


class Scripted(Environment):
    """Does what a test says at each hook."""

    name = "scripted"

    def __init__(self, **does: Any) -> None:
        super().__init__()
        self.does = does
        self.closed = 0

    def _do(self, hook: str, default: Any) -> Any:
        act = self.does.get(hook, default)
        return act() if callable(act) else act

    def reset(self, row: Any) -> Any:
        return self._do("reset", "read this")

    @tool
    def use(self) -> Any:
        """Uses."""
        return self._do("use", "used")

    @tool
    async def wait(self) -> Any:
        """Uses, asynchronously."""
        return self._do("use", "used")

    def turn(self, turn: Reply) -> Any:
        return self._do("turn", None)

    def reward(self) -> Any:
        return self._do("reward", 1.0)

    def close(self) -> Any:
        self.closed += 1
        return self._do("close", None)


def raises(error: BaseException) -> Any:
    def act() -> Any:
        raise error

    return act


def run(world: Environment, *turns: Reply, **rest: Any) -> Episode:
    return asyncio.run(acted(world, ROW, turns, **rest))


def test_every_ending_says_whether_it_is_trusted_and_trains() -> None:
    ours = {Ending.TIME_LIMIT, Ending.FAULT, Ending.ABANDONED}
    for ending in Ending:
        assert ending.trusted == ending.trains == (ending not in ours)
        assert f"| {ending} " in (Ending.__doc__ or "").replace("-", "-")
        episode = Episode(Scripted())

        async def ended(one: Ending = ending, episode: Episode = episode) -> None:
            await episode.begin(ROW)
            await episode.end(one)

        asyncio.run(ended())
        outcome = episode.outcome
        assert outcome is not None
        assert outcome.trains == ending.trusted
        assert (outcome.result.fault is None) == ending.trusted
        assert (outcome.reward_of("policy") is None) == (not ending.trusted)


BROKEN = [
    OSError("disk"), KeyError("x"), AssertionError(), RecursionError(), SystemExit(3),
    StopIteration(), TimeoutError("own"), asyncio.CancelledError(),
    UnicodeEncodeError("a", "b", 0, 1, "c"),
]  # fmt: skip


@pytest.mark.parametrize("error", BROKEN, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("hook", ["reset", "use", "wait", "turn", "reward"])
def test_what_an_environment_raises_is_a_fault_and_never_ours(
    hook: str, error: BaseException
) -> None:
    world = Scripted(**{"use" if hook == "wait" else hook: raises(error)})
    turns = [calls("wait" if hook == "wait" else "use"), Reply("end")]
    episode = run(world, *turns)
    assert episode.ending is Ending.FAULT
    assert episode.outcome is not None
    fault = episode.outcome.result.fault
    assert fault is not None
    assert fault.reason == Reason.ENVIRONMENT_FAILED
    assert not episode.outcome.trains
    assert world.closed == 1
    json.dumps(record_of(episode), allow_nan=False)


def test_whose_doing_it_was_decides() -> None:
    known = Fault("SESSION_LOST", "gone")
    call = CallError(str(Reason.UNREACHABLE), "away")
    expected = [
        (ToolError("no"), Ending.ANSWERED, None),
        (BudgetSpent(), Ending.BUDGET_SPENT, None),
        (EpisodeFault(known), Ending.FAULT, "SESSION_LOST"),
        (call, Ending.FAULT, "UNREACHABLE"),
    ]
    for error, ending, reason in expected:
        episode = run(Scripted(use=raises(error)), calls("use"), Reply("end"))
        assert episode.ending is ending
        assert episode.outcome is not None
        fault = episode.outcome.result.fault
        assert (fault.reason if fault else None) == reason
    assert run(Scripted(use=raises(ToolError("no"))), calls("use")).steps[0].calls[0].refused


WRONG = [
    ToolResult(3),  # type: ignore[arg-type]
    ToolResult("x", reward=math.nan),
    ToolResult("x", reward=math.inf),
    ToolResult("x", reward="1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("result", WRONG)
def test_a_tools_malformed_result_is_a_fault(result: ToolResult) -> None:
    assert run(Scripted(use=result), calls("use"), Reply("end")).ending is Ending.FAULT


@pytest.mark.parametrize(
    "given",
    [
        7,
        b"x",
        Observation(("text",)),  # type: ignore[arg-type]
        Observation((EpisodeMessage("user", None),)),  # type: ignore[arg-type]
        Observation(None),  # type: ignore[arg-type]
        Observation((EpisodeMessage("user", "x"),), reward=math.nan),
        Observation((EpisodeMessage("user", "x"),), reward="1"),  # type: ignore[arg-type]
        Observation((EpisodeMessage("user", "x"),), agent=None),  # type: ignore[arg-type]
    ],
    ids=str,
)
@pytest.mark.parametrize("hook", ["reset", "turn"])
def test_a_malformed_observation_is_a_fault(hook: str, given: Any) -> None:
    assert run(Scripted(**{hook: given}), Reply("a"), Reply("b")).ending is Ending.FAULT


def test_a_reset_without_a_message_is_a_fault() -> None:
    for nothing in (None, Observation(())):
        assert run(Scripted(reset=nothing), Reply("a")).ending is Ending.FAULT


@pytest.mark.parametrize(
    ("value", "reward"),
    [
        (1, 1.0), (True, 1.0), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int64(2), 2.0),
        (Judgement(0.25, "partial"), 0.25), (Result("", Judgement(2.0, "x")), 2.0),
        (math.nan, None), (math.inf, None), (np.float32("nan"), None), (None, None), ("1", None),
        ([1], None), (Fault("X", "y"), None), (Result("", Fault("X", "y")), None),
    ],
)  # fmt: skip
def test_what_reward_may_return(value: Any, reward: float | None) -> None:
    assert result_of(value).reward == reward
    episode = run(Scripted(reward=lambda: value), Reply("end"))
    assert episode.outcome is not None
    assert episode.outcome.result.reward == reward
    assert episode.outcome.trains == (reward is not None)


def test_rewards_by_agent() -> None:
    world = Scripted(
        reset=Observation.user("a", agent="asker#1"),
        reward=lambda: {"solver": 1.0, "asker#1": 0.25, "judge": Fault("X", "y")},
    )
    outcome = run(world, Reply("end")).outcome
    assert outcome is not None
    assert outcome.result.reward == 0.25  # the first speaker's
    assert outcome.rewards == {"solver": 1.0, "asker#1": 0.25, "judge": None}
    assert outcome.reward_of("judge") is None
    empty = run(Scripted(reward=dict), Reply("end")).outcome
    assert empty is not None
    assert not empty.trains


@given(
    st.lists(
        st.one_of(
            st.lists(
                st.tuples(st.just("add"), st.builds(lambda n: {"amount": n}, st.integers(0, 9)))
                | st.sampled_from(["halve", "spend", "stop", "gone"]),
                min_size=1,
                max_size=4,
            ).map(lambda some: calls(*some)),
            st.sampled_from([Reply("on"), Reply("end"), Reply("")]),
        ),
        max_size=6,
    ),
    st.builds(EpisodeLimits, turns=st.integers(0, 4), calls=st.integers(0, 3)),
    st.frozensets(st.integers(0, 9), max_size=1),
)
def test_turns_and_calls_are_conserved(
    script: Sequence[Reply], limits: EpisodeLimits, breaks: frozenset[int]
) -> None:
    """Every turn taken is a step, every call of a whole step has one answer, every episode ends."""
    world = Tally(shared=Trouble(breaks))
    episode = run(world, *script, limits=limits)
    outcome = episode.outcome
    assert outcome is not None
    assert outcome.turns == len(episode.steps) == len(outcome.turn_rewards) <= len(script)
    assert world.closed == 1
    assert outcome.trains == (outcome.result.fault is None) == outcome.ending.trusted
    if limits.turns:
        assert len(episode.steps) <= limits.turns
    for number, step in enumerate(episode.steps):
        last = number == len(episode.steps) - 1
        whole = not last or episode.ending not in {Ending.FAULT, Ending.BUDGET_SPENT}
        assert len(step.calls) == len(step.turn.calls) or not whole
        done = [one.result.reward for one in step.calls if one.result.reward is not None]
        assert step.reward == (sum(done) if done else None)
        if limits.calls:
            assert all(not one.asked for one in step.calls[limits.calls :])
        if not last:
            read = [one.content for one in episode.steps[number + 1].before.messages]
            assert not step.calls or read == [one.result.text for one in step.calls]
    assert episode.due is None


def test_an_episode_that_is_over_takes_no_turn_and_ends_once() -> None:
    async def main() -> None:
        world = Scripted(reward=iter([1.0, 0.0]).__next__)
        episode = Episode(world)
        with pytest.raises(RuntimeError, match="no turn is due"):
            await episode.take(Reply("x"))
        await episode.begin(ROW)
        await episode.take(Reply("x"))
        with pytest.raises(RuntimeError, match="no turn is due"):
            await episode.take(Reply("x"))
        first = await episode.end()
        assert await episode.end(Ending.ABANDONED, Fault("X", "y")) is first
        assert world.closed == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    "error",
    [one for one in BROKEN if not isinstance(one, asyncio.CancelledError)],
    ids=lambda one: type(one).__name__,
)
def test_a_close_that_breaks_changes_nothing(error: BaseException) -> None:
    world = Scripted(close=raises(error))
    outcome = run(world, Reply("end")).outcome
    assert outcome is not None
    assert outcome.result.reward == 1.0
    assert world.closed == 1


@pytest.mark.parametrize("when", ["reset", "use", "reward"])
def test_who_is_cancelled_is_cancelled_and_the_environment_is_closed(when: str) -> None:
    async def main() -> None:
        held = asyncio.Event()

        async def wait() -> None:
            held.set()
            await asyncio.sleep(60)

        world = Scripted(**{when: wait})

        async def play() -> None:
            episode = Episode(world)
            try:
                await episode.begin(ROW)
                await episode.take(calls("use"))
            finally:
                await episode.end(Ending.TOKEN_LIMIT)

        task = asyncio.create_task(play())
        await held.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert world.closed == 1

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("hook", ["reset", "use", "turn", "reward"])
def test_seconds_are_a_limit_for_what_never_returns(hook: str) -> None:
    world = Scripted(**{hook: lambda: time.sleep(0.6)})
    started = time.monotonic()
    episode = run(world, calls("use"), Reply("x"), limits=EpisodeLimits(seconds=0.15))
    assert time.monotonic() - started < 3
    assert episode.ending is Ending.TIME_LIMIT
    assert episode.outcome is not None
    assert not episode.outcome.trains
    assert world.closed == 1


def test_seconds_of_generation_count_and_judging_has_them_anew() -> None:
    now = [0.0]

    async def main() -> Ending | None:
        episode = Episode(Scripted(), EpisodeLimits(seconds=10), clock=lambda: now[0])
        await episode.begin(ROW)
        now[0] = 9.0
        await episode.take(Reply("x"))
        now[0] = 50.0
        await episode.end()
        late = Episode(Scripted(), EpisodeLimits(seconds=10), clock=lambda: now[0])
        await late.begin(ROW)
        now[0] = 61.0
        await late.take(calls("use"))
        assert late.ending is Ending.TIME_LIMIT
        await late.end()
        return episode.ending

    assert asyncio.run(main()) is Ending.ANSWERED


def test_samples_of_a_row_share_nothing_of_it() -> None:
    class Greedy(Environment):
        def reset(self, row: Any) -> str:
            row["files"]["a"] = "changed"
            return "go"

        def reward(self) -> float:
            return 1.0

    row = {"prompt": "", "files": {"a": "b"}}
    episode = asyncio.run(acted(Greedy(), row, [Reply("end")]))
    assert row["files"] == {"a": "b"}
    assert episode.row == row
    held = {"prompt": "", "files": {}, "lock": __import__("threading").Lock()}  # cannot be copied
    assert asyncio.run(acted(Greedy(), held, [Reply("end")])).ending is Ending.ANSWERED


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class Mode(BaseModel):
    """An object as an argument."""

    fast: bool = False


class Typed(Environment):
    """Tools of many types."""

    @tool
    def every(  # noqa: PLR0917
        self,
        number: int,
        text: str = "x",
        share: float | None = None,
        kind: Literal["a", "b"] = "a",
        many: list[int] = [],  # noqa: B006
        mode: Mode = Mode(),  # noqa: B008
        anything: Any = None,
    ) -> str:
        """Takes all.

        More of it.

        Args:
            number: how
                many.
            kind (str): which.

        Returns:
            text: nothing that is an argument.
        """
        return json.dumps([number, text, share, kind, many, mode.fast, repr(anything)[:9]])

    @tool
    def shadows(self, json: str, copy: int = 1, model_id: str = "", schema: str = "") -> str:
        """Names that pydantic's models have too."""
        return f"{json}{copy}{model_id}{schema}"

    def reward(self) -> float:
        return 1.0


def test_schemas_are_read_off_methods() -> None:
    tools = tools_of(Typed)
    assert list(tools) == ["every", "shadows"]
    function = tools["every"].schema["function"]
    assert function["description"] == "Takes all.\n\nMore of it."
    parameters = function["parameters"]
    assert parameters["required"] == ["number"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["number"] == {"type": "integer", "description": "how many."}
    assert parameters["properties"]["kind"]["enum"] == ["a", "b"]
    assert parameters["properties"]["kind"]["description"] == "which."
    assert "description" not in parameters["properties"]["text"]
    json.dumps(parameters)
    assert set(tools["shadows"].parameters["properties"]) == {"json", "copy", "model_id", "schema"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"number": "three"}, {}, None, "", "[]", "{", [1], 7, {"number": 1, "more": 2},
        {"number": 1, "kind": "c"}, {"number": 1, "many": ["x"]}, {"number": 1.5},
        {"number": float("nan")}, {"number": float("inf")}, {"number": 1, "text": "\ud800"},
        '{"number": 1, "text": "\\ud800"}', {"number": 1, "anything": {"a": "\udfff"}},
        "[" * 100_000, '{"number": ' + "9" * 5000 + "}", {"number": 1, "anything": deep(100_000)},
        {"number": 1, "self": 2}, {"self": 1}, {"number": 1, "__class__": "x"},
        {"number": 1, "mode": {"slow": 1}, "kind": []},
    ],
    ids=lambda one: repr(one)[:40] if not isinstance(one, dict) else str(list(one)),
)  # fmt: skip
def test_hostile_arguments_are_refused_in_words_and_cost_no_episode(arguments: Any) -> None:
    episode = run(Typed(), Reply("", (ToolCall("every", arguments),)), Reply("end"))
    assert episode.ending is Ending.ANSWERED
    answer = episode.steps[0].calls[0]
    assert answer.refused
    assert answer.result.text.startswith("error: every: ")
    assert len(answer.result.text) < 1000
    json.dumps(record_of(episode), allow_nan=False)


@pytest.mark.parametrize(
    "arguments",
    [{"number": "3"}, '{"number": 3}', {"number": 3.0}, {"number": 3, "mode": {"fast": False}}],
)
def test_arguments_come_in_their_types(arguments: Any) -> None:
    episode = run(Typed(), Reply("", (ToolCall("every", arguments),)), Reply("end"))
    said = json.loads(episode.steps[0].calls[0].result.text)
    assert said == [3, "x", None, "a", [], False, "None"]
    shadowed = run(Typed(), Reply("", (ToolCall("shadows", {"json": "{}"}),)))
    assert shadowed.steps[0].calls[0].result.text == "{}1"


@pytest.mark.parametrize(
    "name", ["", "reset", "reward", "close", "__init__", "_ran", "use ", "USE", "x" * 10_000, "\0"]
)
def test_only_tools_are_called(name: str) -> None:
    world = Tally()
    episode = asyncio.run(acted(world, ROW, [Reply("", (ToolCall(name, {}),)), Reply("end")]))
    assert episode.ending is Ending.ANSWERED
    assert episode.steps[0].calls[0].refused
    assert len(episode.steps[0].calls[0].result.text) < 300
    assert world.closed == 1


def test_a_tool_that_is_not_offered_is_refused() -> None:
    world = Scripted(reset=Observation.user("go", tools=("wait",)))
    episode = run(world, calls("use", "wait"), Reply("end"))
    assert [one.refused for one in episode.steps[0].calls] == [True, False]


def test_tools_that_have_no_schema_are_refused_when_they_are_read() -> None:
    class Untyped(Environment):
        @tool
        def use(self, what) -> str:  # type: ignore[no-untyped-def]
            """Uses."""
            return str(what)

    class Starred(Environment):
        @tool
        def use(self, *what: int) -> str:
            """Uses."""
            return str(what)

    class Strange(Environment):
        @tool
        def use(self, what: asyncio.Event) -> str:
            """Uses."""
            return str(what)

    for kind, said in ((Untyped, "no type"), (Starred, "any number"), (Strange, "JSON")):
        with pytest.raises(ConfigError, match=said):
            tools_of(kind)


def test_an_overridden_tool_is_the_later_one() -> None:
    class Fewer(Typed):
        shadows = None  # type: ignore[assignment]

        @tool
        def every(self) -> str:  # type: ignore[override]
            """Takes nothing."""
            return "nothing"

    assert list(tools_of(Fewer)) == ["every"]
    assert tools_of(Fewer)["every"].parameters["properties"] == {}
    assert list(tools_of(Typed)) == ["every", "shadows"]


@dataclass(frozen=True, slots=True)
class Strict:
    """Settings that refuse."""

    most: int = 1

    def __post_init__(self) -> None:
        if self.most < 0:
            raise ValueError("most is negative")


def test_environments_are_found_or_refused_in_words(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from assay.environments import Environment\nclass Mine(Environment):\n    pass\nx = 3\n"
    )
    found = environment_of(f"{file}:Mine")
    assert found.name == f"{file}:Mine"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert environment_of("mine:Mine").name == "mine:Mine"
    sys.modules.pop("mine", None)
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)\n")
    for name, said in (
        ("pithon", "did you mean"),
        (f"{file}:x", "no subclass"),
        (f"{file}:Nothing", "Nothing"),
        (f"{tmp_path}/nowhere.py:X", "no file"),
        ("no.such.module:X", "cannot be loaded"),
        (f"{broken}:X", "cannot be loaded"),
    ):
        with pytest.raises(ConfigError, match=said):
            environment_of(name)
    Typed.Settings = Strict
    try:
        assert settings_of(Typed, {"most": 3}) == Strict(3)
        with pytest.raises(ConfigError, match="did you mean"):
            settings_of(Typed, {"mots": 3})
        with pytest.raises(ConfigError, match="negative"):
            settings_of(Typed, {"most": -1})
    finally:
        del Typed.Settings
