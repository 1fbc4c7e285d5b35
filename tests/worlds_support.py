"""Episodes with scripted policies, for tests of environments over real services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.environments import EpisodeLimits, EpisodeOutcome, Reply, ToolCall
from assay.environments.cache import ToolCache
from assay.environments.environment import Environment, Services
from assay.environments.episode import Episode
from assay.environments.registry import settings_of

Script = Sequence[ToolCall | Sequence[ToolCall] | str]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


async def play(
    kind: type[Environment],
    row: Mapping[str, Any],
    turns: Script,
    *,
    shared: Any,
    services: Services | None = None,
    settings: Mapping[str, Any] | None = None,
    limits: EpisodeLimits | None = None,
    cache: ToolCache | None = None,
) -> tuple[EpisodeOutcome, list[str]]:
    """The outcome of an episode, and what the policy read in it."""
    environment = kind(settings_of(kind, settings or {}), shared, services)
    runner = None if cache is None else cache.runner(environment)
    episode = Episode(environment, limits or EpisodeLimits(seconds=60), runner=runner)
    read: list[str] = []
    observation = await episode.begin(row)
    for turn in turns:
        if observation is None:
            break
        read += [message.content for message in observation.messages]
        if isinstance(turn, str):
            reply = Reply(turn, answer=turn)
        else:
            calls = (turn,) if isinstance(turn, ToolCall) else tuple(turn)
            reply = Reply("<call>", calls=calls)
        observation = await episode.take(reply)
    if observation is not None:
        read += [message.content for message in observation.messages]
    elif episode.steps and episode.steps[-1].calls:
        read += [one.result.text for one in episode.steps[-1].calls]
    return await episode.end(), read


def named(name: str) -> list[int]:
    """The processes of this machine that call themselves so."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == name:
                found.append(int(folder.name))
        except OSError:
            continue
    return found
