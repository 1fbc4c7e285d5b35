"""An environment on OpenEnv's own server, asked by OpenEnv's own client."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.face_worlds import SUMS
from docs_support import blocks

pytest.importorskip("openenv.core.env_server", reason="see `make test-adapters`")

import httpx
import uvicorn
from openenv.core.generic_client import GenericEnvClient

from assay.environments.faces.openenv import create_assay_app

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    yield from served(create_assay_app(SUMS, turns=3), listening)


def served(app: Any, listening: socket.socket) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def call(a: Any, b: Any) -> dict[str, Any]:
    return {"calls": [{"name": "add", "arguments": {"a": a, "b": b}}]}


def test_an_episode_over_the_websocket(address: str) -> None:
    with GenericEnvClient(base_url=address).sync() as env:
        first = env.reset(a=2, b=3, episode_id="e1")
        assert first.observation["messages"] == [{"role": "user", "content": "What is 2 + 3?"}]
        [tool] = first.observation["tools"]
        assert tool["function"]["name"] == "add"
        assert (first.reward, first.done) == (None, False)
        stepped = env.step(call(2, 3))
        assert stepped.observation["messages"][0]["content"] == "5"
        assert (stepped.reward, stepped.done) == (0.25, False)
        assert env.state() == {"episode_id": "e1", "step_count": 1}
        stepped = env.step({"text": "It is 5."})
        assert (stepped.reward, stepped.done) == (1.0, True)
        assert stepped.observation["ending"] == "answered"
        with pytest.raises(RuntimeError, match="no turn is due"):
            env.step({"text": "5"})
        assert env.reset(a=1, b=1).observation["messages"][0]["content"] == "What is 1 + 1?"


def test_what_the_policy_cannot_call_is_told_to_it_and_turns_are_counted(address: str) -> None:
    with GenericEnvClient(base_url=address).sync() as env:
        env.reset(a=2, b=3)
        assert "integer" in env.step(call("x", 1)).observation["messages"][0]["content"]
        assert (
            "no tool"
            in env.step({"calls": [{"name": "rm", "arguments": {}}]}).observation["messages"][0][
                "content"
            ]
        )
        last = env.step(call(1, 1))
        assert (last.done, last.reward) == (True, 0.0)
        assert last.observation["ending"] == "turn-limit"


def test_clients_share_no_episode(address: str) -> None:
    with (
        GenericEnvClient(base_url=address).sync() as one,
        GenericEnvClient(base_url=address).sync() as other,
    ):
        one.reset(a=2, b=3)
        other.reset(a=20, b=30)
        assert one.step({"text": "5"}).reward == 1.0
        assert other.step({"text": "5"}).reward == 0.0


@pytest.mark.parametrize("turn", [call(13, 1), {"text": "judge"}])
def test_a_fault_is_an_error_and_no_reward(address: str, turn: dict[str, Any]) -> None:
    with GenericEnvClient(base_url=address).sync() as env:
        env.reset(a=2, b=3)
        with pytest.raises(RuntimeError, match="ENVIRONMENT_FAILED"):
            env.step(turn)
        with pytest.raises(RuntimeError, match="ENVIRONMENT_FAILED"):
            env.step({"text": "5"})
        assert env.reset(a=1, b=1).done is False
    with (
        GenericEnvClient(base_url=address).sync() as env,
        pytest.raises(RuntimeError, match="ENVIRONMENT_FAILED"),
    ):
        env.reset(a="x")


def test_the_schema_names_the_turn(address: str) -> None:
    schema = httpx.get(f"{address}/schema").json()
    assert set(schema["action"]["properties"]) >= {"text", "calls"}
    assert set(schema["observation"]["properties"]) >= {"messages", "tools", "ending", "reward"}


def test_the_pages_program_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = [one for one in blocks(Path(__file__).parents[2]) if one.needs == "openenv"]
    capsys.readouterr()
    exec(compile(block.text, str(block), "exec"), {"__name__": "docs"})
    assert capsys.readouterr().out == block.prints
