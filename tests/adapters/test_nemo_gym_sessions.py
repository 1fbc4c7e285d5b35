"""NeMo Gym's own agent with tools in a reward server's sessions: state, faults, what is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import process_tree
import sandbox_service
from assay.clients.sessions import AsyncSessionClient
from http_support import serving

pytest.importorskip("nemo_gym", reason="see `make test-adapters`")

import aiohttp
import uvicorn
from nemo_gym import server_utils
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.server_utils import BaseServerConfig, ServerClient
from omegaconf import OmegaConf
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

Policy = Callable[[list[str]], dict[str, Any] | str]
"""Given the tools' outputs so far: arguments, or a program, of the next call by its name, or the
last words."""


def rollout(*tools: str) -> dict[str, Any]:
    """A row, which names the tools that the policy has."""
    described = [
        {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False}
        for name in tools
    ]
    asked = {"input": [{"role": "user", "content": "6 * 7?"}], "tools": described}
    return {"responses_create_params": asked, "expected_answer": "42"}


def policy_model(policy: Policy) -> Starlette:
    """A server of models whose model is a function."""

    async def respond(request: Request) -> JSONResponse:
        given = (await request.json())["input"]
        outputs = [item["output"] for item in given if item.get("type") == "function_call_output"]
        said = policy(outputs)
        if isinstance(said, str):
            text = {"type": "output_text", "text": said, "annotations": []}
            item: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant",
                                    "status": "completed", "content": [text]}  # fmt: skip
        else:
            [(name, given)] = said.items()
            arguments = given if isinstance(given, dict) else {"code": given}
            item = {"type": "function_call", "call_id": str(len(outputs)), "name": name,
                    "arguments": json.dumps(arguments)}  # fmt: skip
        return JSONResponse({"id": "r", "created_at": 0.0, "model": "m", "object": "response",
                             "output": [item], "parallel_tool_calls": False,
                             "tool_choice": "auto", "tools": []})  # fmt: skip

    return Starlette(routes=[Route("/v1/responses", respond, methods=["POST"])])


@asynccontextmanager
async def on_a_port(app: Any) -> AsyncIterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        running = asyncio.create_task(server.serve([listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def gym(address: str, policy: Policy) -> AsyncIterator[str]:
    """Gym's simple agent between the model and a resources server; the agent's address."""
    config = SimpleAgentConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="agent", max_steps=8,
        resources_server=ResourcesServerRef(type="resources_servers", name="assay"),
        model_server=ModelServerRef(type="responses_api_models", name="policy"),
    )  # fmt: skip
    host, _, port = address.rpartition(":")
    servers = {"assay": {"resources_servers": {"assay": {"host": host, "port": int(port)}}}}
    client = ServerClient(
        head_server_config=BaseServerConfig(host="127.0.0.1", port=1),
        global_config_dict=OmegaConf.create(servers),
    )
    app = SimpleAgent(config=config, server_client=client).setup_webserver()
    server_utils._GLOBAL_AIOHTTP_CLIENT = None
    aio = server_utils.set_global_aiohttp_client(server_utils.GlobalAIOHTTPAsyncClientConfig())
    try:
        async with on_a_port(policy_model(policy)) as model, on_a_port(app) as agent:
            places = {"policy": ("responses_api_models", model),
                      "agent": ("responses_api_agents", agent)}  # fmt: skip
            for name, (kind, at) in places.items():
                client.global_config_dict[name] = {kind: {name: {"host": "127.0.0.1", "port": at}}}
            yield f"http://127.0.0.1:{agent}"
    finally:
        await aio.close()
        server_utils._GLOBAL_AIOHTTP_CLIENT = None


async def run(agent: str, row: dict[str, Any]) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{agent}/run", json=row) as response,
    ):
        assert response.status == 200, await response.text()
        found: dict[str, Any] = await response.json()
        return found


def outputs_of(row: dict[str, Any]) -> list[str]:
    items = row["response"]["output"]
    return [item["output"] for item in items if item["type"] == "function_call_output"]


async def test_a_rollouts_calls_share_their_state_and_rollouts_none() -> None:
    def policy(outputs: list[str]) -> dict[str, str] | str:
        match len(outputs):
            case 0:
                return {"execute_python": "x = globals().get('x', 41)\nprint('x is', x)"}
            case 1:
                return {"stateful_python_code_exec": "x += 1\nx"}
            case 2:
                return {"execute_python": "1 / 0"}
        return outputs[1]

    row = rollout("execute_python", "stateful_python_code_exec")
    with sandbox_service.running() as (address, _):
        async with (
            AsyncSessionClient(address) as sessions,
            serving(sessions=sessions, verifier="exact") as facade,
            gym(facade.address, policy) as agent,
        ):
            rows = await asyncio.gather(*(run(agent, row) for _ in range(4)))
            assert (await sessions.describe()).open == 0, "each /verify closes its session"
    for found in rows:
        first, second, third = outputs_of(found)
        assert json.loads(first) == {"success": True, "stdout": "x is 41\n", "stderr": "",
                                     "error_message": None, "result": None}  # fmt: skip
        assert second == "42"
        failed = json.loads(third)
        assert (failed["success"], failed["error_message"]) == (
            False,
            "ZeroDivisionError: division by zero",
        )
        assert (found["reward"], "_ng_failure_class" in found) == (1.0, False)


async def test_a_session_that_the_program_ends_is_its_own_doing() -> None:
    def policy(outputs: list[str]) -> dict[str, str] | str:
        code = ["x = 1", "import os; os._exit(3)", "print('x' in globals())"]
        return {"execute_python": code[len(outputs)]} if len(outputs) < 3 else "42"

    with sandbox_service.running() as (address, _):
        async with (
            AsyncSessionClient(address) as sessions,
            serving(sessions=sessions, verifier="exact") as facade,
            gym(facade.address, policy) as agent,
        ):
            found = await run(agent, rollout("execute_python"))
    _, ended, after = map(json.loads, outputs_of(found))
    assert (ended["success"], "begins anew" in ended["error_message"]) == (False, True)
    assert after["stdout"] == "False\n"
    assert found["reward"] == 1.0


async def test_a_lost_session_is_a_failed_row_whatever_the_policy_says() -> None:
    with sandbox_service.running() as (address, sandbox):

        def policy(outputs: list[str]) -> dict[str, str] | str:
            if len(outputs) == 1:
                for pid in process_tree.descendants(sandbox.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            return {"execute_python": "x = 1"} if len(outputs) < 3 else "42"

        async with (
            AsyncSessionClient(address) as sessions,
            serving(sessions=sessions, verifier="exact", mask_faults=True) as facade,
            gym(facade.address, policy) as agent,
        ):
            found = await run(agent, rollout("execute_python"))
    outputs = outputs_of(found)
    assert json.loads(outputs[0])["success"] is True
    assert [json.loads(output)["reason"] for output in outputs[1:]] == ["SESSION_LOST"] * 2
    assert found["reward"] == 0.0
    assert found["_ng_failure_judge_error"].startswith("SESSION_LOST")
    assert (found["mask_sample"], found["instance_config"]) == (True, {"mask_sample": True})
    assert "_ng_failure_terminal" not in found


async def test_a_row_without_our_tools_takes_no_place() -> None:
    with sandbox_service.running() as (address, _):
        async with (
            AsyncSessionClient(address) as sessions,
            serving(sessions=sessions, verifier="exact") as facade,
        ):
            for tools, places in (((), 0), (("another",), 0), (("execute_python",), 1)):
                assert (await facade.post("/seed_session", rollout(*tools))).status == 200
                assert (await sessions.describe()).open == places
