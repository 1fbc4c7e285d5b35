"""An environment on OpenEnv's server (openenv 0.10): HTTP, WebSocket, `reset`, `step`, `state`.

    from assay.environments.faces.openenv import create_assay_app

    app = create_assay_app("sums.py:Sums", target="127.0.0.1:50051")     # uvicorn module:app

The keywords of `reset` are the row. A fault is an error of the call: a client that trains sees no
reward; see docs/trainers/openenv.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import openenv.core.env_server as openenv
from pydantic import BaseModel, Field

from assay.environments.episode import EpisodeLimits, offered
from assay.environments.faces.common import EpisodeHandle, OpenedEnvironment, chat, opened
from assay.environments.types import Observation, Reply, ToolCall


class OpenEnvCall(BaseModel):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] | str | None = None
    id: str = ""


class OpenEnvAction(openenv.Action):
    """A turn: its text, and the calls that were read from it."""

    text: str = ""
    calls: list[OpenEnvCall] = Field(default_factory=list)


class OpenEnvObservation(openenv.Observation):
    """What the policy reads next; `tools` are the schemas, once, at the beginning.

    `reward` is the turn's own, and the last one has the episode's in it; None for none.
    """

    messages: list[dict[str, Any]] = Field(default_factory=list)
    tools: list[dict[str, Any]] = Field(default_factory=list)
    ending: str = ""


class OpenEnvFace(openenv.Environment[OpenEnvAction, OpenEnvObservation, openenv.State]):
    """One client's environment: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, world: OpenedEnvironment) -> None:
        super().__init__()
        self._world = world
        self._handle: EpisodeHandle | None = None
        self._state = openenv.State(episode_id=None, step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **row: Any
    ) -> OpenEnvObservation:
        """Begins an episode of the row; see reset_async."""
        self.close()
        self._handle = self._world.episode()
        return self._begun(self._handle, self._handle.begin(row), episode_id)

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **row: Any
    ) -> OpenEnvObservation:
        """Begins an episode of the row.

        Raises:
            FaultError: the environment could not begin.
        """
        await self._ended()
        self._handle = self._world.episode()
        return self._begun(self._handle, await self._handle.abegin(row), episode_id)

    def step(
        self, action: OpenEnvAction, timeout_s: float | None = None, **_: Any
    ) -> OpenEnvObservation:
        """Takes a turn; see step_async."""
        handle = self._due()
        return self._stepped(handle, *handle.step(_reply(action)))

    async def step_async(
        self, action: OpenEnvAction, timeout_s: float | None = None, **_: Any
    ) -> OpenEnvObservation:
        """Takes a turn.

        Raises:
            FaultError: the environment broke, or what the episode earned is not known.
            RuntimeError: there is no episode, or it is over.
        """
        handle = self._due()
        return self._stepped(handle, *(await handle.astep(_reply(action))))

    @property
    def state(self) -> openenv.State:
        """The episode's id, and its turns so far."""
        return self._state

    def close(self) -> None:
        """Ends the episode that goes on, if one does."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.end()

    async def _ended(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.aend()

    def _due(self) -> EpisodeHandle:
        if self._handle is None:
            raise RuntimeError("no episode has begun; reset first")
        return self._handle

    def _begun(
        self, handle: EpisodeHandle, first: Observation, episode_id: str | None
    ) -> OpenEnvObservation:
        self._state = openenv.State(episode_id=episode_id or uuid4().hex, step_count=0)
        tools = list(offered(handle.episode, first))
        return OpenEnvObservation(messages=chat(first.messages), tools=tools)

    def _stepped(
        self, handle: EpisodeHandle, following: Observation | None, reward: float | None
    ) -> OpenEnvObservation:
        self._state.step_count += 1
        messages = chat(following.messages) if following else []
        ending = str(handle.episode.ending or "")
        return OpenEnvObservation(
            messages=messages, reward=reward, done=following is None, ending=ending
        )


def _reply(action: OpenEnvAction) -> Reply:
    calls = tuple(ToolCall(one.name, one.arguments, one.id) for one in action.calls)
    return Reply(action.text, calls, "" if calls else action.text)


def create_assay_app(
    environment: str,
    settings: Mapping[str, Any] | None = None,
    *,
    turns: int = 0,
    seconds: float = 0.0,
    max_concurrent_envs: int = 64,
    **options: Any,
) -> Any:
    """OpenEnv's FastAPI app of an environment.

    Args:
        environment: an installed one's name, `FILE.py:Class` or `package.module:Class`.
        settings: of the environment.
        turns: of an episode; 0 for no limit.
        seconds: of an episode; 0 for no limit.
        max_concurrent_envs: episodes at once.
        options: `target`, `task`, ...: see `common.opened`.

    Raises:
        ConfigError: the environment cannot be opened.
    """
    world = opened(environment, settings, limits=EpisodeLimits(turns, seconds), **options)
    return openenv.create_app(
        lambda: OpenEnvFace(world),
        OpenEnvAction,
        OpenEnvObservation,
        env_name=world.kind.name,
        max_concurrent_envs=max_concurrent_envs,
    )
