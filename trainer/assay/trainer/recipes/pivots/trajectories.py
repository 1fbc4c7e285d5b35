"""Turns of trajectories that call tools: of a run's episodes, or of conversations. Pure.

A conversation is a row {"messages": [...], "tools": [...]} as OpenAI's API has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.environments.environment import ToolError
from assay.environments.episode import Step
from assay.environments.formats import Format
from assay.environments.record import EpisodeRecord, digest_of, plain, read
from assay.environments.registry import environment_of
from assay.environments.tools import ToolSpec, tools_of
from assay.environments.types import EpisodeMessage, ToolCall
from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import is_rollouts, read_rollouts
from assay.kit.tool_calls import read_tool_call


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """An intermediate turn: what was read before it, and the calls it made.

    Attributes:
        trajectory: names the episode or conversation.
        turn: from 0; counts the turns of the policy.
        messages: all before it, as a template without tools takes them.
        calls: [{"name", "arguments"}]
        tools: schemas of those that were offered.
        text: of the turn, as it was written.
    """

    trajectory: str
    turn: int
    messages: tuple[tuple[str, str], ...]
    calls: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    text: str

    @property
    def digest(self) -> str:
        """The same for turns that follow the same messages."""
        return digest_of(self.messages)


def turns_in(
    path: Path,
    style: Format,
    *,
    min_reward: float,
    note: Callable[[str], None] = lambda _text: None,
) -> Iterator[RecordedTurn]:
    """The turns with calls of all trajectories; one of several that follow the same messages.

    Args:
        path: a run, its folder of rollouts, or JSON Lines of conversations or episodes' records.
        style: how calls and results stand in messages.
        min_reward: an episode with less, or with a fault, has none.
        note: gets a sentence for what is left out.

    Raises:
        ConfigError: a row is neither.
    """
    seen: set[str] = set()
    for turn in _turns(path, style, min_reward, note):
        if turn.digest not in seen:
            seen.add(turn.digest)
            yield turn


def _turns(
    path: Path, style: Format, min_reward: float, note: Callable[[str], None]
) -> Iterator[RecordedTurn]:
    if is_rollouts(path):
        for row in read_rollouts(path, phase="train", note=note):
            if row.get("episode"):
                name = f"{row['step']}-{row['draw']}-{row['sample']}"
                yield from _of_record(row["episode"], name, style, min_reward)
        return
    if not path.is_file():
        raise ConfigError(f"{path} is neither a run nor a file; name one")
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ConfigError(f"{where}: no JSON: {error}") from error
            if isinstance(row, dict) and "steps" in row:
                yield from _of_record(row, str(number), style, min_reward)
            elif isinstance(row, dict) and isinstance(row.get("messages"), list):
                yield from _of_chat(row, str(row.get("id", number)), style, where)
            else:
                raise ConfigError(
                    f'{where}: neither a conversation {{"messages": [...]}} nor the record of an '
                    "episode"
                )


def _of_record(
    record: Mapping[str, Any], name: str, style: Format, min_reward: float
) -> Iterator[RecordedTurn]:
    episode = read(record)
    judgement = episode.outcome.result.judgement if episode.outcome else None
    if judgement is None or judgement.reward < min_reward:
        return
    specs = tools_of(environment_of(episode.environment))
    yield from _of_steps(episode, name, style, specs)


def _of_steps(
    episode: EpisodeRecord, name: str, style: Format, specs: Mapping[str, ToolSpec]
) -> Iterator[RecordedTurn]:
    for number, (step, messages, tools) in enumerate(told(episode, style, specs)):
        good = bool(step.calls) and len(step.calls) == len(step.turn.calls)
        if good and not any(one.refused for one in step.calls):
            calls = [_typed(one.call, specs) for one in step.calls]
            if None not in calls:
                given = tuple(one for one in calls if one is not None)
                yield RecordedTurn(name, number, messages, given, tools, step.turn.text)


def told(
    episode: EpisodeRecord, style: Format, specs: Mapping[str, ToolSpec]
) -> Iterator[tuple[Step, tuple[tuple[str, str], ...], tuple[Mapping[str, Any], ...]]]:
    """Each step, the messages before it as a template without tools takes them, and the tools."""
    said: dict[tuple[str, str], list[EpisodeMessage]] = {}
    offered: dict[tuple[str, str], tuple[Mapping[str, Any], ...]] = {}
    for step in episode.steps:
        before, key = step.before, (step.before.agent, step.before.context)
        if key not in said:
            names = specs if before.tools is None else before.tools
            offered[key] = tuple(specs[one].schema for one in names if one in specs)
            said[key] = _system(style, offered[key])
        said[key] += before.messages
        yield step, _pairs(style, said[key]), offered[key]
        said[key].append(EpisodeMessage("assistant", step.turn.text))


def _typed(call: ToolCall, specs: Mapping[str, ToolSpec]) -> Mapping[str, Any] | None:
    """The call with arguments of the tool's types, those that were given; None: it does not fit."""
    given = _arguments(call.arguments)
    if given is None or call.name not in specs:
        return None
    try:
        read_ones = specs[call.name].arguments(call)
    except ToolError:
        return None
    return {"name": call.name, "arguments": {name: plain(read_ones[name]) for name in given}}


