"""An environment as an MCP server, asked by the official client: stdio, HTTP, both protocols."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.lowlevel", reason="see `make test-adapters`")

import uvicorn
from mcp import Client, MCPError, StdioServerParameters

from assay.environments.faces.common import opened
from assay.environments.faces.mcp import INSTRUCTION, McpEpisodes, mcp_server
from assay.kit.errors import ConfigError
from faces_support import Sums

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

ROWS = [
    {"prompt": "Hello.", "terms": [2, 3], "name": "good"},
    {"prompt": "Hello.", "terms": [4, 4], "name": "other"},
    *({"prompt": "Hello.", "terms": [1], "break": where} for where in ("reset", "add", "reward")),
]
HERE = Path(__file__).resolve().parents[1]


def text_of(result: Any) -> str:
    [content] = result.content
    return str(content.text)


async def instruction_of(client: Any) -> str:
    [content] = (await client.read_resource(INSTRUCTION)).contents
    return str(content.text)


@asynccontextmanager
async def over_http(**given: Any) -> AsyncIterator[tuple[str, McpEpisodes]]:
    with opened(Sums) as world, socket.create_server(("127.0.0.1", 0)) as listening:
        episodes = McpEpisodes(world, ROWS, **given)
        app = mcp_server(episodes).streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", episodes
        finally:
            server.should_exit = True
            await serving


async def plays(client: Any) -> None:
    """An episode from its instruction to its reward, and another that is reset into."""
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["add", "echo", "reset", "finish"]
    assert await instruction_of(client) == "Hello. Add 2 and 3."
    assert text_of(await client.call_tool("add", {"a": 2, "b": 3})) == "5"
    refused = await client.call_tool("add", {"a": "two"})
    assert refused.is_error
    assert text_of(refused).startswith("error: add: a: ")
    earned = await client.call_tool("finish", {"answer": "5"})
    assert earned.structured_content == {"reward": 1.25, "ending": "answered"}
    assert text_of(await client.call_tool("add", {"a": 1})) == "error: the episode is over"
    assert text_of(await client.call_tool("reset", {"row": 1})) == "Hello. Add 4 and 4."
    wrong = await client.call_tool("finish", {"answer": "9"})
    assert wrong.structured_content == {"reward": 0.0, "ending": "answered"}


async def test_over_stdio(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    command = ["-m", "assay.environments.faces.mcp", f"{HERE}/faces_support.py:Sums"]
    server = StdioServerParameters(
        command=sys.executable,
        args=[*command, "--rows", str(rows), "--row", "0"],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    async with Client(server) as client:
        await plays(client)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_http_a_url_names_the_episode(mode: str) -> None:
    async with over_http() as (url, _), Client(f"{url}?episode=one&row=0", mode=mode) as client:
        await plays(client)


async def test_sessions_are_episodes_of_their_own_and_a_missing_name_is_said() -> None:
    before = len(Sums.closed)
    async with over_http() as (url, _):
        async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as two:
            assert await instruction_of(one) == "Hello. Add 2 and 3."
            assert await instruction_of(two) == "Hello. Add 4 and 4."  # the next row
            await two.call_tool("finish", {"answer": "8"})
            assert text_of(await one.call_tool("add", {"a": 1, "b": 1})) == "2"  # it goes on
        async with Client(url) as client:  # a protocol without sessions
            with pytest.raises(MCPError, match="name the episode in the URL"):
                await client.call_tool("add", {"a": 1})
    assert len(Sums.closed) - before == 2  # the server's end abandons what goes on


@pytest.mark.parametrize(("row", "where"), [(2, "reset"), (3, "add"), (4, "reward")])
async def test_a_fault_is_an_error_without_a_reward(row: int, where: str) -> None:
    before = Sums.begun
    async with over_http(row=row) as (url, _), Client(f"{url}?episode=a", mode="auto") as client:
        if where == "reset":
            with pytest.raises(MCPError, match="ENVIRONMENT_FAILED"):
                await instruction_of(client)
        called = await client.call_tool("add", {"a": 1})
        assert called.is_error == (where != "reward")
        earned = await client.call_tool("finish", {"answer": "1"})
        assert earned.is_error
        assert earned.structured_content == {"fault": "ENVIRONMENT_FAILED"}
        assert Sums.begun - before == 1  # what broke is not begun anew
        assert "is broken" not in text_of(earned)  # a message may quote the row


async def test_what_a_client_writes_breaks_nothing() -> None:
    async with over_http(most=3) as (url, episodes):
        async with Client(f"{url}?episode=a&row=0", mode="auto") as client:
            odd: list[tuple[str, Any]] = [
                ("nothing", {}),
                ("add", {"a": 10**9}),
                ("add", {"a": [1] * 1000}),
                ("__init__", {}),
                ("reset", {"row": 99}),
                ("reset", {"row": True}),
                ("reset", {"row": -1}),
            ]
            for name, arguments in odd:
                result = await client.call_tool(name, arguments)
                assert result.is_error
                assert text_of(result).startswith("error: ")
            earned = await client.call_tool("finish", {"answer": "5"})
            assert earned.structured_content["reward"] == 1.0
            half = await episodes.call("named h", "echo", {"text": "\ud800x"}, 0)
            assert half.model_dump_json()
        for query in ("episode=a&row=x", "episode=" + "a" * 300):
            async with Client(f"{url}?{query}", mode="auto") as client:
                with pytest.raises(MCPError, match=r"row=|at most 200"):
                    await client.call_tool("add", {"a": 1})
        async with Client(f"{url}?episode=b", mode="auto") as client:
            await client.call_tool("add", {"a": 1})
        async with Client(f"{url}?episode=c", mode="auto") as client:
            assert "no more may be" in text_of(await client.call_tool("add", {"a": 1}))
            await episodes.sweep(0.0)
            assert text_of(await client.call_tool("add", {"a": 1})) == "1"


async def test_without_control_a_policy_neither_resets_nor_learns_its_reward() -> None:
    async with over_http(control=False) as (url, episodes):
        async with Client(f"{url}?episode=a&row=0", mode="auto") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "echo"]
            for name in ("reset", "finish"):
                assert "there is no tool" in text_of(await client.call_tool(name, {}))
        outcome = await episodes.end("named a", "5")
        assert outcome is not None
        assert outcome.reward_of("policy") == 1.0
        assert await episodes.end("named a") is None


def test_an_environment_needs_rows_and_names_that_are_free() -> None:
    with opened(Sums) as world, pytest.raises(ConfigError, match="needs rows"):
        McpEpisodes(world, [])
