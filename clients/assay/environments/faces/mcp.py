"""An environment as an MCP server (`mcp` 2.3), over stdio or streamable HTTP.

    python -m assay.environments.faces.mcp sums.py:Sums --rows rows.jsonl            # stdio
    python -m assay.environments.faces.mcp sums.py:Sums --rows rows.jsonl --http 8765

A connection has one episode. Over HTTP a URL may name it (`/mcp?episode=NAME&row=3`), and must for
clients of 2026-07-28 and later, which have no sessions. Rows are the operator's: no client sends or
sees one. `assay://episode/instruction` is what the policy reads first.

Unless `control` is off, `reset(row)` and `finish(answer)` are tools for who trains. A refusal is a
text with isError; a fault is one too, and `finish` then gives no reward.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from assay.clients.trainers.common.faults import FaultError
from assay.clients.types import Fault
from assay.environments.endings import Ending
from assay.environments.faces.common import EpisodeHandle, OpenedEnvironment, opened, reward_of
from assay.environments.faces.relay import sendable
from assay.environments.types import EpisodeOutcome
from assay.kit.errors import ConfigError

__all__ = ["INSTRUCTION", "McpEpisodes", "mcp_server"]

INSTRUCTION = "assay://episode/instruction"
"""The resource that holds what the policy reads first."""
IDLE_S = 900.0
MOST_EPISODES = 1024
_MOST_NAME = 200
_RESET = types.Tool(
    name="reset",
    description="For who trains: begins a new episode; the one before is abandoned.",
    input_schema={
        "type": "object",
        "properties": {
            "row": {"type": "integer", "description": "Number of the row, from 0; else the next."}
        },
    },
)
_FINISH = types.Tool(
    name="finish",
    description="For who trains: ends the episode with the policy's answer; what it earned.",
    input_schema={
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "The policy's last answer."}},
    },
)


class McpEpisodes:
    """The episodes of an MCP server, by the names of their connections.

    Args:
        world: the environment, open.
        rows: of the episodes, at least one.
        row: of an episode that nobody gave another; else the next.
        control: `reset` and `finish` are offered.
        idle_s: seconds without a request after which an episode is abandoned.
        most: episodes at a time.

    Raises:
        ConfigError: there is no row, or a tool's name is taken.
    """

    def __init__(
        self,
        world: OpenedEnvironment,
        rows: Sequence[Mapping[str, Any]],
        *,
        row: int | None = None,
        control: bool = True,
        idle_s: float = IDLE_S,
        most: int = MOST_EPISODES,
    ) -> None:
        self.world = world
        self.rows = list(rows)
        self.row = row
        self.control = control
        self._idle_s = idle_s
        self._most = most
        self._next = itertools.count()
        self._episodes: dict[str, _Held] = {}
        taken = {"reset", "finish"} & set(world.tools) if control else set()
        if not self.rows:
            raise ConfigError("an environment's server needs rows, at least one")
        if taken:
            raise ConfigError(
                f"the environment has a tool {min(taken)!r} of its own; turn control off"
            )

    def tools(self) -> list[types.Tool]:
        """What a client may call."""
        found = [
            types.Tool(name=name, description=spec.description, input_schema=dict(spec.parameters))
            for name, spec in self.world.tools.items()
        ]
        return [*found, _RESET, _FINISH] if self.control else found

    async def instruction(self, name: str, row: int | None = None) -> str:
        """What the policy of this episode reads first; begins it.

        Raises:
            FaultError: the environment could not begin.
        """
        held = await self._held(name, row)
        async with held.lock:
            return await self._begun(held)

    async def call(
        self, name: str, tool: str, arguments: Mapping[str, Any], row: int | None = None
    ) -> types.CallToolResult:
        """The result of a call; nothing that an environment does raises here."""
        try:
            if self.control and tool == "reset":
                return await self._reset(name, arguments)
            held = await self._held(name, row)
            async with held.lock:
                if self.control and tool == "finish":
                    return _earned(await self._finished(held, arguments.get("answer")))
                await self._begun(held)
                text = await held.handle.acall_tool(tool, dict(arguments))
                steps = held.handle.episode.steps
                refused = bool(steps and steps[-1].calls and steps[-1].calls[-1].refused)
                return _told(text, is_error=refused)
        except FaultError as error:
            return _fault(error.fault)
        except ConfigError as error:
            return _told(f"error: {error}", is_error=True)

    async def end(self, name: str, answer: str | None = None) -> EpisodeOutcome | None:
        """Ends an episode and forgets it; None where there is none."""
        held = self._episodes.pop(name, None)
        if held is None:
            return None
        async with held.lock:
            return await self._finished(held, answer)

    async def sweep(self, idle_s: float | None = None) -> int:
        """Abandons what was idle too long; how many that were."""
        limit = self._idle_s if idle_s is None else idle_s
        now = time.monotonic()
        gone = [name for name, one in self._episodes.items() if now - one.used_s >= limit]
        for name in gone:
            await self._episodes.pop(name).handle.aend(Ending.ABANDONED)
        return len(gone)

    async def _reset(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        given = arguments.get("row")
        if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
            raise ConfigError("row is no whole number")
        row = self._row(given)
        before = self._episodes.pop(name, None)
        if before is not None:
            async with before.lock:
                await before.handle.aend(Ending.ABANDONED)
        return _told(await self.instruction(name, row))

    async def _held(self, name: str, row: int | None) -> _Held:
        held = self._episodes.get(name)
        if held is None:
            await self.sweep()
            if len(self._episodes) >= self._most:
                raise ConfigError(f"{self._most} episodes are open, and no more may be")
            held = _Held(self.world.episode(), self._row(row))
            held = self._episodes.setdefault(name, held)
        held.used_s = time.monotonic()
        return held

    def _row(self, given: int | None) -> int:
        chosen = self.row if given is None else given
        if chosen is None:
            chosen = next(self._next) % len(self.rows)
        if not 0 <= chosen < len(self.rows):
            raise ConfigError(f"there is no row {chosen}; there are {len(self.rows)}, from 0")
        return chosen

    async def _begun(self, held: _Held) -> str:
        if held.broken is not None:
            raise FaultError("", held.broken)
        if held.instruction is None:
            try:
                first = await held.handle.abegin(self.rows[held.row])
            except FaultError as error:
                held.broken = error.fault
                raise
            held.instruction = "\n\n".join(one.content for one in first.messages)
        return held.instruction

    async def _finished(self, held: _Held, answer: Any) -> EpisodeOutcome:
        if held.handle.outcome is None:
            await self._begun(held)
            if isinstance(answer, str) and held.handle.observation is not None:
                await held.handle.asay(answer)
        return await held.handle.aend(Ending.TURN_LIMIT)


class _Held:
    """An episode, and when a client last asked for it."""

    def __init__(self, handle: EpisodeHandle, row: int) -> None:
        self.handle = handle
        self.row = row
        self.instruction: str | None = None
        self.broken: Fault | None = None
        self.used_s = time.monotonic()
        self.lock = asyncio.Lock()


def mcp_server(episodes: McpEpisodes) -> Server[Any]:
    """The low-level server of the `mcp` package; `streamable_http_app()` or `run` serve it.

    It closes the episodes when it stops; the environment stays open.
    """
    alone = secrets.token_hex(8)

    async def tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=episodes.tools())

    async def call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        name, row = _named(ctx, alone)
        return await episodes.call(name, params.name, params.arguments or {}, row)

    async def resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        said = "What the policy reads first."
        one = types.Resource(
            uri=INSTRUCTION, name="instruction", description=said, mime_type="text/plain"
        )
        return types.ListResourcesResult(resources=[one])

    async def read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri != INSTRUCTION:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri[:80]!r}")
        name, row = _named(ctx, alone)
        try:
            text = await episodes.instruction(name, row)
        except FaultError as error:
            raise MCPError(types.INTERNAL_ERROR, f"fault: {error.fault.reason}") from error
        except ConfigError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        content = types.TextResourceContents(uri=INSTRUCTION, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content], cache_scope="private", ttl_ms=0)

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {}
        finally:
            await episodes.sweep(0.0)

    return Server(
        episodes.world.kind.name or episodes.world.kind.__name__,
        instructions=f"Read {INSTRUCTION} first.",
        lifespan=lifespan,
        on_list_tools=tools,
        on_call_tool=call,
        on_list_resources=resources,
        on_read_resource=read,
    )


def _named(ctx: ServerRequestContext[Any, Any], alone: str) -> tuple[str, int | None]:
    """The episode's name and row that a request asks for.

    Raises:
        MCPError: it names none, and has no session.
    """
    if ctx.request is None:
        return alone, None  # stdio: there is one connection
    query = ctx.request.query_params
    row = query.get("row", "")
    if row and not (row.isascii() and row.isdecimal() and len(row) < 10):
        raise MCPError(types.INVALID_PARAMS, "row= of the URL is no whole number")
    name = query.get("episode", "")
    session = ctx.request.headers.get("mcp-session-id", "")
    if not name and not session:
        raise MCPError(
            types.INVALID_PARAMS,
            "this protocol has no sessions: name the episode in the URL, /mcp?episode=NAME",
        )
    if len(name) > _MOST_NAME:
        raise MCPError(types.INVALID_PARAMS, f"an episode's name has at most {_MOST_NAME} letters")
    return f"named {name}" if name else f"session {session}", int(row) if row else None


def _told(text: str, *, is_error: bool = False, **facts: Any) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=sendable(text))],
        structured_content=facts or None,
        is_error=is_error,
    )


def _fault(fault: Fault) -> types.CallToolResult:
    """A fault: its reason, and no reward. The message stays here: it may quote the row."""
    text = f"fault: {fault.reason}; the episode is over and earns nothing"
    return _told(text, is_error=True, fault=fault.reason)


def _earned(outcome: EpisodeOutcome) -> types.CallToolResult:
    try:
        reward = reward_of(outcome)
    except FaultError as error:
        return _fault(error.fault)
    ending = str(outcome.ending)
    return _told(f"reward {reward:g} ({ending})", reward=reward, ending=ending)


def _rows(path: str) -> list[dict[str, Any]]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"--rows {path}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves an environment on stdio, or on 127.0.0.1 with `--http PORT`."""
    parser = argparse.ArgumentParser(prog="python -m assay.environments.faces.mcp")
    parser.add_argument("environment", help="an installed one's name, or FILE.py:Class")
    parser.add_argument("--rows", required=True, help="JSONL, a row for each episode")
    parser.add_argument("--row", type=int, help="of every episode; else one after the other")
    parser.add_argument("--settings", default="{}", help="of the environment, as JSON")
    parser.add_argument("--http", type=int, metavar="PORT", help="0 for a free one; else stdio")
    parser.add_argument("--no-control", action="store_true", help="offer no reset and no finish")
    for name in ("target", "verifier", "task"):
        parser.add_argument(f"--{name}", help="of the reward services; else ASSAY_*")
    given = parser.parse_args(arguments)
    try:
        options = {name: getattr(given, name) for name in ("target", "verifier", "task")}
        chosen = {name: value for name, value in options.items() if value}
        settings = json.loads(given.settings)
        with opened(given.environment, settings, **chosen) as world:
            control = not given.no_control
            episodes = McpEpisodes(world, _rows(given.rows), row=given.row, control=control)
            asyncio.run(_serve(mcp_server(episodes), given.http))
    except (ConfigError, ValueError) as error:
        parser.error(str(error))


async def _serve(server: Server[Any], port: int | None) -> None:
    if port is None:
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())
        return
    import uvicorn  # noqa: PLC0415  # of the mcp package

    settings = uvicorn.Config(server.streamable_http_app(), port=port, log_level="warning")
    await uvicorn.Server(settings).serve()


if __name__ == "__main__":
    main()
