"""Self-verification with a real reward server that says which attempts are right."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.genrm_memory import MemoryEngine

from assay.api.process.v1 import process_pb2
from assay.clients import AsyncRewardClient, ClientConfig, EmbeddedServices, RetryPolicy
from assay.genrm.answers import AnswerVerifier
from assay.genrm.config import ModelsConfig, RunnerConfig
from assay.genrm.engines.config import EngineConfig
from assay.genrm.models import Models
from assay.genrm.runner import Runner
from assay.kit.errors import reason_of

QUESTION = ({"role": "user", "content": "What is 6 * 7?"},)


@pytest.fixture(scope="module")
def reward_server() -> Iterator[str]:
    with EmbeddedServices(arguments={"reward": ("--workers", "1")}) as services:
        yield services.address


@pytest.fixture
async def runner(reward_server: str) -> AsyncIterator[Runner]:
    made = _runner(reward_server)
    await made.start()
    yield made
    await made.close()


def _runner(target: str) -> Runner:
    engine = MemoryEngine()
    engine.loaded.set()
    engine.go.set()
    config = ModelsConfig({"a": EngineConfig(path="x")})
    patience = ClientConfig(retry=RetryPolicy(max_attempts=1))
    return Runner(
        RunnerConfig(config),
        models=Models(config, lambda _name, _config: engine),
        answers=AnswerVerifier(AsyncRewardClient(target, config=patience)),
    )


def dialogue(
    item_id: str, *turns: str, truth: str = "42", right: tuple[bool, ...] = ()
) -> process_pb2.SelfVerificationItem:
    return process_pb2.SelfVerificationItem(
        id=item_id,
        prompt=QUESTION,  # type: ignore[arg-type]
        policy_turns=turns,
        ground_truth=truth,
        attempts_correct=right,
    )


async def score(
    runner: Runner, *items: process_pb2.SelfVerificationItem, verifier: str = ""
) -> process_pb2.ScoreSelfVerificationResponse:
    settings = process_pb2.SelfVerificationSettings(answer_verifier=verifier, shaping_weight=1.0)
    request = process_pb2.ScoreSelfVerificationRequest(items=items, settings=settings)
    return await runner.score_self_verification(request, timeout_s=30)


def reasons(response: process_pb2.ScoreSelfVerificationResponse) -> list[str]:
    return [
        reason_of(result.fault) if result.HasField("fault") else "scores"
        for result in response.results
    ]


async def test_attempts_are_judged_where_the_caller_does_not_say(runner: Runner) -> None:
    wrong, right = "It is \\boxed{41}.", "It is \\boxed{42}."
    response = await score(
        runner,
        dialogue("revised", wrong, "7 * 6 is 42. The answer is wrong.", right),
        dialogue("said", wrong, right=(True,)),
        dialogue("no-truth", right, truth=" "),
        dialogue("no-turns"),
    )
    assert reasons(response) == ["scores", "scores", "MISSING_REFERENCE", "MISSING_RESPONSE"]
    turns = response.results[0].scores.turns
    assert [turn.reward for turn in turns] == [0.0, 1.0, 2.0]
    assert [turn.attempt_correct for turn in turns if turn.HasField("attempt_correct")] == [
        False,
        True,
    ]
    assert response.results[1].scores.turns[0].attempt_correct
    assert response.metrics.first_accuracy == 0.5
    assert response.metrics.final_accuracy == 1


@pytest.mark.parametrize(
    ("verifier", "reason", "said"),
    [
        ("nobody", "UNKNOWN_VERIFIER", "no verifier 'nobody'"),
        ("language", "INVALID_PARAMETER", "never says 'correct'"),
    ],
)
async def test_a_verifier_that_cannot_say_is_refused(
    runner: Runner, verifier: str, reason: str, said: str
) -> None:
    response = await score(runner, dialogue("a", "\\boxed{42}"), verifier=verifier)
    assert reasons(response) == [reason]
    assert said in response.results[0].fault.message


async def test_what_the_reward_server_cannot_judge_is_the_dialogues_fault(runner: Runner) -> None:
    response = await score(
        runner, dialogue("a", "\\boxed{42}"), dialogue("b", "x", right=(True,)), verifier="sudoku"
    )
    assert reasons(response) == ["UNUSABLE_REFERENCE", "scores"]
    assert response.results[0].fault.message.startswith("an attempt: ")


async def test_a_reward_server_that_is_not_there_costs_only_who_needs_it() -> None:
    runner = _runner("127.0.0.1:1")
    await runner.start()
    try:
        response = await score(
            runner, dialogue("a", "\\boxed{42}"), dialogue("b", "x", right=(True,))
        )
        assert reasons(response) == ["UNREACHABLE", "scores"]
    finally:
        await runner.close()
