"""An environment in SkyRL (skyrl-gym 0.4), registered where SkyRL's generator runs.

    from assay.environments.faces.skyrl import register_environment

    register_environment("sums", "sums.py:Sums", format="tagged", target="127.0.0.1:50051")

The rows' `env_class` is then "sums". A fault is raised; see docs/trainers/skyrl.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from assay.environments.episode import EpisodeLimits
from assay.environments.faces.common import EpisodeHandle, beginning, chat, kept, row_of
from assay.environments.formats import format_of


class AssayTextEnv(BaseTextEnv):
    """One episode, as SkyRL-Gym's generator drives it: texts in and out.

    `extras` are the row's columns, with `max_turns`.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        environment: str,
        settings: Mapping[str, Any] | None = None,
        format: str = "tagged",  # noqa: A002  # as everywhere
        seconds: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        del env_config
        self.extras = dict(extras or {})
        self.max_turns = int(self.extras.get("max_turns") or 0)
        world = kept(environment, settings, **options)
        limits = EpisodeLimits(turns=self.max_turns, seconds=seconds)
        self.handle: EpisodeHandle = world.episode(limits)
        self._format = format_of(format)

    def init(
        self, prompt: Sequence[Mapping[str, Any]]
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What the policy reads first: the environment's messages, after the prompt's system.

        Raises:
            FaultError: the environment could not begin.
        """
        first = self.handle.begin(row_of(self.extras, prompt))
        return beginning(self._format, self.handle, first, prompt), {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """The turn's answer and reward; the last turn's has the episode's in it.

        Raises:
            FaultError: the environment broke, or what the episode earned is not known.
        """
        self.turns += 1
        following, reward = self.handle.step(self._format.read(action))
        observations = chat(self._format.shown(following.messages)) if following else []
        return BaseTextEnvStepOutput(
            observations=observations,
            reward=reward or 0.0,
            done=following is None,
            metadata={"ending": str(self.handle.episode.ending or "")},
        )

    def close(self) -> None:
        """Ends the episode, if SkyRL stopped it before its end."""
        self.handle.end()

    def get_metrics(self) -> dict[str, Any]:
        """Turns, calls of tools and refusals of the episode."""
        calls = [called for step in self.handle.episode.steps for called in step.calls]
        return {
            "turns": float(self.turns),
            "tool_calls": float(len(calls)),
            "refused_calls": float(sum(called.refused for called in calls)),
        }


def register_environment(
    name: str,
    environment: str,
    settings: Mapping[str, Any] | None = None,
    *,
    format: str = "tagged",  # noqa: A002  # as everywhere
    seconds: float = 0.0,
    **options: Any,
) -> None:
    """Registers an environment under a name for rows' `env_class`.

    Args:
        name: of SkyRL's registry.
        environment: an installed one's name, `FILE.py:Class` or `package.module:Class`.
        settings: of the environment.
        format: in which the policy writes calls: `tagged`, `code`.
        seconds: of an episode; 0 for no limit.
        options: `target`, `task`, ...: see `common.opened`.

    Raises:
        ConfigError: it cannot be opened.
    """
    format_of(format)
    kept(environment, settings, **options)
    skyrl_gym.register(
        id=name,
        entry_point="assay.environments.faces.skyrl:AssayTextEnv",
        kwargs={
            "environment": environment,
            "settings": dict(settings or {}),
            "format": format,
            "seconds": seconds,
            **options,
        },
    )
