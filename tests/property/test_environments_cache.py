"""Samples of one row share answers of tools; nothing else about their episodes changes."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.environments import Ending, Environment, EpisodeLimits, Reply, ToolCall, ToolResult, tool
from assay.environments.cache import CachedRunner, ToolCache
from environments_support import Script, Tally, TallySettings, Trouble, acted, calls, told

named = st.one_of(
    st.tuples(st.just("add"), st.builds(lambda n: {"amount": n}, st.integers(0, 3))),
    st.sampled_from(["halve", "spend", "stop", "nothing", ""]),
    st.just(("add", '{"amount": "x"}')),
    st.just(("add", {"amount": float("nan")})),
    st.just(("add", object())),  # no JSON: from here on an episode is alone
)
turns = st.one_of(
    st.lists(named, min_size=1, max_size=3).map(lambda some: calls(*some)),
    st.sampled_from([Reply("go on", answer="go on"), Reply("end", answer="end")]),
)
scripts = st.lists(turns, max_size=5)
pauses = st.lists(st.integers(0, 4), max_size=4)
samples = st.lists(st.tuples(scripts, st.sampled_from([0, 4]), pauses), min_size=1, max_size=6)


def together(
    sampled: list[tuple[Script, int, list[int]]],
    cache: ToolCache | None,
    breaks: list[frozenset[int]] | None = None,
) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        running = []
        for number, (script, start, waits) in enumerate(sampled):
            trouble = Trouble(breaks[number] if breaks else frozenset(), waits)
            world = Tally(shared=trouble)
            runner = cache.runner(world) if cache else None
            running.append(acted(world, {"start": start}, script, runner=runner))
        return [told(one) for one in await asyncio.gather(*running)]

    return asyncio.run(main())


@given(samples)
def test_episodes_are_those_without_a_cache(sampled: list[tuple[Script, int, list[int]]]) -> None:
    cache = ToolCache()
    plain = together(sampled, None)
    assert together(sampled, cache) == plain
    assert together(sampled, cache) == plain  # all of it kept by now
    assert cache.taken().different == 0


@given(samples, st.lists(st.frozensets(st.integers(0, 8), max_size=3), min_size=6, max_size=6))
def test_what_breaks_is_the_episodes_own(
    sampled: list[tuple[Script, int, list[int]]], breaks: list[frozenset[int]]
) -> None:
    cache = ToolCache()
    plain = together(sampled, None)
    for got, whole in zip(together(sampled, cache, breaks), plain, strict=True):
        assert got == whole or got["ending"] == "fault"
    assert together(sampled, cache) == plain  # and no fault was kept


@given(samples, st.integers(0, 3000))
def test_little_memory_costs_hits_only(
    sampled: list[tuple[Script, int, list[int]]], room: int
) -> None:
    cache = ToolCache(room / 2**20)
    assert together(sampled, cache) == together(sampled, None)
    assert cache._bytes <= room
    assert cache._bytes == sum(one.bytes for one in cache._kept.values())


def test_the_second_sample_runs_nothing_until_it_goes_its_own_way() -> None:
    cache = ToolCache()

    async def main() -> None:
        first, second = Trouble(), Trouble()
        script = [calls(("add", {"amount": 2}), "halve")]
        for trouble, more in ((first, []), (second, [calls(("add", {"amount": 1}))])):
            world = Tally(shared=trouble)
            world.state_read_by = "tools"  # type: ignore[misc]
            episode = await acted(world, {"start": 4}, [*script, *more], runner=cache.runner(world))
            if not more:
                continue
            assert [one.cached for step in episode.steps for one in step.calls] == [
                True, True, False,
            ]  # fmt: skip
            assert episode.steps[1].calls[0].result.text == "now 4"  # (4 + 2) / 2 + 1
        assert second.executed == ["add", "halve", "add"]

    asyncio.run(main())
    counts = cache.taken()
    assert (counts.calls, counts.hits, counts.caught_up) == (5, 2, 2)
    assert cache.metrics() == {}


def test_reward_sees_the_state_that_skipped_calls_leave() -> None:
    cache = ToolCache()
    script = [calls(("add", {"amount": 2})), Reply("end")]

    async def main() -> list[float | None]:
        out = []
        for _ in range(2):
            world = Tally()
            episode = await acted(world, {"start": 0}, script, runner=cache.runner(world))
            assert episode.outcome is not None
            out.append(episode.outcome.result.reward)
        return out

    assert asyncio.run(main()) == [2.01, 2.01]
    assert cache.metrics()["tool_cache_hit_rate"] == 0.5


def test_equal_calls_at_one_time_are_one_execution_also_when_the_first_is_cut_off() -> None:
    cache = ToolCache()
    started = []
    held: list[asyncio.Event] = []

    class Slow(Environment):
        name = "slow"
        repeatable = True
        state_read_by = "tools"

        @tool
        async def wait(self) -> str:
            """Waits."""
            started.append(self)
            await held[0].wait()
            return "done"

        def reward(self) -> float:
            return 1.0

    async def main() -> None:
        held.append(asyncio.Event())
        worlds = [Slow() for _ in range(5)]
        tasks = []
        for number, world in enumerate(worlds):
            limits = EpisodeLimits(seconds=0.05 if number == 0 else 0)
            running = acted(
                world, {"prompt": ""}, [calls("wait"), Reply("end")],
                runner=cache.runner(world), limits=limits,
            )  # fmt: skip
            tasks.append(asyncio.create_task(running))
            await asyncio.sleep(0.005)
        assert started == worlds[:1]
        tasks[2].cancel()  # of those that wait
        first = await tasks[0]
        assert first.ending is Ending.TIME_LIMIT
        await asyncio.sleep(0.01)
        assert started == worlds[:2]  # the next one runs it now
        tasks[1].cancel()
        await asyncio.sleep(0.01)
        assert len(started) == 3
        held[0].set()
        for task in tasks[3:]:
            episode = await task
            assert episode.ending is Ending.ANSWERED
            assert episode.steps[0].calls[0].result.text == "done"
        assert len(started) == 3

    asyncio.run(asyncio.wait_for(main(), 10))


def test_an_answer_that_differs_ends_the_sharing_and_not_the_episode() -> None:
    cache = ToolCache()
    texts = iter(["first", "second", "third", "fourth", "fifth", "sixth"])

    class Fickle(Environment):
        name = "fickle"
        repeatable = True

        @tool
        def look(self) -> str:
            """Looks."""
            return next(texts)

        def reward(self) -> float:
            return 0.0

    async def main() -> None:
        seen = []
        for _ in range(3):
            world = Fickle()
            episode = await acted(
                world, {"prompt": ""}, [calls("look"), Reply("end")], runner=cache.runner(world)
            )
            seen.append(episode.steps[0].calls[0])
        assert [one.result.text for one in seen] == ["first", "first", "third"]
        assert [one.cached for one in seen] == [False, True, False]

    asyncio.run(main())
    assert cache.taken().different == 1


@pytest.mark.parametrize(
    "apart",
    [
        (Tally(), {"start": 1}),
        (Tally(TallySettings(modulo=5)), {"start": 0}),
        (Tally(), {"start": 0, "more": float("nan")}),
        (Tally(), {"start": 0, "more": "NaN"}),
        (Tally(), {"start": 0, "more": {1}}),  # no JSON
    ],
)
def test_another_row_and_other_settings_share_nothing(apart: tuple[Tally, Any]) -> None:
    cache = ToolCache()

    async def main() -> None:
        for world, row in ((Tally(), {"start": 0}), apart):
            episode = await acted(
                world, row, [calls(("add", {"amount": 3}))], runner=cache.runner(world)
            )
            assert not episode.steps[0].calls[0].cached

    asyncio.run(main())


def test_calls_on_their_own_are_shared_whatever_was_called_before() -> None:
    cache = ToolCache()

    class Lookup(Environment):
        name = "lookup"
        repeatable = True
        state_read_by = "nobody"

        @tool
        def find(self, word: str) -> ToolResult:
            """Finds."""
            return ToolResult(word[::-1], facts={"of": [word]})

        def reward(self) -> float:
            return 0.0

    async def main() -> None:
        first, second = Lookup(), Lookup()
        one = await acted(first, {"prompt": ""}, [calls(("find", {"word": "abc"}))],
                          runner=cache.runner(first))  # fmt: skip
        one.steps[0].calls[0].result.facts["of"].append("spoilt")
        other = await acted(
            second,
            {"prompt": ""},
            [calls(("find", {"word": "x"}), ("find", {"word": "abc"}), ("find", {"word": "x"}))],
            runner=cache.runner(second),
        )
        assert [called.cached for called in other.steps[0].calls] == [False, True, True]
        assert other.steps[0].calls[1].result == ToolResult("cba", facts={"of": ["abc"]})

    asyncio.run(main())


def test_only_what_is_repeatable_is_shared_and_threads_may_share() -> None:
    class Once(Tally):
        repeatable = False

    cache = ToolCache()
    assert not isinstance(cache.runner(Once()), CachedRunner)

    def episodes() -> list[bool]:
        async def main() -> list[bool]:
            found = []
            for _ in range(20):
                world = Tally(shared=Trouble(pauses=[2]))
                script = [calls(("add", {"amount": 1}), ("add", {"amount": 2}))]
                episode = await acted(world, {"start": 0}, script, runner=cache.runner(world))
                found += [one.cached for one in episode.steps[0].calls]
                assert episode.steps[0].calls[1].result.text == "now 3"
            return found

        return asyncio.run(main())

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        found = [one for part in pool.map(lambda _: episodes(), range(4)) for one in part]
    assert found.count(False) == 2
    assert not cache._running
    gc.collect()


def test_a_call_that_json_cannot_write_is_run_and_the_rest_after_it() -> None:
    cache = ToolCache()

    async def main() -> None:
        for _ in range(2):
            world = Tally()
            deep: Any = []
            for _ in range(100_000):
                deep = [deep]
            episode = await acted(
                world,
                {"start": 0},
                [Reply("", (ToolCall("add", {"amount": deep}), ToolCall("add", {"amount": 1})))],
                runner=cache.runner(world),
            )
            found = episode.steps[0].calls
            assert [one.refused for one in found] == [True, False]
            assert [one.cached for one in found] == [False, False]
            while deep:
                deep = deep[0]

    asyncio.run(main())
