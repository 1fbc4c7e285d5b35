"""The resources server in NeMo Gym's own web app, with rollouts that NeMo Gym ships."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices
from assay.kit.errors import ConfigError

pytest.importorskip("nemo_gym", reason="see `make test-adapters`")

from nemo_gym.server_utils import ServerClient
from starlette.testclient import TestClient

from assay.clients.trainers.nemo_gym import AssayResourcesServer, AssayResourcesServerConfig

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def app_of(**settings: Any) -> TestClient:
    config = AssayResourcesServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="assay", **settings
    )
    server = AssayResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    return TestClient(server.setup_webserver())


def rollout(text: str, **columns: Any) -> dict[str, Any]:
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "2 + 2?"}]},
        "response": {
            "id": "r",
            "created_at": 0.0,
            "model": "m",
            "object": "response",
            "output": [message],
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
        },
        **columns,
    }


@pytest.fixture(scope="module")
def app(server: EmbeddedServices) -> Iterator[TestClient]:
    with app_of(target=server.address, task="math") as client:
        yield client


@pytest.mark.parametrize(("text", "reward"), [(RIGHT, 1.0), (WRONG, 0.0)])
def test_verify_answers_with_the_servers_reward(app: TestClient, text: str, reward: float) -> None:
    asked = rollout(text, expected_answer="4", mine="kept")
    answer = app.post("/verify", json=asked)
    assert answer.status_code == 200
    row = answer.json()
    assert (row["reward"], row["mine"], row["expected_answer"]) == (reward, "kept", "4")
    assert row["response"]["output"][0]["content"][0]["text"] == text
    assert "_ng_failure_class" not in row


def test_calls_of_functions_are_what_was_called(server: EmbeddedServices) -> None:
    wanted = {"calls": [{"name": "add", "arguments": {"a": 2, "b": 2}}]}
    call = {"type": "function_call", "call_id": "1", "name": "add", "arguments": ""}
    with app_of(target=server.address, verifier="tool-call") as app:
        for arguments, reward in (('{"a": 2, "b": 2}', 1.0), ('{"a": 2, "b": 3}', 0.0)):
            asked = rollout("I add them.", reference=wanted)
            asked["response"]["output"].append({**call, "arguments": arguments})
            assert app.post("/verify", json=asked).json()["reward"] == reward


def test_the_rollouts_that_nemo_gym_ships(app: TestClient) -> None:
    files = importlib.metadata.files("nemo-gym") or []
    path = "resources_servers/math_with_judge/data/example_rollouts.jsonl"
    (file,) = [file for file in files if str(file) == path]
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    got = []
    for row in rows:
        fields = ("responses_create_params", "response", "expected_answer")
        asked = {field: row[field] for field in fields}
        asked["response"]["usage"] = None  # its shape is that of an older version of openai
        answer = app.post("/verify", json=asked)
        assert answer.status_code == 200, answer.text
        got.append(answer.json())
    differ = [n for n, row in enumerate(rows) if got[n]["reward"] != row["reward"]]
    assert not differ


def test_a_fault_is_a_failed_row_that_masks_its_sample(trouble: Trouble) -> None:
    settings = {"target": trouble.target, "task": "math", "timeout_s": 1.5, "on_fault": "mask"}
    with app_of(**settings) as app:
        asked = rollout(RIGHT, expected_answer=trouble.reference, instance_config={"seed": 1})
        answer = app.post("/verify", json=asked)
    assert answer.status_code == 200
    row = answer.json()
    assert (row["_ng_failure_class"], row["_ng_failure_reason"]) == ("assay_fault", trouble.reason)
    assert row["mask_sample"] is True
    assert row["instance_config"] == {"seed": 1, "mask_sample": True}
    assert "verdict" not in row


def test_gyms_own_agent_keeps_the_marks_of_a_failed_row(dead_target: str) -> None:
    from responses_api_agents.simple_agent.app import SimpleAgentVerifyResponse

    with app_of(target=dead_target, task="math", timeout_s=0.5, on_fault="mask") as app:
        row = app.post("/verify", json=rollout(RIGHT, expected_answer="4")).json()
    kept = SimpleAgentVerifyResponse.model_validate(row).model_dump()
    assert kept["_ng_failure_class"] == "assay_fault"
    assert kept["instance_config"] == {"mask_sample": True}


def test_a_row_that_is_verified_again_is_a_judgement_or_a_fault(
    app: TestClient, dead_target: str
) -> None:
    asked = rollout(RIGHT, expected_answer="4", instance_config={"seed": 1})
    with app_of(target=dead_target, task="math", timeout_s=0.5, on_fault="mask") as away:
        failed = away.post("/verify", json=asked).json()
        good = app.post("/verify", json=failed).json()
        assert good == app.post("/verify", json=asked).json()
        assert not {"mask_sample", *(name for name in good if "_ng_failure" in name)} & good.keys()
        again = away.post("/verify", json=good).json()
    assert not {"verdict", "extracted_answer", "reward_components"} & again.keys()
    assert again["_ng_failure_class"] == "assay_fault"


def test_by_default_a_fault_is_a_503(trouble: Trouble) -> None:
    """A masked row would count as 0 in its group's baseline under NeMo RL: `assay lab`."""
    with app_of(target=trouble.target, task="math", timeout_s=1.5) as app:
        answer = app.post("/verify", json=rollout(RIGHT, expected_answer=trouble.reference))
    assert answer.status_code == 503
    assert answer.json()["fault"]["reason"] == trouble.reason
    assert "reward" not in answer.json()


def test_a_wrong_setting_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_TARGET", raising=False)
    with pytest.raises(ConfigError, match="no address of a reward server"):
        app_of()
    with pytest.raises(ConfigError, match="with NeMo Gym choose one of: raise, mask"):
        app_of(target="127.0.0.1:1", on_fault="drop")
