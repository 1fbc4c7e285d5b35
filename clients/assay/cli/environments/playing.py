"""An episode whose turns a person types or a file holds, shown as it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assay.environments.endings import Ending
from assay.environments.environment import Environment
from assay.environments.episode import Episode, EpisodeLimits, Step
from assay.environments.record import record_of
from assay.environments.types import POLICY, Observation, Reply, ToolCall
from assay.kit.errors import ConfigError

_PAIR = re.compile(r"""(\w+)=("(?:[^"\\]|\\.)*"|\S+)""")
TYPED = "/tool name=value ... calls a tool, /tool {json} too; anything else is the turn's text"


def turn_of(value: Any) -> Reply:
    """A turn: a text, a call {"name", "arguments"}, or a list of calls.

    Raises:
        ConfigError: it is none of these.
    """
    if isinstance(value, str):
        return Reply(value, answer=value, void=not value.strip())
    calls = value if isinstance(value, list) else [value]
    made = []
    for number, one in enumerate(calls, start=1):
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
            raise ConfigError(
                'a turn is a text, a call {"name": ..., "arguments": {...}}, or a list of calls; '
                f"this is {json.dumps(value)[:200]}"
            )
        made.append(ToolCall(one["name"], one.get("arguments"), str(one.get("id", number))))
    return Reply(json.dumps(value, ensure_ascii=False), tuple(made))


def typed(line: str) -> Reply:
    """A turn as a person types it; see TYPED."""
    if not line.startswith("/"):
        return turn_of(line)
    name, _, rest = line[1:].strip().partition(" ")
    rest = rest.strip()
    if rest.startswith("{"):
        arguments: Any = rest  # the tool says what is wrong with it
    else:
        arguments = {key: _value(text) for key, text in _PAIR.findall(rest)}
    return Reply(line, (ToolCall(name, arguments, "1"),))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def scripted(lines: Iterator[str]) -> Iterator[Reply]:
    """The turns of a file: JSON, one a line.

    Raises:
        ConfigError: a line is no turn.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"line {number} of the turns is no JSON: {error}") from error
        yield turn_of(value)


async def play(
    environment: Environment,
    row: Mapping[str, Any],
    turns: Callable[[Observation], Reply | None],
    *,
    limits: EpisodeLimits,
    show: Callable[[str], None],
) -> dict[str, Any]:
    """One episode; returns its record.

    Args:
        environment: whose episode it is.
        row: that it begins with.
        turns: the next turn to what is read; None for no more.
        limits: of the episode.
        show: gets what is read, called and earned, as lines.
    """
    episode = Episode(environment, limits)
    observation = await episode.begin(row)
    while observation is not None:
        _show_read(observation, show)
        turn = turns(observation)
        if turn is None:
            break
        observation = await episode.take(turn)
        _show_step(episode.steps[-1], show)
    outcome = await episode.end(Ending.ABANDONED if observation is not None else None)
    fault, judgement = outcome.result.fault, outcome.result.judgement
    show(f"end: {outcome.ending}, {outcome.turns} turns, {outcome.seconds:.2f} s")
    if fault is not None:
        show(f"fault {fault.reason}: {fault.message}")
    if judgement is not None:
        show(f"reward {judgement.reward:g}, verdict {judgement.verdict}")
        if judgement.explanation:
            show(judgement.explanation)
    for agent, reward in outcome.rewards.items():
        show(f"  {agent}: {'fault' if reward is None else f'{reward:g}'}")
    return record_of(episode)


def _show_read(observation: Observation, show: Callable[[str], None]) -> None:
    for message in observation.messages:
        name = f" {message.name}" if message.name else ""
        show(f"{message.role}{name}: {message.content}")
    if observation.agent != POLICY or observation.context:
        show(f"[{observation.agent}{f', {observation.context}' if observation.context else ''}]")


def _show_step(step: Step, show: Callable[[str], None]) -> None:
    for one in step.calls:
        arguments = one.call.arguments
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        show(f"  {one.call.name} {given} ({1000 * one.seconds:.0f} ms)")
    if step.reward is not None:
        show(f"  reward of the turn: {step.reward:g}")
