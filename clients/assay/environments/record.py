"""An episode as JSON, and back; docs/reference/rollouts.md has every key. Pure.

    text = json.dumps(record_of(episode))
    recorded = read(json.loads(text))           # its steps and its outcome, as they were

Whatever an environment or a policy wrote can be recorded: what JSON has not becomes a text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.clients.types import Appeal, Component, Fault, Judgement, Result, Span
from assay.environments.endings import Ending
from assay.environments.environment import ToolResult
from assay.environments.episode import Called, Episode, EpisodeLimits, Step
from assay.environments.types import (
    POLICY,
    EpisodeMessage,
    EpisodeOutcome,
    Observation,
    Reply,
    ToolCall,
)
from assay.kit.errors import ConfigError

VERSION = 1
_DEEPEST = 60  # levels of lists and objects; json writes and reads several times as many

_MOST_BITS = 4096  # of a whole number; Python writes no longer ones in decimal


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """An episode that has ended, or has got this far.

    Attributes:
        environment: its name.
        settings: of the environment, as a table.
        settings_digest: of that table.
        row: that it began with.
        limits: that it had.
        began: seconds since 1970.
        outcome: None while it goes on.
    """

    environment: str
    settings: Mapping[str, Any]
    settings_digest: str
    row: Mapping[str, Any]
    steps: tuple[Step, ...]
    limits: EpisodeLimits
    began: float = 0.0
    outcome: EpisodeOutcome | None = None


def record_of(episode: Episode) -> dict[str, Any]:
    """The record of an episode, in JSON's values; never raises."""
    table = settings_table(episode.environment.settings)
    name = episode.environment.name or type(episode.environment).__name__
    recorded = EpisodeRecord(
        name,
        table,
        digest_of(table),
        episode.row,
        tuple(episode.steps),
        episode.limits,
        episode.began,
        episode.outcome,
    )
    return written(recorded)


def written(record: EpisodeRecord) -> dict[str, Any]:
    """A record in JSON's values."""
    outcome = record.outcome
    out: dict[str, Any] = {
        "version": VERSION,
        "environment": record.environment,
        "settings": plain(record.settings),
        "settings_digest": record.settings_digest,
        "row": plain(record.row),
        "began": round(record.began, 3),
        "limits": dataclasses.asdict(record.limits),
        "steps": [_step(step) for step in record.steps],
    }
    if outcome is None:
        return out
    return {
        **out,
        "ending": str(outcome.ending),
        "trusted": outcome.ending.trusted,
        "trains": outcome.trains,
        **result_json(outcome.result),
        "rewards": plain(outcome.rewards),
        "seconds": round(outcome.seconds, 4),
    }


def read(record: Mapping[str, Any]) -> EpisodeRecord:
    """What `record_of` wrote.

    Raises:
        ConfigError: it is no record, or one of a later version.
    """
    given: Any = record  # whatever its annotation promises
    if not isinstance(given, Mapping) or not isinstance(given.get("version"), int):
        raise ConfigError("this is no record of an episode: it has no version")
    if record["version"] > VERSION:
        raise ConfigError(
            f"the record has version {record['version']}, and this release reads up to {VERSION}; "
            "read it with the release that wrote it"
        )
    try:
        steps = tuple(_read_step(step) for step in record["steps"])
        return EpisodeRecord(
            record["environment"],
            record["settings"],
            record["settings_digest"],
            record["row"],
            steps,
            EpisodeLimits(**record["limits"]),
            record.get("began", 0.0),
            _read_outcome(record, steps) if "ending" in record else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the record of an episode cannot be read: {type(error).__name__}: {error}"
        ) from error


def result_json(result: Result) -> dict[str, Any]:
    """{"judgement": {...}, "fault": null} of a result, or the other way round."""
    judgement, fault = result.judgement, result.fault
    return {
        "judgement": plain(dataclasses.asdict(judgement)) if judgement else None,
        "fault": {
            "reason": fault.reason,
            "message": fault.message,
            "code": fault.code,
            **({"metadata": plain(fault.metadata)} if fault.metadata else {}),
        }
        if fault
        else None,
    }


def result_from(value: Mapping[str, Any]) -> Result:
    """What `result_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    fault, judgement = value["fault"], value["judgement"]
    if fault is not None:
        return Result("", Fault(**fault))
    components = tuple(Component(**one) for one in judgement["components"])
    spans = tuple(Span(**one) for one in judgement["spans"])
    rest = {
        **judgement,
        "components": components,
        "spans": spans,
        "suspicions": tuple(judgement["suspicions"]),
        "appeal": Appeal.from_plain(judgement.get("appeal")),
    }
    return Result("", Judgement(**rest))


def settings_table(settings: Any) -> dict[str, Any]:
    """An environment's settings as a table of JSON's values."""
    if not dataclasses.is_dataclass(settings) or isinstance(settings, type):
        return {}
    return {one.name: plain(getattr(settings, one.name)) for one in dataclasses.fields(settings)}


def digest_of(value: Any) -> str:
    """The same for equal values: 24 hex digits of the SHA-256 of their JSON."""
    text = json.dumps(plain(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def plain(value: Any, levels: int = _DEEPEST) -> Any:
    """A value in JSON's own; what JSON has not becomes a text. Never raises."""
    if value is None or isinstance(value, bool | int | str | float):
        return _scalar(value)
    try:
        return _container(value, levels - 1) if levels else repr(value)[:1000]
    except Exception:  # noqa: BLE001  # whatever an object's author wrote
        return f"<{type(value).__name__}>"


