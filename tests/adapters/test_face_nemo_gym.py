"""An environment as NeMo Gym's resources server, between Gym's own agent and a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

import pytest

from adapters.face_worlds import SUMS, Sums
from assay.environments import Environment, tool
from assay.environments.faces.common import opened
from assay.kit.errors import ConfigError

pytest.importorskip("nemo_gym", reason="see `make test-adapters`")

from nemo_gym.base_resources_server import ResourcesSeedSessionRequest
from nemo_gym.server_utils import ServerClient
from nemo_gym.testing.session_conformance import check_resources_session_contract
from starlette.testclient import TestClient

from adapters.test_nemo_gym_sessions import gym, on_a_port, outputs_of, run
from assay.environments.faces.nemo_gym import (
    EnvironmentResourcesServer,
    EnvironmentServerConfig,
    gym_row,
)

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

RESPONSE = {"id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}  # fmt: skip


class Taken(Environment):
    """An environment whose tool has the name of one of Gym's routes."""

    @tool
    def verify(self) -> str:
        """Verifies."""
        return ""


def app_of(environment: str = SUMS, **settings: Any) -> Any:
    config = EnvironmentServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="sums", environment=environment,
        **settings,
    )  # fmt: skip
    client = MagicMock(spec=ServerClient)
    return EnvironmentResourcesServer(config=config, server_client=client).setup_webserver()


def row(**columns: Any) -> dict[str, Any]:
    with opened(Sums) as world:
        return gym_row(world, {"prompt": "What is 2 + 3?", "a": 2, "b": 3, **columns})


def adding(a: int, b: int, answer: str) -> Any:
    return lambda outputs: answer if outputs else {"add": {"a": a, "b": b}}


async def rolled(policy: Any, asked: dict[str, Any], **settings: Any) -> dict[str, Any]:
    async with (
        on_a_port(app_of(**settings)) as port,
        gym(f"127.0.0.1:{port}", policy) as agent,
    ):
        return await run(agent, asked)


async def test_gyms_agent_plays_an_episode() -> None:
    found = await rolled(adding(2, 3, "It is 5."), row())
    assert outputs_of(found) == ["5"]
    assert (found["reward"], found["ending"], found["turns"]) == (1.25, "answered", 2)
    assert found["mask_sample"] is False
    assert found["a"] == 2


async def test_rollouts_at_once_share_nothing() -> None:
    async with (
        on_a_port(app_of()) as port,
        gym(f"127.0.0.1:{port}", adding(2, 3, "It is 5.")) as agent,
    ):
        found = await asyncio.gather(*(run(agent, row(b=3 + n)) for n in range(4)))
    assert [one["reward"] for one in found] == [1.25, 0.0, 0.0, 0.0]


async def test_what_the_policy_cannot_call_is_told_to_it() -> None:
    found = await rolled(lambda seen: "5" if seen else {"add": {"a": "x", "b": 1}}, row())
    assert "integer" in outputs_of(found)[0]
    assert found["reward"] == 1.0


@pytest.mark.parametrize(
    ("policy", "columns"),
    [(adding(13, 3, "5"), {}), (adding(2, 3, "judge"), {}), (adding(2, 3, "5"), {"a": "x"})],
)
async def test_a_masked_fault_is_a_failed_row(policy: Any, columns: dict[str, Any]) -> None:
    found = await rolled(policy, row(**columns), on_fault="mask")
    assert (found["reward"], found["mask_sample"]) == (0.0, True)
    assert found["instance_config"] == {"mask_sample": True}
    assert found["_ng_failure_class"] == "assay_fault"
    assert found["failure_reason"].startswith("ENVIRONMENT_FAILED")


def test_by_default_a_fault_is_503() -> None:
    with TestClient(app_of()) as client:
        client.post("/seed_session", json=row())
        assert client.post("/add", json={"a": 13, "b": 3}).status_code == 503
        found = client.post("/verify", json={**row(), "response": RESPONSE})
    assert found.status_code == 503
    assert found.json()["fault"]["reason"] == "ENVIRONMENT_FAILED"


def test_a_session_that_nobody_seeded_has_no_reward() -> None:
    with TestClient(app_of(on_fault="mask")) as client:
        assert client.post("/add", json={"a": 1, "b": 1}).status_code == 503
        found = client.post("/verify", json={**row(), "response": RESPONSE}).json()
    assert found["failure_reason"].startswith("SESSION_LOST")


def test_an_episode_that_nobody_calls_is_dropped() -> None:
    app = app_of(idle_s=0.0)
    with TestClient(app) as one, TestClient(app) as other:
        one.post("/seed_session", json=row())
        assert one.post("/add", json={"a": 1, "b": 1}).text == "2"
        other.post("/seed_session", json=row())
        assert one.post("/add", json={"a": 1, "b": 1}).status_code == 503


def test_gyms_own_check_of_sessions() -> None:
    seed = ResourcesSeedSessionRequest(
        resources_session_id="s1",
        episode_id={"rollout_id": "e1"},
        task_id={"taskset": "t", "task_id": "1"},
        task_data={"prompt": "?", "a": 2, "b": 3},
    )  # fmt: skip
    check_resources_session_contract(app_of(), seed, keeps_state=True)


def test_a_tool_that_hides_a_route_of_gyms_is_refused() -> None:
    with pytest.raises(ConfigError, match="'verify'"):
        app_of(f"{__file__}:Taken")
