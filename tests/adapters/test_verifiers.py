"""Rollouts of `verifiers.v1`: its agent, its client, a scripted policy, a real reward server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from adapters.chat_support import scripted_policy
from adapters.conftest import RIGHT, WRONG, Trouble

pytest.importorskip("verifiers.v1", reason="see `make test-adapters`")

import verifiers.v1 as vf

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

Run = Callable[[str], Coroutine[Any, Any, Any]]


class Data(vf.TaskData):
    answer: str
    task: str = "math"


PLUGGED = vf.TaskConfig(rewards={"assay": {"fn": "assay.clients.trainers.verifiers.reward"}})


@pytest.fixture
async def run(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Run]:
    """Runs a task whose right answer is given; the policy is right, then wrong."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("POLICY_KEY", "none")
    with scripted_policy(RIGHT, WRONG) as url:
        config = vf.AgentConfig(
            model="scripted",
            harness={"id": "vf_one_turn"},
            runtime=vf.SubprocessConfig(),
            client=vf.EvalClientConfig(base_url=url, api_key_var="POLICY_KEY"),
        )
        async with vf.make_agent(config) as agent:
            yield lambda answer: agent.run(
                vf.Task(Data(idx=0, prompt="2 + 2?", answer=answer), PLUGGED)
            )


async def test_rollouts_have_the_servers_rewards(run: Run, environment: object) -> None:
    for reward in (1.0, 0.0):
        trace = await run("4")
        assert trace.ok, trace.errors
        assert trace.rewards["assay"].score == trace.reward == reward


async def test_a_fault_is_an_error_of_the_trace_and_no_reward(run: Run, troubled: Trouble) -> None:
    trace = await run(troubled.reference)
    assert trace.has_error  # what prime-rl looks at; the reward is the sum of nothing
    assert trace.rewards == {"assay": None}
    assert trace.last_error.type == "TaskError"
    assert troubled.reason in trace.last_error.message


async def test_only_drop_is_possible(run: Run, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    trace = await run("4")
    assert "with verifiers choose one of: drop" in trace.last_error.message
