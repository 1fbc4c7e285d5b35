"""What stands around engines: defaults, starts that fail, lines, deadlines, defects, metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.metrics_core import Metric
from tests.genrm_memory import INFO, MemoryEngine, failing
from tests.genrm_service import SKY, item
from tests.metrics_support import conserved, total

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.genrm.config import ModelsConfig, RunnerConfig
from assay.genrm.engines.base import Answer, Capability, EngineError, Request
from assay.genrm.engines.config import EngineConfig
from assay.genrm.models import Models
from assay.genrm.runner import Runner
from assay.genrm.service import JUDGE_NAME, PROCESS_NAME, genrm_services
from assay.kit.errors import CallError, ConfigError, StartupError, reason_of
from assay.kit.faults import Unjudgeable
from assay.kit.serving import ServeConfig, start

HEADS: dict[str, frozenset[Capability]] = {
    "generative": frozenset(("choose", "write")),
    "votes": frozenset(("write",)),
    "scalar": frozenset(("rate",)),
    "step": frozenset(("rate-steps",)),
}


def made(
    heads: dict[str, str], *, ready: bool = True, concurrent: int = 256, **defaults: str
) -> tuple[Models, dict[str, MemoryEngine], ModelsConfig]:
    """Models in memory: name to head."""
    engines = {
        name: MemoryEngine(replace(INFO, name=name, capabilities=HEADS[head]))
        for name, head in heads.items()
    }
    for engine in engines.values():
        if ready:
            engine.loaded.set()
            engine.go.set()
    config = ModelsConfig(
        {name: EngineConfig(path="x", max_concurrent=concurrent) for name in heads}, **defaults
    )
    return Models(config, lambda name, _config: engines[name]), engines, config


@contextlib.asynccontextmanager
async def running(
    heads: dict[str, str], *, queue_items: int = 1024, **more: Any
) -> AsyncIterator[tuple[Runner, dict[str, MemoryEngine]]]:
    """A runner that was started; its engines wait for `go` from here on."""
    models, engines, config = made(heads, **more)
    runner = Runner(RunnerConfig(config, queue_items=queue_items, self_test=False), models=models)
    await runner.start()
    for engine in engines.values():
        engine.go.clear()
        engine.asked.clear()
    try:
        yield runner, engines
    finally:
        await runner.close()


def request(*items: judge_pb2.JudgeItem, **settings: Any) -> judge_pb2.JudgeResponsesRequest:
    return judge_pb2.JudgeResponsesRequest(
        items=items, settings=judge_pb2.JudgeSettings(**settings)
    )


def reasons(response: Any) -> list[str]:
    return [
        reason_of(result.fault) if result.HasField("fault") else str(result.WhichOneof("outcome"))
        for result in response.results
    ]


@pytest.mark.parametrize(
    ("heads", "defaults", "judge", "steps"),
    [
        ({"a": "generative"}, {}, "a", "a"),
        ({"a": "step", "b": "generative"}, {}, "b", "a"),
        ({"a": "generative", "b": "step"}, {"default": "a"}, "a", "b"),
        ({"a": "generative", "b": "generative"}, {"default_steps": "b"}, "a", "b"),
        ({"a": "scalar"}, {}, "a", ""),
        ({"a": "step"}, {}, "", "a"),
        ({"a": "scalar", "b": "votes"}, {"default": "b"}, "b", "b"),
    ],
)
async def test_defaults_follow_what_models_can_do(
    heads: dict[str, str], defaults: dict[str, str], judge: str, steps: str
) -> None:
    models, _, _ = made(heads, **defaults)
    await models.start()
    assert (models.default_judge, models.default_steps) == (judge, steps)


@pytest.mark.parametrize(
    ("heads", "defaults"),
    [({"a": "step"}, {"default": "a"}), ({"a": "scalar"}, {"default_steps": "a"})],
)
async def test_a_default_that_cannot_do_its_work_ends_the_start(
    heads: dict[str, str], defaults: dict[str, str]
) -> None:
    models, _, _ = made(heads, **defaults)
    with pytest.raises(StartupError, match="'a'"):
        await models.start()


async def test_a_name_that_is_none_says_which_there_are() -> None:
    models, _, _ = made({"prm": "step", "rm": "scalar"})
    await models.start()
    with pytest.raises(Unjudgeable, match="known: rm"):
        models.judge("prm")
    with pytest.raises(Unjudgeable, match="known: prm"):
        models.step_model("rm")
    with pytest.raises(Unjudgeable, match="no model here gives probabilities"):
        models.chooser("rm")


async def test_models_start_together_and_those_of_vllm_one_by_one_after_them() -> None:
    models, engines, config = made(dict.fromkeys("abcd", "generative"), ready=False)
    for name in "ac":
        config.model[name] = replace(config.model[name], engine="vllm")
    starting = asyncio.ensure_future(models.start())

    async def started() -> str:
        await asyncio.sleep(0.01)
        return "".join(name for name, engine in engines.items() if engine.starting)

    assert await started() == "bd"
    for name, expected in (("b", "bd"), ("d", "abd"), ("a", "abcd")):
        engines[name].loaded.set()
        engines[name].go.set()
        assert await started() == expected
    engines["c"].loaded.set()
    engines["c"].go.set()
    await starting


@pytest.mark.parametrize("wrong", [StartupError, ConfigError])
async def test_a_start_that_fails_names_the_model_and_closes_the_others(
    wrong: type[Exception],
) -> None:
    models, engines, config = made({"good": "generative", "bad": "generative"}, ready=False)

    async def fail() -> None:
        raise wrong("no such folder")

    engines["bad"].start = fail  # type: ignore[method-assign]
    runner = Runner(RunnerConfig(config, self_test=False), models=models)
    with pytest.raises(wrong, match="model bad: no such folder"):
        await runner.start()
    await runner.close()
    assert engines["good"].closed


async def test_a_model_that_does_not_answer_ends_the_start() -> None:
    models, engines, _ = made({"a": "generative"})
    engines["a"].answer = failing
    with pytest.raises(StartupError, match="model a is loaded and does not answer: not a number"):
        await models.start()


async def test_health_is_not_serving_until_every_model_has_answered() -> None:
    models, engines, config = made({"a": "generative", "b": "step"}, ready=False)
    runner = Runner(RunnerConfig(config, self_test=False), models=models)
    port = asyncio.get_running_loop().create_future()
    services = genrm_services(runner)

    def add(server: grpc.aio.Server) -> None:
        port.set_result(server.add_insecure_port("127.0.0.1:0"))
        plain(server)

    plain = services[0].add_to_server
    services[0] = replace(services[0], add_to_server=add)
    starting = asyncio.ensure_future(start(services, ServeConfig()))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{await port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]

        async def status(name: str) -> int:
            asked = health_pb2.HealthCheckRequest(service=name)
            answer = await stub.Check(asked, timeout=5, wait_for_ready=True)
            return int(answer.status)

        names = ("", JUDGE_NAME, PROCESS_NAME)
        not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
        assert [await status(name) for name in names] == [not_serving] * 3
        for engine in engines.values():
            engine.loaded.set()
        assert [await status(name) for name in names] == [not_serving] * 3
        for engine in engines.values():
            engine.go.set()
        running_server = await starting
        serving = health_pb2.HealthCheckResponse.SERVING
        assert [await status(name) for name in names] == [serving] * 3
    await running_server.stop(0)


async def test_all_first_requests_of_a_call_are_at_the_engine_together() -> None:
    async with running({"a": "generative"}) as (runner, engines):
        call = asyncio.ensure_future(
            runner.judge_responses(
                request(*(item(f"{i}", f"r{i}") for i in range(64))), timeout_s=9
            )
        )
        while not engines["a"].asked:  # noqa: ASYNC110 - the very turn in which they come counts
            await asyncio.sleep(0)
        assert len(engines["a"].asked) == 2 * 64  # each by both readings of its letters
        engines["a"].go.set()
        assert reasons(await call) == ["judgement"] * 64


async def test_a_queue_that_is_full_takes_nothing_of_a_call() -> None:
    async with running({"a": "generative"}, concurrent=1, queue_items=4) as (runner, engines):
        four = request(*(item(f"{i}", f"r{i}") for i in range(4)))
        taken = asyncio.ensure_future(runner.judge_responses(four, timeout_s=30))
        await asyncio.sleep(0.01)
        with pytest.raises(CallError, match="3 items wait already") as caught:
            await runner.judge_responses(four, timeout_s=30)
        assert caught.value.reason == "QUEUE_FULL"
        assert caught.value.retry_after_s is not None
        five = request(*(item(f"{i}", f"r{i}") for i in range(5)))
        with pytest.raises(CallError, match="the limit is 4"):
            await runner.judge_responses(five, timeout_s=30)
        assert len(engines["a"].asked) == 2
        engines["a"].go.set()
        assert reasons(await taken) == ["judgement"] * 4


async def test_a_deadline_returns_what_is_done_and_withdraws_the_rest() -> None:
    async with running({"a": "generative"}) as (runner, engines):
        response = await runner.judge_responses(
            request(item("a", "slow"), item("b", "")), timeout_s=0.3
        )
        assert reasons(response) == ["DEADLINE_EXCEEDED", "MISSING_RESPONSE"]
        await asyncio.sleep(0.01)
        assert engines["a"].withdrawn == engines["a"].asked


async def test_a_call_that_is_cancelled_leaves_nothing_behind() -> None:
    async with running({"a": "generative"}, concurrent=1) as (runner, engines):
        call = asyncio.ensure_future(
            runner.judge_responses(request(item("a", "x"), item("b", "y")), timeout_s=30)
        )
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0.01)
        assert len(engines["a"].asked) == len(engines["a"].withdrawn) == 2
        engines["a"].go.set()
        response = await runner.judge_responses(request(item("c", "z")), timeout_s=30)
        assert reasons(response) == ["judgement"]


async def test_an_engine_that_fails_costs_its_item_and_a_defect_does_too() -> None:
    def answer(asked: Request) -> Answer:
        if "bad" in repr(asked):
            raise EngineError("ENGINE_DIED", "died", {"attempt": "1"})
        if "broken" in repr(asked):
            raise RuntimeError("a defect, with a secret in its text")
        return MemoryEngine().answer(asked)

    async with running({"a": "generative"}) as (runner, engines):
        engines["a"].answer = answer
        engines["a"].go.set()
        response = await runner.judge_responses(
            request(item("a", "bad"), item("b", "fine"), item("c", "broken")), timeout_s=30
        )
        assert reasons(response) == ["ENGINE_DIED", "judgement", "INTERNAL"]
        assert "secret" not in str(response)


async def test_an_unset_seed_is_drawn_for_each_call_and_a_set_one_kept() -> None:
    async with running({"a": "votes"}) as (runner, engines):
        engines["a"].go.set()
        for settings in ({}, {}, {"seed": 5}, {"seed": 5}):
            await runner.judge_responses(request(item("a", "x"), votes=2, **settings), timeout_s=30)
        seeds = [getattr(asked, "seed", None) for asked in engines["a"].asked]
        assert seeds[4:] == [5, 6]  # the second call was answered before
        assert seeds[0:2] != seeds[2:4]
        shared = {
            sample.labels["result"]: sample.value
            for family in runner.metrics.shared_answers.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }
        assert shared == {"miss": 2.0, "hit": 2.0}


async def test_dialogues_need_no_model_and_are_counted_together() -> None:
    def dialogue(name: str, right: list[bool], *turns: str) -> process_pb2.SelfVerificationItem:
        return process_pb2.SelfVerificationItem(
            id=name, prompt=SKY, policy_turns=turns, attempts_correct=right
        )

    said = "Checked. The answer is {}."
    async with running({"a": "step"}) as (runner, engines):
        response = await runner.score_self_verification(
            process_pb2.ScoreSelfVerificationRequest(
                items=[
                    dialogue("a", [True], "Blue.", said.format("correct")),
                    dialogue("b", [False, True], "Red.", said.format("wrong"), "Blue."),
                    dialogue("c", [True, True], "Blue.", said.format("correct")),
                    dialogue("d", [], ""),
                ]
            ),
            timeout_s=30,
        )
        assert reasons(response) == ["scores", "scores", "INVALID_PARAMETER", "INVALID_PARAMETER"]
        assert engines["a"].asked == []
    assert response.metrics.first_accuracy == 0.5
    assert response.metrics.final_accuracy == 1
    assert response.metrics.verifier_accuracy == 1
    assert not response.results[0].scores.turns[1].HasField("correct_probability")


async def test_a_dialogue_asks_a_model_that_gives_probabilities() -> None:
    async with running({"prm": "step", "votes": "votes"}) as (runner, _):
        response = await runner.score_self_verification(
            process_pb2.ScoreSelfVerificationRequest(
                items=[
                    process_pb2.SelfVerificationItem(
                        id="a", prompt=SKY, policy_turns=["x"], attempts_correct=[True]
                    )
                ],
                settings=process_pb2.SelfVerificationSettings(model="votes"),
            ),
            timeout_s=30,
        )
        assert reasons(response) == ["UNKNOWN_MODEL"]


async def test_items_are_counted_by_their_model() -> None:
    async with running({"m": "generative"}, concurrent=1) as (runner, engines):
        call = asyncio.ensure_future(
            runner.judge_responses(
                request(item("a", "Blue."), item("b", "Red."), item("c", "")), timeout_s=60
            )
        )
        while not engines["m"].asked:  # noqa: ASYNC110
            await asyncio.sleep(0)

        def shown() -> list[Metric]:
            return [family for one in runner.metrics.collectors for family in one.collect()]

        assert total(shown(), "assay_genrm_queue_items", model="m") == 2
        engines["m"].go.set()
        await call
        assert conserved(shown(), "genrm", "judgements")
        assert total(shown(), "assay_genrm_judgements_total", model="m", kind="response") == 2
        assert total(shown(), "assay_genrm_faults_total", reason="MISSING_RESPONSE") == 1
