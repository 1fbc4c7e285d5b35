"""An environment of one file: who answers wrongly is asked again; a tool tells what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.environments import Environment, Observation, Reply, tool


class Again(Environment):
    """A sum; a wrong answer is asked for once more, and costs."""

    name = "again"

    @tool
    def told(self) -> str:
        """Tells the answer."""
        return str(self.row["reference"])

    def reset(self, row: Any) -> str:
        self.asked = 1
        assert row.get("level", 0) in (0, 1)
        return str(row["prompt"])

    def turn(self, turn: Reply) -> Any:
        if self.asked == 2 or turn.answer == self.row["reference"]:
            return None
        self.asked = 2
        return Observation.user(str(self.row["prompt"]), reward=-0.25)

    def reward(self) -> Any:
        if self.row.get("breaks"):
            raise ArithmeticError("told to")
        return self.judged(self.last.answer)


class Retelling(Again):
    """Asks again in a conversation of its own."""

    name = "retelling"

    def turn(self, turn: Reply) -> Any:
        following = super().turn(turn)
        return following and Observation.user(str(self.row["prompt"]), context="second")


@dataclass(frozen=True, slots=True)
class AddsSettings:
    """Whether the environment judges itself; else the services do."""

    own: bool = False


class Adds(Environment):
    """A sum that a tool keeps: it must come to the row's reference."""

    name = "adds"
    Settings = AddsSettings
    repeatable = True

    def reset(self, row: Any) -> str:
        self.total = 0
        return str(row["prompt"])

    @tool
    def add(self, n: int) -> str:
        """Adds.

        Args:
            n: what.
        """
        self.total += n
        return f"GO{self.total}"

    def reward(self) -> Any:
        if self.settings.own:
            return float(str(self.total) == self.row["reference"])
        return self.judged(str(self.total))
