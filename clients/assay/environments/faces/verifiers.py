"""An environment as a taskset, an environment and a toolset of `verifiers` (0.4: `verifiers.v1`).

verifiers finds a taskset by a module's name, so write one of three lines, `sums_world.py`:

    from assay.environments.faces.verifiers import EpisodesEnv, EpisodesTaskset

    __all__ = ["EpisodesEnv", "EpisodesTaskset"]

The episode lives in the process of verifiers' environment, which plays the user; the
tools' server, a process of its own, sends their calls there.

A fault raises `FaultError` while the rollout is open: verifiers marks the trace (`has_error`) and
records no reward; prime-rl leaves it out. A limit is the policy's doing, and is rewarded.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import verifiers.v1 as vf

from assay.environments.endings import Ending
from assay.environments.episode import EpisodeLimits
from assay.environments.faces.common import EpisodeHandle, OpenedEnvironment, opened, reward_of
from assay.environments.faces.relay import call_relayed, relayed, sendable
from assay.environments.registry import environment_of
from assay.environments.tools import ToolSpec, tools_of
from assay.environments.types import EpisodeMessage, Observation
from assay.kit.errors import ConfigError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

__all__ = ["EpisodesEnv", "EpisodesTaskset"]


class EpisodesState(vf.State):
    """Where the rollout's episode is reached; empty before it begins."""

    address: str = ""


class EpisodesToolsetConfig(vf.ToolsetConfig):
    """Whose tools are served; `call_timeout_s` is of one call."""

    environment: str = ""
    call_timeout_s: float = 600.0


class EpisodesTaskConfig(vf.TaskConfig):
    """Of each task."""

    tools: EpisodesToolsetConfig = EpisodesToolsetConfig()


class EpisodesTasksetConfig(vf.TasksetConfig):
    """The environment, its settings and its rows.

    Attributes:
        environment: an installed one's name, `FILE.py:Class` or `package.module:Class`.
        settings: of the environment.
        rows: a file of JSONL, a row for each task.
        target, verifier, task_name: of the reward services; else ASSAY_TARGET, ...
    """

    environment: str = ""
    settings: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies it
    rows: str = ""
    target: str = ""
    verifier: str = ""
    task_name: str = ""
    task: EpisodesTaskConfig = EpisodesTaskConfig()


class EpisodesData(vf.TaskData):
    """A row; the prompt is the environment's first observation, which comes later."""

    row: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies it


class EpisodesToolset(vf.Toolset[EpisodesToolsetConfig, EpisodesState]):
    """The server of the environment's tools."""

    TOOL_PREFIX = None

    def register(self, mcp: MCPServer) -> None:
        """Adds the tools, each of which sends its calls to the episode."""
        kind = environment_of(self.config.environment)
        for name, spec in tools_of(kind).items():
            sent = functools.partial(self._send, name)
            described = _described(sent, spec, getattr(kind, name))
            mcp.add_tool(self._with_state(described), name=name, description=spec.description)

    async def _send(self, name: str, /, **arguments: Any) -> str:
        if not self.state.address:
            return "error: there is no episode here"
        address, timeout_s = self.state.address, self.config.call_timeout_s
        return await asyncio.to_thread(call_relayed, address, name, arguments, timeout_s)


class EpisodesTask(vf.Task[EpisodesData, EpisodesState, EpisodesTaskConfig]):
    """A row of the environment; `EpisodesEnv` plays it."""

    @classmethod
    def toolsets(cls, config: EpisodesTaskConfig) -> list[vf.Toolset]:
        """The environment's tools, if it has any."""
        named = config.tools.environment
        return [EpisodesToolset(config.tools)] if named and tools_of(environment_of(named)) else []


