"""Laws of the kit's batch service, with a scripted domain: what every service promises."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.kit.batch.answers import fit_results
from assay.kit.batch.items import PendingItem
from assay.kit.errors import CallError, reason_of
from batch_support import Script, Scripts

ROADS = st.sampled_from(["wrong", "here", "pool", "elsewhere"])
SCRIPTS = st.builds(
    Script,
    ROADS,
    st.sampled_from(["judged", "judged", "fault", "defect"]),
    st.integers(0, 4),
    st.sampled_from(["", "", "a", "b"]),
    st.sampled_from([1, 2]),
)
BATCHES = st.lists(SCRIPTS, min_size=1, max_size=20)
SETTINGS = settings(max_examples=60, deadline=None)


def messages(scripts: Sequence[Script], prefix: str = "i") -> list[reward_pb2.Item]:
    return [script.message(f"{prefix}{number}") for number, script in enumerate(scripts)]


def said(results: Sequence[reward_pb2.Result]) -> list[tuple[str, str]]:
    """The id of each result, and its verdict or its fault's reason."""
    for result in results:
        assert result.WhichOneof("outcome") in ("judgement", "fault")
        assert result.timings.HasField("queue")
        assert result.timings.HasField("execution")
        assert not (result.HasField("fault") and result.from_cache)
    return [
        (r.id, r.judgement.verdict if r.HasField("judgement") else reason_of(r.fault))
        for r in results
    ]


def chunked(items: list[reward_pb2.Item], cuts: Sequence[int]) -> list[list[reward_pb2.Item]]:
    bounds = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    return [items[start:end] for start, end in pairwise(bounds)]


async def idle(scripts: Scripts) -> None:
    """Until nothing runs and nothing waits; a call that is gone leaves nothing behind."""
    for _ in range(50):
        await asyncio.sleep(0)
    assert scripts.handler.running == 0
    assert scripts.handler.pool.queued == 0


def alone(scripts: Sequence[Script]) -> list[Script]:
    """The scripts, none of them equal to another that ends differently."""
    return [
        Script(one.road, one.end, one.turns, one.name and f"{one.name}-{one.end}", one.timeout_s)
        for one in scripts
    ]


@SETTINGS
@given(BATCHES, st.integers(1, 3), st.integers(0, 8))
def test_judgements_and_faults_are_the_items_in_order(
    drawn: list[Script], at_work: int, cache_entries: int
) -> None:
    batch = alone(drawn)

    async def run() -> None:
        scripts = Scripts(at_work, cache_entries=cache_entries)
        for _ in range(2):
            results = await scripts.batch(messages(batch))
            assert said(results) == [(f"i{n}", one.expected) for n, one in enumerate(batch)]
        await idle(scripts)
        assert scripts.conserved()
        assert scripts.tally()["abandoned_items_total"] == 0
        assert [[item.item_id for item in told] for told in scripts.journal] == [
            [f"i{n}" for n in range(len(batch))]
        ] * 2

    asyncio.run(run())


@SETTINGS
@given(BATCHES, st.lists(st.integers(0, 20), max_size=4), st.integers(1, 3))
def test_a_stream_says_what_a_batch_says(
    drawn: list[Script], cuts: list[int], at_work: int
) -> None:
    batch = alone(drawn)

    async def run() -> None:
        whole, streamed = Scripts(at_work), Scripts(at_work)
        chunks = chunked(messages(batch), cuts)
        assert Counter(said(await streamed.stream(chunks))) == Counter(
            said(await whole.batch(messages(batch)))
        )
        told = [item.item_id for items in streamed.journal for item in items]
        assert sorted(told) == sorted(f"i{n}" for n in range(len(batch)))
        await idle(streamed)
        assert streamed.conserved()
        assert streamed.tally() == whole.tally()

    asyncio.run(run())


@settings(max_examples=15, deadline=None)
@given(BATCHES, st.lists(st.sampled_from(["here", "pool", "elsewhere"]), min_size=1, max_size=4),
       st.booleans())  # fmt: skip
