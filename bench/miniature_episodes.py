"""Toy environments of the presets' miniatures; the policy's models are in the modules beside.

`Counters`: two agents of one policy, one counts up from a digit and one counts down, for rewards of
different size (Dr. MAS, arXiv 2602.08847).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.environments import Environment, EpisodeMessage, Observation, Reply

STEPS, BASE = 3, 10
SIGNS = {"up": "+", "down": "-"}


def counted(digit: int, agent: str) -> str:
    """The right answer to a digit."""
    stride = 1 if agent == "up" else -1
    return "".join(str((digit + stride * n) % BASE) for n in range(1, STEPS + 1))


@dataclass(frozen=True, slots=True)
class CountersSettings:
    """What a right answer earns."""

    up: float = 10.0
    down: float = 1.0


class Counters(Environment):
    """A turn of each agent; a wrong answer earns nothing."""

    name = "counters"
    Settings = CountersSettings

    def reset(self, row: Mapping[str, Any]) -> Observation:
        self._digit = int(row["prompt"])
        self._right: dict[str, bool] = {}
        return self._asked("up")

    def turn(self, turn: Reply) -> Observation | None:
        self._right[turn.agent] = turn.text.strip() == counted(self._digit, turn.agent)
        return self._asked("down") if turn.agent == "up" else None

    def reward(self) -> Mapping[str, float]:
        return {
            agent: getattr(self.settings, agent) * self._right.get(agent, False) for agent in SIGNS
        }

    def _asked(self, agent: str) -> Observation:
        asked = EpisodeMessage("user", f"{self._digit}{SIGNS[agent]}")
        return Observation((asked,), agent=agent)
