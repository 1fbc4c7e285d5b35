"""Items and outcomes as JSON between the server and a worker.

A worker handles model text. If it were taken over, the worst it could send is a wrong judgement:
the server checks the size, shape and types of every frame.

    job     {"verifier", "item"}
    done    {"judgement"} or {"fault"}
"""

from __future__ import annotations

import json
from typing import Any

from assay.kit.pool.frames import FrameError
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Message,
    Outcome,
    Span,
    ToolCall,
    VerifierItem,
)

MAX_JOB_BYTES = 64 * 2**20
MAX_DONE_BYTES = 16 * 2**20


def pack(body: dict[str, Any], limit_bytes: int) -> bytes:
    """A body as bytes.

    Raises:
        FrameError: it would be longer than the limit.
    """
    data = json.dumps(body, separators=(",", ":")).encode("ascii")
    if len(data) > limit_bytes:
        raise FrameError(f"a body of {len(data)} bytes is over the limit of {limit_bytes}")
    return data


def item_to_json(item: VerifierItem) -> dict[str, Any]:
    """An item as JSON."""
    return {
        "text": item.candidate.text,
        "calls": _calls_to_json(item.candidate.calls),
        "turns": [_message_to_json(turn) for turn in item.candidate.turns],
        "references": item.references,
        "anchor": item.anchor,
        "prompt": [_message_to_json(message) for message in item.prompt],
        "parameters": dict(item.parameters),
        "group_id": item.group_id,
        "response_token_count": item.response_token_count,
        "truncated": item.truncated,
        "data": item.data,
    }


def item_from_json(body: dict[str, Any]) -> VerifierItem:
    """The item again. Trusts its input: the server wrote it."""
    parameters = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in body["parameters"].items()
    }
    return VerifierItem(
        Candidate(
            body["text"],
            tuple(_message_from_json(turn) for turn in body["turns"]),
            _calls_from_json(body["calls"]),
        ),
        references=tuple(body["references"]),
        anchor=body["anchor"],
        prompt=tuple(_message_from_json(message) for message in body["prompt"]),
        parameters=parameters,
        group_id=body["group_id"],
        response_token_count=body["response_token_count"],
        truncated=body["truncated"],
        data=body["data"],
    )


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """A judgement or a fault as JSON."""
    if isinstance(outcome, Fault):
        return {"fault": [outcome.reason, outcome.message, dict(outcome.metadata)]}
    return {
        "judgement": {
            "reward": float(outcome.reward),
            "verdict": outcome.verdict,
            "components": [[c.name, float(c.score), float(c.weight)] for c in outcome.components],
            "extracted_answer": outcome.extracted_answer,
            "explanation": outcome.explanation,
            "spans": [
                [s.start, s.end, float(s.reward), s.label, s.turn_index] for s in outcome.spans
            ],
            "suspicions": list(outcome.suspicions),
        }
    }


def outcome_from_json(body: dict[str, Any]) -> Outcome:
    """The judgement or fault again, every type checked.

    Raises:
        FrameError: the body is not of the agreed shape.
    """
    try:
        if "fault" in body:
            reason, message, metadata = body["fault"]
            facts = {_text(key): _text(value) for key, value in metadata.items()}
            return Fault(_text(reason), _text(message), facts)
        j = body["judgement"]
        return Judgement(
            reward=_number(j["reward"]),
            verdict=_text(j["verdict"]),
            components=tuple(
                Component(_text(name), _number(score), _number(weight))
                for name, score, weight in j["components"]
            ),
            extracted_answer=None
            if j["extracted_answer"] is None
            else _text(j["extracted_answer"]),
            explanation=_text(j["explanation"]),
            spans=tuple(
                Span(_whole(start), _whole(end), _number(reward), _text(label), _whole(turn))
                for start, end, reward, label, turn in j["spans"]
            ),
            suspicions=tuple(_text(suspicion) for suspicion in j["suspicions"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FrameError("a worker's answer is not of the agreed shape") from error


def _message_to_json(message: Message) -> list[Any]:
    calls = [_calls_to_json(message.calls)] if message.calls else []
    return [message.role, message.content, message.from_policy, *calls]


def _message_from_json(fields: list[Any]) -> Message:
    role, content, from_policy, *calls = fields
    return Message(role, content, from_policy, _calls_from_json(calls[0]) if calls else ())


def _calls_to_json(calls: tuple[ToolCall, ...]) -> list[Any]:
    return [[call.name, call.arguments] for call in calls]


def _calls_from_json(listed: list[Any]) -> tuple[ToolCall, ...]:
    return tuple([ToolCall(name, arguments) for name, arguments in listed])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("not a number")
    return float(value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return value
