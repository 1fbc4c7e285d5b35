"""An environment in which anything may be said: agents speak in turn, and earn by their letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.clients.faults import make_fault
from assay.environments.environment import Environment, Row
from assay.environments.types import Observation, Reply


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Settings of the relay.

    Attributes:
        agents: who speak in a round, in order.
        rounds: how many.
        fresh: every round is a conversation of its own.
        turn_rewards: a turn earns the parity of its letters.
        own_rewards: an agent earns the parity of all its letters, not of everybody's.
        faulty: an agent whose own reward is a fault where its first letters are even.
    """

    agents: tuple[str, ...] | list[str] = ("policy",)
    rounds: int = 2
    fresh: bool = False
    turn_rewards: bool = False
    own_rewards: bool = False
    faulty: str = ""


class Relay(Environment):
    """See the module."""

    Settings = RelaySettings

    def reset(self, row: Row) -> Observation:
        """See Environment."""
        self.said: list[tuple[str, int]] = []
        self.asked = str(row["prompt"])
        return self.next_to(0, None)

    def next_to(self, number: int, reward: float | None) -> Observation:
        """What the speaker of a turn reads."""
        agents = self.settings.agents
        agent, round_ = agents[number % len(agents)], number // len(agents)
        context = f"{agent} {round_}" if self.settings.fresh else agent
        text = self.asked if round_ == 0 or self.settings.fresh else f"{number}+"
        return Observation.user(text, agent=agent, context=context, reward=reward)

    def turn(self, turn: Reply) -> Observation:
        """See Environment."""
        self.said.append((turn.agent, len(turn.text)))
        reward = float(len(turn.text) % 2) if self.settings.turn_rewards else None
        if len(self.said) == len(self.settings.agents) * self.settings.rounds:
            return Observation((), agent=turn.agent, reward=reward)
        return self.next_to(len(self.said), reward)

    def reward(self) -> Any:
        """See Environment."""
        if not self.settings.own_rewards:
            return float(sum(size for _, size in self.said) % 2)
        earned: dict[str, Any] = {}
        for agent in self.settings.agents:
            sizes = [size for name, size in self.said if name == agent]
            earned[agent] = float(sum(sizes) % 2)
            if agent == self.settings.faulty and sizes and sizes[0] % 2 == 0:
                earned[agent] = make_fault("WORKER_DIED", "told to")
        return earned
