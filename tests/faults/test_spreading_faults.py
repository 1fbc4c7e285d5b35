"""Parcels of a large batch with things going wrong: each costs its own item only."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import reason_of
from assay.reward_server.config import ScorerConfig
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.workers import parcels
from chaos import install
from spreading_support import sent, spread_everything
from waiting_support import until


@pytest.fixture(autouse=True)
def eager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug-ins that misbehave on demand, and batches that always go to workers."""
    monkeypatch.syspath_prepend(str(install(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spread_everything(monkeypatch)


def batch(*texts: str, verifier: str = "hasty", timeout_s: int = 0) -> reward_pb2.BatchScoreRequest:
    request = reward_pb2.BatchScoreRequest()
    for index, text in enumerate(texts):
        item = request.items.add(id=str(index), verifier=verifier, response=text)
        item.reference.text = "42"
        if timeout_s:
            item.timeout.seconds = timeout_s
    return request


def reasons(response: reward_pb2.BatchScoreResponse) -> list[str]:
    """The fault's reason of each item; empty for a judgement."""
    return [reason_of(r.fault) if r.HasField("fault") else "" for r in response.results]


async def opened(**settings: object) -> RewardScorer:
    config = ScorerConfig(**{"workers": 2, "item_timeout_s": 3.0, **settings})  # type: ignore[arg-type]  # named
    scorer = RewardScorer(config, registry=load_registry())
    await scorer.start()
    return scorer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("die", "WORKER_DIED"),
        ("exit", "WORKER_DIED"),
        ("raise", "VERIFIER_FAILED"),
        ("fill", "VERIFIER_FAILED"),
        ("range", "VERIFIER_FAILED"),
        ("flood", "VERIFIER_FAILED"),
        ("unjudgeable", "UNSUPPORTED_INPUT"),
        ("sleep 60", "ITEM_TIMEOUT"),
    ],
)
async def test_a_hostile_item_of_a_parcel_costs_itself_only(text: str, reason: str) -> None:
    scorer = await opened()
    try:
        texts = [f"fine {n}" for n in range(20)]
        response = await scorer.batch_score(batch(*texts, text, "fine too"), timeout_s=60)
        assert sent(scorer) > 2
        assert [r.id for r in response.results] == [str(n) for n in range(22)]
        assert reasons(response) == [*[""] * 20, reason, ""]
        again = await scorer.batch_score(batch("fine"), timeout_s=20)
        assert reasons(again) == [""]
    finally:
        await scorer.close()


async def test_a_worker_killed_in_mid_parcel_costs_nothing() -> None:
    scorer = await opened()
    try:
        texts = [f"{n} slow" for n in range(40)]
        call = asyncio.create_task(scorer.batch_score(batch(*texts), timeout_s=60))
        await until(scorer.pool.running_pids)
        os.kill(scorer.pool.running_pids()[0], signal.SIGKILL)
        response = await call
        assert reasons(response) == [""] * 40
        assert {r.judgement.verdict for r in response.results} == {"fine"}
    finally:
        await scorer.close()


async def test_a_stuck_worker_holds_a_parcel_up_for_its_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parcels, "_PARCEL_S", 0.3)
    scorer = await opened()
    try:
        texts = [f"fine {n}" for n in range(20)]
        began_s = time.monotonic()
        response = await scorer.batch_score(batch(*texts, "sleep 1"), timeout_s=60)
        assert reasons(response) == [""] * 21
        assert response.results[-1].timings.execution.ToMilliseconds() > 900
        assert time.monotonic() - began_s < 20
    finally:
        await scorer.close()


async def test_the_deadline_in_mid_parcel_returns_what_is_finished() -> None:
    scorer = await opened(item_timeout_s=60.0)
    try:
        texts = [f"fine {n}" for n in range(20)]
        response = await scorer.batch_score(batch(*texts, "sleep 50"), timeout_s=1.0)
        found = reasons(response)
        assert found[-1] == "DEADLINE_EXCEEDED"
        assert set(found) == {"", "DEADLINE_EXCEEDED"}
        assert found.count("") >= 10
        await until(lambda: not scorer.pool.running_pids())
        assert scorer.dispatcher.spreading is not None
        assert scorer.dispatcher.spreading.out == 0
    finally:
        await scorer.close()


async def test_a_cancelled_call_gives_its_parcels_up() -> None:
    scorer = await opened(item_timeout_s=60.0)
    try:
        texts = [f"fine {n}" for n in range(20)]
        call = asyncio.create_task(scorer.batch_score(batch(*texts, "sleep 50"), timeout_s=90))
        await until(scorer.pool.running_pids)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: not scorer.pool.running_pids())
        assert reasons(await scorer.batch_score(batch("fine"), timeout_s=20)) == [""]
    finally:
        await scorer.close()


async def test_an_item_with_a_short_time_out_stays_here() -> None:
    scorer = await opened()
    try:
        before = sent(scorer)
        request = batch(*[f"fine {n}" for n in range(20)], timeout_s=1)
        assert reasons(await scorer.batch_score(request, timeout_s=20)) == [""] * 20
        assert sent(scorer) == before
    finally:
        await scorer.close()


async def test_equal_items_are_judged_once() -> None:
    scorer = await opened()
    try:
        texts = [f"{n % 4} slow" for n in range(40)]
        requests = [batch(*texts), batch(*reversed(texts))]
        responses = await asyncio.gather(
            *(scorer.batch_score(request, timeout_s=60) for request in requests)
        )
        results = [result for response in responses for result in response.results]
        assert all(reasons(response) == [""] * 40 for response in responses)
        assert sum(not result.from_cache for result in results) == 4
    finally:
        await scorer.close()


async def test_what_a_glance_leaves_open_goes_on_to_a_worker_by_itself() -> None:
    scorer = await opened()
    try:
        texts = ["short", "a longer word", "oops at a glance", "refuse at a glance"] * 5
        response = await scorer.batch_score(batch(*texts, verifier="glancing"), timeout_s=60)
        assert reasons(response) == ["", "", "", "UNSUPPORTED_INPUT"] * 5
        said = [r.judgement.explanation for r in response.results]
        assert said == ["at a glance", "a b", "a b", ""] * 5
        assert sent(scorer) > 4
    finally:
        await scorer.close()


async def test_a_worker_that_lies_about_a_parcel_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = parcels.ScoreParcels.send

    def one_more(self: parcels.ScoreParcels, items: list[object]) -> object:
        job = real(self, items)  # type: ignore[arg-type]  # pending items
        job.task = job.task._replace(tasks=[*job.task.tasks, job.task.tasks[0]])  # type: ignore[attr-defined]
        return job

    monkeypatch.setattr(parcels.ScoreParcels, "send", one_more)
    scorer = await opened()
    try:
        response = await scorer.batch_score(batch(*[f"fine {n}" for n in range(20)]), timeout_s=60)
        assert reasons(response) == [""] * 20
        await until(lambda: scorer.pool.restarts > 0)
    finally:
        await scorer.close()
