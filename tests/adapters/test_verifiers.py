"""Tasks of `verifiers.v1`, and environments of its first stack, scored by a real server."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble

pytest.importorskip("verifiers.v1", reason="see `make test-adapters`")

import verifiers.v1 as vf

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


class Data(vf.TaskData):
    answer: str
    task: str = "math"


PLUGGED = vf.TaskConfig(rewards={"assay": {"fn": "assay.clients.verifiers.reward"}})


def traced(reply: str, answer: str = "4") -> tuple[Any, Any]:
    """A task with the reward plugged by its path, and the trace of a rollout of one turn."""
    data = Data(idx=0, prompt="2 + 2?", answer=answer)
    task = vf.Task(data, PLUGGED)
    agent = vf.AgentInfo(config=vf.AgentConfig())
    trace = vf.Trace(task=vf.TraceTask(type="Task", data=data), agent=agent)
    said = vf.AssistantMessage(content=reply)
    trace.nodes.append(vf.MessageNode(message=said, sampled=True))
    return task, trace


@pytest.mark.parametrize(("reply", "reward"), [(RIGHT, 1.0), (WRONG, 0.0)])
async def test_a_plugged_reward_is_the_servers(
    reply: str, reward: float, environment: pytest.MonkeyPatch
) -> None:
    task, trace = traced(reply)
    await task.score(trace)
    assert trace.rewards["assay"].score == trace.reward == reward


async def test_a_fault_is_an_error_of_the_task_and_no_reward(troubled: Trouble) -> None:
    task, trace = traced(RIGHT, troubled.reference)
    with pytest.raises(vf.TaskError, match=troubled.reason):
        await task.score(trace)
    assert trace.rewards == {"assay": None}


async def test_only_drop_is_possible(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ASSAY_ON_FAULT", "mask")
    task, trace = traced(RIGHT)
    with pytest.raises(vf.TaskError, match="with verifiers choose one of: drop"):
        await task.score(trace)
