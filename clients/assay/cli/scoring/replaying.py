"""Recorded episodes, run or read again in their environments, and judged there."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from assay.cli.scoring.recorded import score_row
from assay.cli.scoring.rows import outcome_columns
from assay.clients.types import Result
from assay.environments.environment import Services
from assay.environments.record import read
from assay.environments.registry import environment_of, settings_of
from assay.environments.replay import EpisodeReplay

_AT_ONCE = 16


@dataclass(slots=True)
class ReplayTally:
    """Counts over replayed episodes."""

    done: int = 0
    judged: int = 0
    rewards: float = 0.0
    same: int = 0
    differing: int = 0
    faulted: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """Counts one line of output."""
        self.done += 1
        self.differing += bool(line["differences"])
        if line["fault"] is not None:
            self.faulted += 1
            reason = line["fault"]["reason"]
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            return
        self.judged += 1
        self.rewards += line["reward"]
        self.same += line["reward"] == line["recorded_reward"]

    def report(self) -> str:
        """A line for people."""
        mean = f"mean reward {self.rewards / self.judged:.4g}, " if self.judged else ""
        faults = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items()))
        return (
            f"{self.done} episodes: {self.judged} judged, {mean}{self.same} with the recorded "
            f"reward, {self.differing} that went otherwise; faults: {faults or 'none'}"
        )


async def replay_all(
    rollouts: Iterable[Mapping[str, Any]],
    services: Services,
    *,
    tools: bool,
    take: Callable[[dict[str, Any]], None],
) -> None:
    """Judges episodes again, some at a time, and gives their lines in order.

    Raises:
        ConfigError: an environment is not here, or a record cannot be read.
    """
    with ExitStack() as stack:
        shared: dict[tuple[str, str], Any] = {}

        def opened(record: Mapping[str, Any]) -> EpisodeReplay:
            recorded = read(record)
            key = (recorded.environment, recorded.settings_digest)
            if key not in shared:
                kind = environment_of(recorded.environment)
                settings = settings_of(kind, recorded.settings)
                shared[key] = stack.enter_context(kind.open(settings))
            return EpisodeReplay(recorded, shared=shared[key])

        async def line_of(rollout: Mapping[str, Any], replay: EpisodeReplay) -> dict[str, Any]:
            again = await replay.again(services, tools=tools)
            result: Result = again.outcome.result
            return {
                **score_row(rollout),
                **outcome_columns(result),
                "ending": str(again.outcome.ending),
                "recorded_ending": rollout["ending"],
                "differences": [str(one) for one in again.differences],
            }

        ahead: deque[asyncio.Task[dict[str, Any]]] = deque()
        rest: Iterator[Mapping[str, Any]] = iter(rollouts)
        try:
            while True:
                for rollout in islice(rest, _AT_ONCE - len(ahead)):
                    replay = opened(rollout["episode"])
                    ahead.append(asyncio.create_task(line_of(rollout, replay)))
                if not ahead:
                    return
                take(await ahead[0])
                ahead.popleft()
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)
