"""An environment of ours in verifiers 0.4: its taskset, its rollouts, its tool servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.chat_support import scripted_policy

pytest.importorskip("verifiers.v1.envs", reason="see `make test-adapters`")

import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from assay.environments.faces.relay import BROKEN

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

SUPPORT = Path(__file__).resolve().parents[1] / "faces_support.py"
CALL = {"add": {"a": 2, "b": 3}}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("POLICY_KEY", "none")


async def played(
    folder: Path, row: dict[str, Any], *said: Any, kind: str = "Sums", **more: Any
) -> Any:
    """The episode of verifiers' own environment of one row, and the policy's script."""
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    agent: dict[str, Any] = {
        "harness": {"id": "vf_tools"},
        "runtime": {"type": "subprocess"},
        **more.pop("agent", {}),
    }
    taskset = {"id": "vf_sums", "environment": f"{SUPPORT}:{kind}", "rows": str(rows)}
    with scripted_policy(*said) as url:
        config = resolve_env_config({"taskset": taskset, "agent": agent, **more})
        environment = load_environment(config)
        client = vf.EvalClientConfig(base_url=url, api_key_var="POLICY_KEY")
        context = ModelContext(model="scripted", client=client, sampling=vf.SamplingConfig())
        [task] = environment.taskset
        async with environment.serving():
            return await environment.run_episode(task, context)


def row(**more: Any) -> dict[str, Any]:
    return {"prompt": "Hello.", "terms": [2, 3], **more}


async def test_a_rollout_calls_tools_and_has_the_environments_reward(tmp_path: Path) -> None:
    episode = await played(tmp_path, row(), CALL, "5")
    assert episode.ok, episode.errors
    [trace] = episode.traces
    assert trace.rewards["assay"].score == trace.reward == 1.25
    assert [message.content for message in trace.tool_messages] == ["5"]
    assert trace.metrics["assay/turns"] == 2.0
    assert not trace.has_error


async def test_what_the_environment_says_is_what_the_user_says(tmp_path: Path) -> None:
    said = ("who?", "what?", "it is ja")
    episode = await played(tmp_path, {"word": "ja"}, *said, kind="Riddle")
    [trace] = episode.traces
    assert trace.reward == 1.0
    users = [node.message.content for node in trace.nodes if node.message.role == "user"]
    assert users == ["Say the word.", "No, not 'who?'.", "No, not 'what?'."]


@pytest.mark.parametrize("where", ["reset", "add", "reward"])
async def test_a_fault_is_an_error_of_the_trace_and_no_reward(tmp_path: Path, where: str) -> None:
    episode = await played(tmp_path, row(**{"break": where}), CALL, "5")
    assert not episode.ok
    [trace] = episode.traces
    assert trace.has_error  # what prime-rl leaves out
    assert trace.rewards == {}
    assert "ENVIRONMENT_FAILED" in trace.last_error.message
    if where == "add":
        assert [message.content for message in trace.tool_messages] == [BROKEN]


async def test_a_policy_that_dies_is_no_reward_of_the_environment(tmp_path: Path) -> None:
    episode = await played(tmp_path, row(), CALL, {"nothing": {}}, "5")
    [trace] = episode.traces  # an unknown tool is the policy's doing
    assert trace.reward == 1.25
    assert "nknown tool" in trace.tool_messages[1].content


async def test_limits_of_verifiers_are_ends_of_the_policys(tmp_path: Path) -> None:
    episode = await played(tmp_path, row(), CALL, CALL, "5", agent={"max_turns": 1})
    [trace] = episode.traces
    assert trace.stop_condition == "max_turns"
    assert trace.rewards["assay"].score == 0.25  # it had not answered: asked, and not right