def test_the_deadline_returns_what_is_done_and_a_fault_for_the_rest(
    drawn: list[Script], stuck: list[str], streams: bool
) -> None:
    batch = [*alone(drawn), *(Script(road, "never") for road in stuck)]

    async def run() -> None:
        scripts = Scripts(at_work=64)
        if streams:
            results = await scripts.stream([messages(batch)], timeout_s=0.1)
        else:
            results = await scripts.batch(messages(batch), timeout_s=0.1)
        expected = [(f"i{n}", one.expected) for n, one in enumerate(batch)]
        assert (sorted(said(results)) == sorted(expected)) if streams else said(results) == expected
        await idle(scripts)
        assert scripts.conserved()

    asyncio.run(run())


@SETTINGS
@given(BATCHES, st.integers(0, 25), st.integers(0, 3), st.booleans())
def test_nothing_goes_on_for_a_call_that_is_gone(
    drawn: list[Script], turns: int, answers: int, streams: bool
) -> None:
    batch = [*alone(drawn), Script("pool", "never"), Script("elsewhere", "never")]

    async def run() -> None:
        scripts = Scripts(at_work=2)
        if streams:
            stream = scripts.answers([[one] for one in messages(batch)])
            async with aclosing(stream):
                for _ in range(answers):
                    waiting = asyncio.ensure_future(anext(stream, None))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    if not waiting.done():
                        waiting.cancel()
                        await asyncio.gather(waiting, return_exceptions=True)
                        break
        else:
            call = asyncio.ensure_future(scripts.batch(messages(batch)))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await idle(scripts)
        assert scripts.conserved()

    asyncio.run(run())


@SETTINGS
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(1, 4))
def test_a_call_that_is_refused_has_judged_nothing(turns: list[int], room: int) -> None:
    async def run() -> None:
        scripts = Scripts(at_work=1, queue_items=room)
        taken = messages([Script("pool", turns=30)] * (room + 1), "busy")
        busy = [asyncio.ensure_future(scripts.batch([one])) for one in taken]
        await asyncio.sleep(0)
        assert scripts.handler.pool.queued == room
        before = scripts.tally()
        refused = [Script("wrong"), Script("elsewhere"), *(Script("pool", turns=n) for n in turns)]
        with pytest.raises(CallError, match=f"{room} items wait already") as caught:
            await scripts.batch(messages(refused))
        assert caught.value.reason == "QUEUE_FULL"
        assert (caught.value.retry_after_s or 0) > 0
        assert scripts.tally() == before
        assert scripts.handler.pool.queued == room
        # A stream waits for its room instead.
        waited = asyncio.ensure_future(scripts.stream([[one] for one in messages(refused)]))
        assert {said(await call)[0][1] for call in busy} == {"fine"}
        assert len(await waited) == len(refused)
        assert not [name for name in scripts.handler.begun if name.startswith("i")][len(refused) :]
        await idle(scripts)
        assert scripts.conserved()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([], "EMPTY_BATCH"),
        ([("a", 1)] * 2, "DUPLICATE_ITEM_ID"),
        ([("", 1)], "MISSING_ITEM_ID"),
        ([("x" * 257, 1)], "MISSING_ITEM_ID"),
        ([(str(n), 1) for n in range(5)], "BATCH_TOO_LARGE"),
    ],
)
async def test_a_request_that_is_wrong_as_a_whole_is_refused(
    batch: list[tuple[str, int]], reason: str
) -> None:
    scripts = Scripts(max_items=4)
    wrong = [Script("pool").message(name) for name, _ in batch]
    with pytest.raises(CallError) as caught:
        await scripts.batch(wrong)
    assert caught.value.reason == reason
    fine = [Script("pool").message("fine")]
    with pytest.raises(CallError) as caught:
        await scripts.stream([fine, wrong])
    assert caught.value.reason == reason
    assert set(scripts.handler.begun) <= {"fine"}
    await idle(scripts)
    assert scripts.conserved()


