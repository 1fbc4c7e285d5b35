"""A model that is served anew while calls are at work: who is asked, and when the old one goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.genrm_memory import INFO, MemoryEngine
from tests.genrm_service import item

from assay.api.judge.v1 import judge_pb2
from assay.genrm.config import ModelsConfig, RunnerConfig
from assay.genrm.engines.base import Capability
from assay.genrm.engines.config import EngineConfig
from assay.genrm.models import Models
from assay.genrm.runner import Runner
from assay.kit.errors import StartupError

LIMIT_S = 20.0


class Makers:
    """Makes engines that have answered, each of a revision of its own; keeps them."""

    def __init__(self) -> None:
        self.made: dict[str, list[MemoryEngine]] = {"a": [], "b": []}
        self.capabilities: frozenset[Capability] = INFO.capabilities
        self.fails = False

    def __call__(self, name: str, _config: EngineConfig) -> MemoryEngine:
        revision = f"{name}{len(self.made[name])}"
        info = replace(INFO, name=name, revision=revision, capabilities=self.capabilities)
        engine = MemoryEngine(info)
        engine.loaded.set()
        engine.go.set()
        if self.fails:
            engine.start = self.fail  # type: ignore[method-assign]
        self.made[name].append(engine)
        return engine

    async def fail(self) -> None:
        raise StartupError("no memory")


@pytest.fixture
async def service():
    makers = Makers()
    one = EngineConfig(path="x", max_concurrent=1)
    config = ModelsConfig({"a": one, "b": one})
    runner = Runner(RunnerConfig(config, self_test=False), models=Models(config, makers))
    await runner.start()
    for engines in makers.made.values():
        engines[0].asked.clear()
    yield runner, makers
    await runner.close()
    assert all(one.closed for engines in makers.made.values() for one in engines)


def begun(
    runner: Runner, count: int, *models: str
) -> asyncio.Task[judge_pb2.JudgeResponsesResponse]:
    request = judge_pb2.JudgeResponsesRequest(
        items=[item(f"i{n}", f"blue {n}", ground_truth="blue") for n in range(count)],
        settings=judge_pb2.JudgeSettings(model=models[0] if len(models) == 1 else ""),
        ensemble=judge_pb2.Ensemble(models=models if len(models) > 1 else ()),
    )
    return asyncio.create_task(runner.judge_responses(request, timeout_s=LIMIT_S))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_call_is_judged_by_what_was_served_when_it_came(service) -> None:
    """Also by models of an ensemble that are asked only when a later item has its turn."""
    runner, makers = service
    old_a, old_b = makers.made["a"][0], makers.made["b"][0]
    old_a.go.clear()
    call = begun(runner, 3, "a", "b")
    await settle()
    assert old_a.asked
    asked_b = len(old_b.asked)
    assert "b1" in await runner._renew("b", "digest")
    new_b = makers.made["b"][1]
    proofs = len(new_b.asked)
    later = await begun(runner, 1, "b")
    assert later.results[0].judgement.judge.model_revision == "b1"
    assert len(new_b.asked) > proofs
    used = len(new_b.asked)
    assert not old_b.closed
    old_a.go.set()
    response = await call
    assert len(old_b.asked) > asked_b
    assert len(new_b.asked) == used
    for result in response.results:
        opinions = [one.judge.model_revision for one in result.judgement.opinions]
        assert opinions == ["a0", "b0"]
    await settle()
    assert old_b.closed
    assert not old_a.closed


async def test_what_fails_or_is_of_another_kind_leaves_the_old_one(service) -> None:
    runner, makers = service
    makers.fails = True
    with pytest.raises(StartupError, match="no memory"):
        await runner._renew("b", "digest")
    makers.fails = False
    makers.capabilities = frozenset(("rate",))
    with pytest.raises(StartupError, match="the new weights answer rate only"):
        await runner._renew("b", "digest")
    assert [one.closed for one in makers.made["b"]] == [False, True, True]
    answer = await begun(runner, 1, "b")
    assert answer.results[0].judgement.judge.model_revision == "b0"


async def test_a_renewal_that_is_cancelled_ends_what_it_began(service) -> None:
    runner, makers = service
    made = makers.__call__

    def slow(name: str, config: EngineConfig) -> MemoryEngine:
        engine = made(name, config)
        engine.loaded.clear()
        return engine

    runner._models._make = slow
    task = asyncio.create_task(runner._renew("b", "digest"))
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.closed for one in makers.made["b"]] == [False, True]


async def test_the_same_weights_are_not_loaded_again(service) -> None:
    runner, makers = service
    assert await runner._renew("b", "b0") == "weights of b: still b0"
    assert len(makers.made["b"]) == 1


async def test_counts_go_on_where_an_engine_is_replaced(service) -> None:
    runner, makers = service
    makers.made["b"][0].tally.rows = 7
    await runner._renew("b", "digest")
    makers.made["b"][1].tally.rows = 5
    assert runner.metrics._rows.by["b"]() == 12
