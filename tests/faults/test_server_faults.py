"""The reward server with things going wrong, over the wire: poison, deaths, deadlines, floods."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import grpc
import pytest
from google.rpc import status_pb2

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.errors import StartupError, error_info, reason_of, retry_after_s
from assay.kit.limits import channel_options
from assay.kit.serving import ServeConfig, start
from assay.reward_server.config import ScorerConfig
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from chaos import NAMES, install
from waiting_support import exists, until

POISON = {
    "tower": r"\boxed{9^{9^{9^9}}}",
    "factorial": r"(10^7)! is \boxed{(10^7)!}",
    "braces": r"\boxed{" + "{" * 50_000 + "}" * 50_000 + "}",
    "factorials": r"\boxed{((9!)!)!}",
}


@pytest.fixture
def chaos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed plug-ins that misbehave on demand."""
    monkeypatch.syspath_prepend(str(install(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@contextlib.asynccontextmanager
async def serving(
    **settings: object,
) -> AsyncIterator[tuple[reward_pb2_grpc.RewardServiceAsyncStub, RewardScorer]]:
    """A real server on a free port, a stub that calls it, and its scorer."""
    config = ScorerConfig(**{"workers": 2, "item_timeout_s": 2.0, **settings})  # type: ignore[arg-type]  # named
    scorer = RewardScorer(config, registry=load_registry())
    async with (
        await start([reward_service(scorer)], ServeConfig()) as server,
        grpc.aio.insecure_channel(server.address, options=channel_options()) as channel,
    ):
        yield reward_pb2_grpc.RewardServiceStub(channel), scorer


def item(
    item_id: str, response: str, verifier: str = "chaos", reference: str = "42"
) -> reward_pb2.Item:
    message = reward_pb2.Item(id=item_id, verifier=verifier, response=response)
    message.reference.text = reference
    return message


def batch(items: Iterable[reward_pb2.Item]) -> reward_pb2.BatchScoreRequest:
    return reward_pb2.BatchScoreRequest(items=items)


def reasons(response: reward_pb2.BatchScoreResponse) -> dict[str, str]:
    """The fault's reason of each item; empty for a judgement."""
    return {r.id: reason_of(r.fault) if r.HasField("fault") else "" for r in response.results}


async def test_poison_costs_its_own_items_only() -> None:
    good = [item(f"good-{i}", rf"\boxed{{{i}}}", "math") for i in range(20, 60)]
    bad = [item(name, text, "math") for name, text in POISON.items()]
    mixed = [good[0], *bad[:2], *good[1:30], *bad[2:], *good[30:]]
    async with serving() as (stub, _):
        started_s = time.monotonic()
        response = await stub.BatchScore(batch(mixed), timeout=60)
        took_s = time.monotonic() - started_s
        assert [r.id for r in response.results] == [i.id for i in mixed]
        by_id = {r.id: r for r in response.results}
        for i in range(20, 60):
            judged = by_id[f"good-{i}"]
            assert judged.WhichOneof("outcome") == "judgement"
            assert judged.judgement.verdict == ("correct" if i == 42 else "incorrect")
        for name in POISON:
            result = by_id[name]
            assert reasons(response)[name] in ("", "ITEM_TIMEOUT", "WORKER_DIED", "VERIFIER_FAILED")
            if result.HasField("judgement"):
                assert result.judgement.verdict in ("incorrect", "unparsed")
            assert result.timings.execution.ToMilliseconds() < 2 * 2000
        assert took_s < len(POISON) * 2 + 15
        again = await stub.BatchScore(batch([item("after", r"\boxed{42}", "math")]), timeout=20)
        assert again.results[0].judgement.verdict == "correct"


@pytest.mark.usefixtures("chaos")
async def test_every_misbehaviour_is_a_fault_of_its_own_item() -> None:
    expected = {
        "fine": "",
        "die": "WORKER_DIED",
        "raise": "VERIFIER_FAILED",
        "exit": "WORKER_DIED",
        "fill": "VERIFIER_FAILED",
        "unjudgeable": "UNSUPPORTED_INPUT",
        "nan": "VERIFIER_FAILED",
        "range": "VERIFIER_FAILED",
        "verdict": "VERIFIER_FAILED",
        "shape": "VERIFIER_FAILED",
        "flood": "VERIFIER_FAILED",
        "sleep 60": "ITEM_TIMEOUT",
    }
    async with serving(item_timeout_s=3.0) as (stub, _):
        items = [item(word, word) for word in expected] + [
            item(f"ok-{i}", f"ok {i}") for i in range(20)
        ]
        response = await stub.BatchScore(batch(items), timeout=60)
        found = reasons(response)
        assert {word: found[word] for word in expected} == expected
        assert all(found[f"ok-{i}"] == "" for i in range(20))
        by_id = {r.id: r for r in response.results}
        assert "secret" not in by_id["raise"].fault.message
        assert by_id["unjudgeable"].fault.message == "line one line two"
        assert by_id["fine"].judgement.explanation == "a b"
        sick = await stub.BatchScore(batch([item("x", "fine", "sick")]), timeout=10)
        assert reasons(sick) == {"x": "VERIFIER_UNHEALTHY"}
        listed = await stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10)
        assert set(NAMES) < {v.name for v in listed.verifiers}


@pytest.mark.usefixtures("chaos")
async def test_a_glance_judges_here_and_leaves_the_rest_to_workers() -> None:
    async with serving(item_timeout_s=3.0) as (stub, scorer):
        texts = ["short", "a longer word", "oops at a glance", "refuse at a glance"]
        response = await stub.BatchScore(
            batch(item(text, text, "glancing") for text in texts), timeout=20
        )
        found = reasons(response)
        assert found == {**dict.fromkeys(texts, ""), "refuse at a glance": "UNSUPPORTED_INPUT"}
        said = [result.judgement.explanation for result in response.results]
        assert said[:3] == ["at a glance", "a b", "a b"]
        for pid in scorer.pool.worker_pids():
            os.kill(pid, signal.SIGSTOP)
        try:
            quick = await stub.BatchScore(batch([item("x", "short", "glancing")]), timeout=5)
        finally:
            for pid in scorer.pool.worker_pids():
                os.kill(pid, signal.SIGCONT)
        assert reasons(quick) == {"x": ""}


@pytest.mark.usefixtures("chaos")
async def test_a_lazy_verifier_is_loaded_and_tested_at_its_first_use() -> None:
    async with serving(workers=1) as (stub, scorer):
        assert not scorer.pool.queued
        for _ in range(2):
            both = [item("good", "x", "lazy"), item("bad", "x", "lazy-sick"), item("ok", "ok")]
            response = await stub.BatchScore(batch(both), timeout=20)
            assert reasons(response) == {"good": "", "bad": "VERIFIER_UNHEALTHY", "ok": ""}
            prepared, judged = response.results[0].judgement.explanation.split()
            assert prepared == judged != str(os.getpid())


@pytest.mark.usefixtures("chaos")
async def test_a_preloaded_verifier_is_loaded_before_the_workers_fork() -> None:
    async with serving(workers=1, preload=("lazy",)) as (stub, scorer):
        response = await stub.BatchScore(batch([item("good", "x", "lazy")]), timeout=20)
        prepared, judged = response.results[0].judgement.explanation.split()
        assert prepared == str(scorer.workers.server_pid) != judged


@pytest.mark.usefixtures("chaos")
async def test_a_worker_killed_in_mid_item_costs_that_item_only() -> None:
    async with serving(workers=1, item_timeout_s=30.0) as (stub, scorer):
        items = [item("hit", "sleep 25"), *(item(f"ok-{i}", f"ok {i}") for i in range(10))]
        call = stub.BatchScore(batch(items), timeout=60)
        await until(scorer.pool.running_pids)
        os.kill(scorer.pool.running_pids()[0], signal.SIGKILL)
        found = reasons(await call)
        assert found.pop("hit") == "WORKER_DIED"
        assert set(found.values()) == {""}


@pytest.mark.usefixtures("chaos")
async def test_an_idle_worker_that_dies_costs_nothing() -> None:
    async with serving(workers=2) as (stub, scorer):
        await until(lambda: len(scorer.pool.worker_pids()) == 2)
        for pid in scorer.pool.worker_pids():
            os.kill(pid, signal.SIGKILL)
        response = await stub.BatchScore(
            batch(item(f"{i}", f"ok {i}") for i in range(8)), timeout=20
        )
        assert set(reasons(response).values()) == {""}


@pytest.mark.slow
@pytest.mark.usefixtures("chaos")
async def test_the_fork_server_comes_back() -> None:
    async with serving(workers=2, item_timeout_s=30.0) as (stub, scorer):
        server, workers = scorer.workers.server_pid, scorer.pool.worker_pids()
        assert server is not None
        call = stub.BatchScore(batch([item("hit", "sleep 25")]), timeout=60)
        await until(scorer.pool.running_pids)
        os.kill(server, signal.SIGKILL)
        assert reasons(await call) == {"hit": "WORKER_DIED"}
        after = await stub.BatchScore(batch([item("x", r"\boxed{42}", "math")]), timeout=30)
        assert after.results[0].judgement.verdict == "correct"
        await until(lambda: scorer.workers.server_pid not in (None, server))
        await until(lambda: not any(exists(pid) for pid in workers))


@pytest.mark.usefixtures("chaos")
async def test_a_cancelled_call_ends_its_items() -> None:
    async with serving(workers=1, item_timeout_s=60.0) as (stub, scorer):
        call = stub.BatchScore(batch(item(f"{i}", f"sleep 50 {i}") for i in range(30)), timeout=100)
        await until(lambda: scorer.pool.running_pids() and scorer.pool.queued == 29)
        running = scorer.pool.running_pids()
        call.cancel()
        await until(lambda: scorer.pool.queued == 0 and not scorer.pool.running_pids())
        await until(lambda: not any(exists(pid) for pid in running))
        response = await stub.BatchScore(batch([item("x", "fine")]), timeout=20)
        assert reasons(response) == {"x": ""}


@pytest.mark.usefixtures("chaos")
async def test_a_cancelled_call_leaves_what_another_one_waits_for() -> None:
    async with serving(workers=1, item_timeout_s=60.0) as (stub, scorer):
        shared = item("x", "sleep 1.5")
        first = stub.BatchScore(batch([shared, item("y", "sleep 50")]), timeout=100)
        await until(lambda: scorer.pool.running_pids() and scorer.pool.queued == 1)
        second = stub.BatchScore(batch([shared, item("z", "fine")]), timeout=100)
        await until(lambda: scorer.pool.queued == 2)
        first.cancel()
        response = await second
        assert reasons(response) == {"x": "", "z": ""}
        assert response.results[0].from_cache
        await until(lambda: scorer.pool.queued == 0 and not scorer.pool.running_pids())


@pytest.mark.usefixtures("chaos")
async def test_the_deadline_in_mid_batch_returns_what_is_finished() -> None:
    async with serving(workers=1, item_timeout_s=60.0) as (stub, scorer):
        items = [item("a", "one"), item("b", "x", "exact"), item("c", "sleep 50"), item("d", "two")]
        response = await stub.BatchScore(batch(items), timeout=2.0)
        assert reasons(response) == {
            "a": "",
            "b": "",
            "c": "DEADLINE_EXCEEDED",
            "d": "DEADLINE_EXCEEDED",
        }
        await until(lambda: scorer.pool.queued == 0 and not scorer.pool.running_pids())


@pytest.mark.usefixtures("chaos")
async def test_a_full_queue_refuses_the_whole_call_and_says_when_to_come_back() -> None:
    async with serving(workers=1, queue_items=10, item_timeout_s=60.0) as (stub, scorer):
        listed = await stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10)
        assert listed.limits.max_items == 10
        call = stub.BatchScore(batch(item(f"{i}", f"sleep 40 {i}") for i in range(9)), timeout=100)
        await until(lambda: scorer.pool.queued == 8)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.BatchScore(batch(item(f"{i}", f"ok {i}") for i in range(3)), timeout=10)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        status = _status(refused.value)
        assert error_info(status).reason == "QUEUE_FULL"
        assert retry_after_s(status) is not None
        assert scorer.pool.queued == 8
        inline = await stub.BatchScore(batch([item("e", "42", "exact")]), timeout=10)
        assert reasons(inline) == {"e": ""}
        call.cancel()


@pytest.mark.usefixtures("chaos")
async def test_a_large_slow_batch_does_not_starve_a_small_call() -> None:
    async with serving(workers=1, item_timeout_s=10.0) as (stub, scorer):
        large = stub.BatchScore(
            batch(item(f"{i}", f"sleep 0.2 {i}") for i in range(300)), timeout=100
        )
        await until(lambda: scorer.pool.queued > 200)
        small = await stub.BatchScore(batch(item(f"s{i}", f"s {i}") for i in range(3)), timeout=30)
        assert set(reasons(small).values()) == {""}
        assert scorer.pool.queued > 200
        large.cancel()


@pytest.mark.usefixtures("chaos")
async def test_the_queue_does_not_eat_the_time_out() -> None:
    async with serving(workers=1, item_timeout_s=1.0) as (stub, _):
        response = await stub.BatchScore(
            batch(item(f"{i}", f"sleep 0.4 {i}") for i in range(5)), timeout=30
        )
        assert set(reasons(response).values()) == {""}
        queued = [r.timings.queue.ToMilliseconds() for r in response.results]
        assert max(queued) > 1000
        assert all(300 < r.timings.execution.ToMilliseconds() < 1100 for r in response.results)


@pytest.mark.usefixtures("chaos")
async def test_a_worker_is_replaced_after_its_number_of_items() -> None:
    async with serving(workers=1, worker_items=3) as (stub, _):
        response = await stub.BatchScore(
            batch(item(f"{i}", f"pid {i}") for i in range(8)), timeout=30
        )
        pids = [r.judgement.extracted_answer for r in response.results]
        assert len(set(pids)) >= 3


async def test_a_sick_built_in_verifier_keeps_the_server_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from assay.reward_server.domain import Candidate, VerifierExample, VerifierItem
    from assay.reward_server.verifiers.exact import exact

    wrong = VerifierItem(Candidate("a"), references=("b",), parameters=exact.spec.complete({}))
    monkeypatch.setattr(exact, "examples", (VerifierExample(wrong, "correct"),))
    with pytest.raises(StartupError, match="exact"):
        async with serving():
            pass


def _status(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    pairs = dict(error.trailing_metadata() or ())
    return status_pb2.Status.FromString(pairs["grpc-status-details-bin"])


@pytest.mark.usefixtures("chaos")
async def test_a_stream_waits_where_a_batch_would_be_refused() -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for k in range(5):
            made = [item(f"{k}-{i}", f"sleep 0.02 {k} {i}") for i in range(8)]
            yield reward_pb2.StreamScoreRequest(items=made)

    async with serving(workers=1, queue_items=10) as (stub, _):
        call = stub.StreamScore(chunks(), timeout=60)
        results = [result async for part in call for result in part.results]
        assert sorted(r.id for r in results) == sorted(
            f"{k}-{i}" for k in range(5) for i in range(8)
        )
        assert all(r.HasField("judgement") for r in results)


@pytest.mark.usefixtures("chaos")
async def test_a_cancelled_stream_ends_its_items() -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        yield reward_pb2.StreamScoreRequest(items=[item(f"{i}", f"sleep 50 {i}") for i in range(9)])
        await asyncio.sleep(60)

    async with serving(workers=1, item_timeout_s=60.0) as (stub, scorer):
        call = stub.StreamScore(chunks(), timeout=100)
        await until(lambda: scorer.pool.running_pids() and scorer.pool.queued == 8)
        call.cancel()
        await until(lambda: scorer.pool.queued == 0 and not scorer.pool.running_pids())