def _scalar(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return str.__str__(value)  # of an enum: what it is, not how it is shown
    if value is None or isinstance(value, bool):
        return value
    return int(value) if value.bit_length() <= _MOST_BITS else hex(value)[:1000]


def _container(value: Any, levels: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (one.name for one in dataclasses.fields(value))
        return {name: plain(getattr(value, name), levels) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(part, levels) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return [plain(part, levels) for part in sorted(value, key=repr)]
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(part, levels) for part in value]
    return repr(value)[:1000]


def _step(step: Step) -> dict[str, Any]:
    before, turn = step.before, step.turn
    return {
        "agent": turn.agent,
        "context": before.context,
        "read": [_message(one) for one in before.messages],
        **({} if before.tools is None else {"tools": list(before.tools)}),
        **({} if before.reward is None else {"read_reward": plain(before.reward)}),
        "text": turn.text,
        "answer": turn.answer,
        "tokens": turn.tokens,
        "void": turn.void,
        "truncated": turn.truncated,
        "calls": [_called(one) for one in step.calls],
        # of a turn that an ending cut short
        **(
            {"unanswered": [_call(one) for one in turn.calls[len(step.calls) :]]}
            if len(step.calls) < len(turn.calls)
            else {}
        ),
        "reward": plain(step.reward),
        "seconds": round(step.seconds, 4),
        "at": round(step.at, 4),
    }


def _message(message: EpisodeMessage) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        out["calls"] = [_call(one) for one in message.calls]
    if message.name:
        out["name"] = message.name
    if message.call_id:
        out["call_id"] = message.call_id
    return out


def _call(call: ToolCall) -> dict[str, Any]:
    out: dict[str, Any] = {"name": call.name, "arguments": plain(call.arguments)}
    if call.id:
        out["id"] = call.id
    if call.text:
        out["text"] = call.text
    return out


def _called(one: Called) -> dict[str, Any]:
    result = one.result
    return {
        **_call(one.call),
        "answer": result.text,
        "facts": plain(result.facts),
        "reward": plain(result.reward),
        "done": result.done,
        "seconds": round(one.seconds, 4),
        "refused": one.refused,
        "cached": one.cached,
        **({} if one.asked else {"asked": False}),
    }


def _read_step(step: Mapping[str, Any]) -> Step:
    tools = step.get("tools")
    before = Observation(
        tuple(_read_message(one) for one in step["read"]),
        step["agent"],
        step["context"],
        step.get("read_reward"),
        None if tools is None else tuple(tools),
    )
    calls = [_read_called(one) for one in step["calls"]]
    left = [_read_call(one) for one in step.get("unanswered", ())]
    turn = Reply(
        step["text"],
        (*(one.call for one in calls), *left),
        step["answer"],
        step["void"],
        step["truncated"],
        step["agent"],
        step["tokens"],
    )
    return Step(before, turn, calls, step["reward"], step["seconds"], step.get("at", 0.0))


def _read_message(message: Mapping[str, Any]) -> EpisodeMessage:
    return EpisodeMessage(
        message["role"],
        message["content"],
        tuple(_read_call(one) for one in message.get("calls", ())),
        message.get("name", ""),
        message.get("call_id", ""),
    )


def _read_call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(call["name"], call["arguments"], call.get("id", ""), call.get("text", ""))


def _read_called(one: Mapping[str, Any]) -> Called:
    result = ToolResult(one["answer"], one["reward"], one["done"], one["facts"])
    rest = (one["seconds"], one["refused"], one["cached"], one.get("asked", True))
    return Called(_read_call(one), result, *rest)


def _read_outcome(record: Mapping[str, Any], steps: Sequence[Step]) -> EpisodeOutcome:
    return EpisodeOutcome(
        Ending(record["ending"]),
        result_from(record),
        record["rewards"],
        tuple(step.reward for step in steps),
        len(steps),
        record["seconds"],
    )


def agents_of(record: EpisodeRecord) -> list[str]:
    """Who spoke, in the order of their first turns; "policy" where nobody did."""
    return list(dict.fromkeys(step.turn.agent for step in record.steps)) or [POLICY]