class EpisodesTaskset(vf.Taskset[EpisodesTask, EpisodesTasksetConfig]):
    """The rows as tasks."""

    def __init__(self, config: EpisodesTasksetConfig) -> None:
        tools = config.task.tools.model_copy(update={"environment": config.environment})
        task = config.task.model_copy(update={"tools": tools})
        super().__init__(config.model_copy(update={"task": task}))

    def load(self) -> Iterator[EpisodesTask]:
        """A task for each row of the file.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            text = Path(self.config.rows).read_text(encoding="utf-8")
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise ConfigError(f"rows {self.config.rows!r}: {error}") from error
        for row in rows:
            yield EpisodesTask(EpisodesData(prompt=None, row=row), self.config.task)


class EpisodesEnvConfig(vf.EnvConfig):
    """Its one agent, and the limits of an episode; 0 for none."""

    agent: vf.AgentConfig = vf.AgentConfig()
    turns: int = 0
    seconds: float = 0.0


class EpisodesEnv(vf.Env[EpisodesEnvConfig]):
    """Plays the user of an episode: what the environment says is what the policy reads."""

    _world: OpenedEnvironment | None = None

    async def start(self) -> None:
        """Opens the environment."""
        given = self.taskset.config
        options = {
            "target": given.target,
            "verifier": given.verifier,
            "task": given.task_name,
        }
        chosen = {name: value for name, value in options.items() if value}
        limits = EpisodeLimits(self.config.turns, self.config.seconds)
        self._world = await asyncio.to_thread(
            functools.partial(opened, given.environment, given.settings, limits=limits, **chosen)
        )

    async def stop(self) -> None:
        """Closes it."""
        world, self._world = self._world, None
        if world is not None:
            await asyncio.to_thread(world.close)

    async def run(self, task: Any, agents: Any) -> None:
        """One episode.

        Raises:
            FaultError: the environment, a service or the rollout broke: there is no reward.
        """
        if self._world is None:
            await self.start()
        assert self._world is not None  # noqa: S101  # as it was started
        handle = self._world.episode()
        try:
            async with agents.agent.interaction(task) as interaction:
                with relayed(handle) as address:
                    interaction.trace.state.address = address
                    await _played(handle, task.data.row, interaction)
                await _settled(handle, interaction.trace)
        finally:
            await handle.aend(Ending.ABANDONED)


async def _played(handle: EpisodeHandle, row: Mapping[str, Any], interaction: Any) -> None:
    observation: Observation | None = await handle.abegin(row)
    while observation is not None:
        segment = await interaction.turn(_messages(observation.messages))
        if segment.terminated or handle.observation is None:
            return
        observation = await handle.asay(segment.last_reply)


async def _settled(handle: EpisodeHandle, trace: Any) -> None:
    """Records what the episode earned; a rollout that broke earns nothing."""
    if trace.has_error and trace.errors:
        return  # the trace says so itself
    stopped = trace.stop_condition
    ending = Ending.TOKEN_LIMIT if stopped and "token" in stopped else Ending.TURN_LIMIT
    if trace.is_timeout:
        ending = Ending.TIME_LIMIT
    outcome = await handle.aend(ending)
    trace.record_reward("assay", reward_of(outcome))
    trace.record_metrics({"assay/turns": float(outcome.turns)})
    judgement = outcome.result.judgement
    if judgement is not None:
        trace.record_metrics({f"assay/{part.name}": part.score for part in judgement.components})


def _messages(messages: Sequence[EpisodeMessage]) -> list[Any]:
    kinds = {"system": vf.SystemMessage, "user": vf.UserMessage}
    return [kinds.get(one.role, vf.UserMessage)(content=sendable(one.content)) for one in messages]


def _described(sent: Callable[..., Any], spec: ToolSpec, method: Any) -> Callable[..., Any]:
    """A function with the method's parameters, which is how verifiers reads a tool's schema."""

    async def call(**arguments: Any) -> str:
        answer: str = await sent(**arguments)
        return answer

    hints = typing.get_type_hints(method)
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    parameters = [
        one.replace(
            kind=inspect.Parameter.KEYWORD_ONLY,
            annotation=_annotated(hints[one.name], properties[one.name].get("description")),
        )
        for one in list(inspect.signature(method).parameters.values())[1:]
    ]
    call.__name__ = call.__qualname__ = spec.name
    call.__doc__ = spec.description
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": str}
    call.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return call


def _annotated(hint: Any, description: str | None) -> Any:
    from pydantic import Field  # noqa: PLC0415

    return typing.Annotated[hint, Field(description=description)] if description else hint


if __name__ == "__main__":
    EpisodesToolset.run()
