"""A small environment with a state, and what runs episodes of scripted turns in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.environments import (
    Ending,
    Environment,
    Episode,
    EpisodeLimits,
    Reply,
    ToolCall,
    ToolError,
    ToolResult,
    tool,
)
from assay.environments.environment import BudgetSpent
from assay.environments.record import record_of
from assay.environments.running import ToolRunner


@dataclass(frozen=True, slots=True)
class TallySettings:
    """Of Tally.

    Attributes:
        modulo: numbers go on from 0 when they reach it.
    """

    modulo: int = 7


@dataclass(slots=True)
class Trouble:
    """Which of an episode's executions break, and how long each takes, in turns of the loop."""

    breaks: frozenset[int] = frozenset()
    pauses: Sequence[int] = ()
    executed: list[str] = field(default_factory=list)


class Tally(Environment):
    """A number that tools change; what they answer depends on all calls before."""

    name = "tally"
    Settings = TallySettings
    repeatable = True

    def reset(self, row: Any) -> str:
        """Begins at the row's number."""
        self.number = int(row["start"])
        self.seen: list[str] = []
        self.closed = 0
        return f"the number is {self.number}"

    async def _ran(self, name: str) -> None:
        trouble: Trouble = self.shared or Trouble()
        count = len(trouble.executed)
        trouble.executed.append(name)
        for _ in range(trouble.pauses[count % len(trouble.pauses)] if trouble.pauses else 0):
            await asyncio.sleep(0)
        if count in trouble.breaks:
            raise OSError("the disk is gone")
        self.seen.append(name)

    @tool
    async def add(self, amount: int) -> ToolResult:
        """Adds to the number.

        Args:
            amount: how much.
        """
        await self._ran("add")
        self.number = (self.number + amount) % self.settings.modulo
        return ToolResult(f"now {self.number}", facts={"number": self.number})

    @tool
    async def halve(self) -> str:
        """Halves an even number."""
        await self._ran("halve")
        if self.number % 2:
            raise ToolError(f"{self.number} is odd")
        self.number //= 2
        return f"half {self.number}"

    @tool
    async def stop(self) -> ToolResult:
        """Ends the episode, with a reward for this turn."""
        await self._ran("stop")
        return ToolResult("over", reward=0.5, done=True)

    @tool
    async def spend(self) -> str:
        """Uses up everything."""
        await self._ran("spend")
        if self.number == 3:
            raise BudgetSpent
        return "there is more"

    def turn(self, turn: Reply) -> str | None:
        """Says the number; the end at "end"."""
        return None if "end" in turn.text else f"it is {self.number}"

    def reward(self) -> float:
        """What tools left."""
        return self.number + len(self.seen) / 100

    def close(self) -> None:
        """Counts."""
        self.closed += 1


Script = Sequence[Reply]


def calls(*named: tuple[str, Any] | str) -> Reply:
    """A turn of calls."""
    made = tuple(ToolCall(*(one if isinstance(one, tuple) else (one, {}))) for one in named)
    return Reply("calls", made)


async def acted(
    environment: Environment,
    row: Any,
    script: Script,
    *,
    runner: ToolRunner | None = None,
    limits: EpisodeLimits | None = None,
) -> Episode:
    """An episode of these turns; it ends where they do, as a policy that was cut."""
    episode = Episode(environment, limits or EpisodeLimits(), runner=runner)
    observation = await episode.begin(row)
    for turn in script:
        if observation is None:
            break
        observation = await episode.take(turn)
    await episode.end(Ending.TOKEN_LIMIT if observation is not None else None)
    return episode


def told(episode: Episode) -> dict[str, Any]:
    """A record without what differs from run to run."""
    record = record_of(episode)
    return {
        **record,
        "seconds": 0,
        "began": 0,
        "steps": [
            {
                **step,
                "seconds": 0,
                "at": 0,
                "calls": [{**one, "seconds": 0, "cached": False} for one in step["calls"]],
            }
            for step in record["steps"]
        ],
    }