@SETTINGS
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2])), min_size=1, max_size=12),
    st.sampled_from(["judged", "fault", "defect"]),
    st.booleans(),
)
def test_equal_items_share_an_execution_and_its_judgement_but_no_fault_is_kept(
    equal: list[tuple[str, int]], end: str, keeps: bool
) -> None:
    batch = [Script("pool", end, 3, name, timeout_s) for name, timeout_s in equal]

    async def run() -> None:
        scripts = Scripts(cache_entries=8 if keeps else 0)
        results = await scripts.batch(messages(batch))
        assert {verdict for _, verdict in said(results)} == {batch[0].expected}
        assert len(scripts.handler.begun) == len(set(equal)), "one each, by name and time-out"
        if end == "judged":
            fresh = [result for result in results if not result.from_cache]
            assert len(fresh) == len(set(equal))
        again = await scripts.batch(messages(batch))
        assert [verdict for _, verdict in said(again)] == [verdict for _, verdict in said(results)]
        once_more = 0 if keeps and end == "judged" else len(set(equal))
        assert len(scripts.handler.begun) == len(set(equal)) + once_more
        assert all(result.from_cache for result in again) or once_more
        assert not any(i.from_cache and i.faulted for told in scripts.journal for i in told)
        await idle(scripts)
        assert scripts.conserved()

    asyncio.run(run())


@pytest.mark.parametrize("leaves", ["first", "second", "both"])
async def test_a_shared_execution_goes_on_while_somebody_waits_for_it(leaves: str) -> None:
    scripts = Scripts()
    script = Script("pool", turns=20, name="shared")
    calls = [
        asyncio.ensure_future(scripts.batch([script.message(name)])) for name in ("one", "two")
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    assert scripts.handler.begun == ["one"]
    gone = [call for call, name in zip(calls, ("first", "second"), strict=True)
            if leaves in (name, "both")]  # fmt: skip
    for call in gone:
        call.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    assert scripts.handler.running == (0 if leaves == "both" else 1) or leaves == "both"
    for call in calls:
        if call not in gone:
            assert said(await call)[0][1] == "fine"
    assert scripts.handler.begun == ["one"]
    await idle(scripts)
    assert scripts.conserved()


async def test_a_call_of_many_items_does_not_keep_others_waiting() -> None:
    scripts = Scripts(at_work=2)
    many = asyncio.ensure_future(scripts.batch(messages([Script("pool", turns=3)] * 50, "many")))
    for _ in range(4):
        await asyncio.sleep(0)
    await scripts.batch(messages([Script("pool", turns=3)] * 2, "few"))
    assert len(scripts.handler.begun) < 12
    assert len(await many) == 50


async def test_what_an_item_raised_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    [result] = await Scripts().batch([Script("pool", "defect").message("a")])
    assert reason_of(result.fault) == "INTERNAL"
    assert "secret" not in str(result)
    assert "secret" in caplog.text


async def test_a_cancelled_wait_inside_a_job_is_its_fault_and_not_its_calls_end() -> None:
    scripts = Scripts()
    stuck = Script("pool", "never").message("a")
    call = asyncio.ensure_future(scripts.batch([stuck, Script("pool").message("b")]))
    for _ in range(5):
        await asyncio.sleep(0)
    [task] = [task for task in asyncio.all_tasks() if "_work" in repr(task)]
    task.cancel()
    assert said(await call) == [("a", "INTERNAL"), ("b", "fine")]


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(400, 2000))
def test_an_answer_never_outgrows_its_room_and_never_loses_a_result(
    sizes: list[int], room_bytes: int
) -> None:
    pairs = []
    for number, size in enumerate(sizes):
        result = reward_pb2.Result(id=str(number))
        result.judgement.verdict = "fine"
        result.judgement.explanation = "x" * size
        pairs.append((PendingItem(str(number), 0.0, outcome="fine"), result))
    sent = [result.ByteSize() for _, result in pairs]

    def shorten(result: reward_pb2.Result) -> None:
        result.judgement.explanation = result.judgement.explanation[:10]

    fit_results(pairs, shorten, "no room", room_bytes)
    assert [result.id for _, result in pairs] == [str(number) for number in range(len(sizes))]
    for item, result in pairs:
        assert result.WhichOneof("outcome") == ("fault" if item.faulted else "judgement")
    assert sum(r.ByteSize() for item, r in pairs if not item.faulted) <= room_bytes
    if sum(sent) <= room_bytes:
        assert [result.ByteSize() for _, result in pairs] == sent


async def test_a_stream_sends_as_many_results_as_fit_into_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.kit.batch.service.ANSWER_BYTES", 120)
    scripts = Scripts()
    items = messages([Script("here")] * 20)
    sizes = [len(answer.results) async for answer in scripts.answers([items])]
    assert sum(sizes) == 20
    assert len(sizes) > 1
    assert max(sizes) < 20
    assert scripts.conserved()
