"""An operator's file: the rewards of an OpenEnv environment, hosted."""

from __future__ import annotations

import os
from typing import Any

from openenv import GenericEnvClient
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from assay.environments.hosting import host_openenv


class Guess(Action):
    number: int


class Told(Observation):
    said: str = ""


class Guessing(Environment[Guess, Told, State]):
    """Guess a number; each wrong guess costs a tenth."""

    def reset(self, seed: int | None = None, number: int = 7, **_: Any) -> Told:
        self.number = number
        return Told(said="guess")

    def step(self, action: Guess, timeout_s: float | None = None, **_: Any) -> Told:
        if action.number == 666:
            raise RuntimeError("the engine is broken")
        if action.number == 0:
            return Told(said="no reward", done=True, reward=None)
        right = action.number == self.number
        return Told(said="", done=right, reward=1.0 if right else -0.1)

    @property
    def state(self) -> State:
        return State()


def action(text: str) -> Guess | None:
    return Guess(number=int(text)) if text.isdecimal() else None


def remote() -> Any:
    return GenericEnvClient(base_url=os.environ["GUESSING_URL"])


guessing = host_openenv(Guessing, action, reset=["number"], unreadable=-1.0)
guessing_strictly = host_openenv(Guessing, action)
guessing_remote = host_openenv(
    remote, lambda text: {"number": int(text)} if text.isdecimal() else None, reset=["number"]
)