def _of_chat(
    row: Mapping[str, Any], name: str, style: Format, where: str
) -> Iterator[RecordedTurn]:
    tools = tuple(row.get("tools") or ())
    said = _system(style, tools)
    number = 0
    for message in row["messages"]:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ConfigError(f'{where}: a message needs a "role"')
        content = message.get("content") or ""
        if not isinstance(content, str):
            raise ConfigError(f"{where}: a message's content is {type(content).__name__}, no text")
        calls = _chat_calls(message, style, content)
        if message["role"] == "assistant":
            written = style.shown([_of_assistant(message, content, calls)])[0].content
            usable = [
                {"name": one.name, "arguments": arguments}
                for one in calls
                if one.name and (arguments := _arguments(one.arguments)) is not None
            ]
            if calls and len(usable) == len(calls):
                yield RecordedTurn(name, number, _pairs(style, said), tuple(usable), tools, written)
            said.append(_of_assistant(message, content, calls))
            number += 1
        else:
            said.append(
                EpisodeMessage(
                    message["role"],
                    content,
                    name=str(message.get("name") or ""),
                    call_id=str(message.get("tool_call_id") or ""),
                )
            )


def _of_assistant(
    message: Mapping[str, Any], content: str, calls: Sequence[ToolCall]
) -> EpisodeMessage:
    """Calls that stand in the text stand there once."""
    return EpisodeMessage("assistant", content, tuple(calls) if message.get("tool_calls") else ())


def _chat_calls(message: Mapping[str, Any], style: Format, content: str) -> Sequence[ToolCall]:
    found = []
    for one in message.get("tool_calls") or ():
        try:
            found.append(ToolCall(*read_tool_call(one)))
        except ValueError:
            found.append(ToolCall(""))
    return found or (style.read(content).calls if message["role"] == "assistant" else ())


def _arguments(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            return None
    if given is None:
        return {}
    return given if isinstance(given, Mapping) else None


def _system(style: Format, tools: Sequence[Mapping[str, Any]]) -> list[EpisodeMessage]:
    text = style.system([dict(one) for one in tools])
    return [EpisodeMessage("system", text)] if text else []


def _pairs(style: Format, messages: Sequence[EpisodeMessage]) -> tuple[tuple[str, str], ...]:
    """Roles and texts; systems' messages at the beginning are one."""
    pairs = [(one.role, one.content) for one in style.shown(messages)]
    systems = 0
    while systems < len(pairs) and pairs[systems][0] == "system":
        systems += 1
    if systems > 1:
        text = "\n\n".join(content for _, content in pairs[:systems])
        pairs[:systems] = [("system", text)]
    return tuple(pairs)
