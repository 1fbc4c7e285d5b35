"""A recorded episode once more: judged again, or branched off at a turn.

replay = EpisodeReplay(record)
judged = await replay.again(services)               # its calls are run again
judged = await replay.again(services, tools=False)  # their recorded answers stand
episode = await replay.branch(3, services)          # stands behind its third turn
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.environments.endings import Ending
from assay.environments.environment import Environment, Services, ToolError, ToolResult
from assay.environments.episode import Called, Episode, EpisodeLimits, Step
from assay.environments.record import EpisodeRecord, plain, read
from assay.environments.registry import environment_of, settings_of
from assay.environments.running import ToolRunner
from assay.environments.types import EpisodeMessage, EpisodeOutcome, Observation, ToolCall
from assay.kit.errors import ConfigError

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replayed episode is not as it was recorded.

    Attributes:
        turn: from 0; the number of turns for the ending.
        what: "read", "answer of TOOL" or "ending".
        recorded: the text then, shortened.
        now: the text of the replay, shortened.
    """

    turn: int
    what: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.what}: was {self.recorded!r}, is {self.now!r}"


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """A recorded episode's second judgement.

    Attributes:
        outcome: of now.
        differences: of the episode on the way there; none means that the judgement is of the same
            episode.
    """

    outcome: EpisodeOutcome
    differences: Sequence[Difference]


class EpisodeReplay:
    """Replays one record; see the module.

    Args:
        record: what `record_of` gave, or what `read` made of it.
        kind: the environment's class; None: the installed one of the recorded name.
        shared: what that class's `open` yields.

    Raises:
        ConfigError: the record cannot be read, or its environment is not here.
    """

    def __init__(
        self,
        record: Mapping[str, Any] | EpisodeRecord,
        *,
        kind: type[Environment] | None = None,
        shared: Any = None,
    ) -> None:
        self.record = record if isinstance(record, EpisodeRecord) else read(record)
        self.kind = kind or environment_of(self.record.environment)
        self.settings = settings_of(self.kind, self.record.settings)
        self._shared = shared

    async def again(self, services: Services | None = None, *, tools: bool = True) -> JudgedAgain:
        """Takes the recorded turns in a new environment and asks what they earn.

        An episode that broke before its policy came to an end has a fault again. Without `tools`
        reset(), turn() and reward() run, and no tool: a reward that reads what tools left behind
        needs them.
        """
        steps = self.record.steps
        episode = self._episode(services, None if tools else _RecordedRunner(self.record))
        differences = await _retaken(episode, self.record.row, steps)
        before = self.record.outcome
        outcome = await episode.end(before.ending if before is not None else None)
        if before is not None and before.result.fault is None:
            pair = (str(before.ending), str(outcome.ending))
            if pair[0] != pair[1]:
                differences.append(Difference(len(steps), "ending", *pair))
        return JudgedAgain(outcome, differences)

    async def branch(
        self,
        turns: int,
        services: Services | None = None,
        *,
        limits: EpisodeLimits | None = None,
    ) -> Episode:
        """An episode that has taken the first so many recorded turns; `due` is what is read next.

        `limits` are the recorded ones by default; the seconds count anew.

        Raises:
            ConfigError: the environment is not repeatable, the record has no such turn, or the
                calls answer otherwise by now.
        """
        name = self.record.environment
        if not 0 <= turns <= len(self.record.steps):
            raise ConfigError(
                f"the record has {len(self.record.steps)} turns; there is no branch behind {turns}"
            )
        if turns and not self.kind.repeatable:
            raise ConfigError(
                f"the environment {name!r} is not repeatable: what its tools answered would not "
                "come again, so no episode can be branched off; judge the record, or branch "
                "behind 0 turns"
            )
        episode = self._episode(services, None, limits)
        differences = await _retaken(episode, self.record.row, self.record.steps[:turns])
        if differences or episode.is_over():
            await episode.end(Ending.ABANDONED)
            why = str(differences[0]) if differences else f"the episode ended ({episode.ending})"
            raise ConfigError(f"no branch of this record of {name!r}: {why}")
        return episode

    def _episode(
        self,
        services: Services | None,
        runner: ToolRunner | None,
        limits: EpisodeLimits | None = None,
    ) -> Episode:
        environment = self.kind(self.settings, self._shared, services)
        return Episode(
            environment, limits or replace(self.record.limits, seconds=0.0), runner=runner
        )


class _RecordedRunner:
    """Gives the recorded answers, in their order."""

    def __init__(self, record: EpisodeRecord) -> None:
        self._left = [one for step in record.steps for one in step.calls if one.asked]

    async def run(self, call: ToolCall) -> ToolResult:
        """See ToolRunner."""
        if not self._left:
            raise ToolError(f"the record has no answer to this call of {call.name!r}")
        one = self._left.pop(0)
        if one.refused:
            raise ToolError(one.result.text.removeprefix("error: "))
        return one.result


async def _retaken(
    episode: Episode, row: Mapping[str, Any], steps: Sequence[Step]
) -> list[Difference]:
    """Takes recorded turns; says where what came of them is another thing."""
    found: list[Difference] = []
    observation = await episode.begin(row)
    for turn, step in enumerate(steps):
        if observation is None:
            found.append(Difference(turn, "ending", "the episode went on", str(episode.ending)))
            break
        recorded, now = _read(step.before), _read(observation)
        if recorded != now:
            found.append(Difference(turn, "read", *_apart(recorded, now)))
        observation = await episode.take(step.turn)
        for one, again in zip(step.calls, episode.steps[-1].calls, strict=False):
            if _answer(one) != _answer(again):
                texts = _apart(_answer(one), _answer(again))
                found.append(Difference(turn, f"answer of {one.call.name[:80]}", *texts))
    return found


def _read(observation: Observation) -> str:
    head = "".join(f"[{one}] " for one in (observation.agent, observation.context) if one)
    return head + "\n".join(_line(one) for one in observation.messages)


def _line(message: EpisodeMessage) -> str:
    return f"{message.role}: {message.content}"


def _answer(one: Called) -> str:
    result = one.result
    extra = "" if result.reward is None else f" (reward {plain(result.reward)})"
    return f"{result.text}{extra}{' (done)' if result.done else ''}"


def _apart(one: str, other: str) -> tuple[str, str]:
    """Both from a little before where they part, shortened."""
    pairs = zip(one, other, strict=False)
    same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    start = max(0, same - 40)
    return one[start : start + _SHOWN], other[start : start + _SHOWN]
