"""Items and outcomes as JSON between the server and a worker.

A worker handles model text. If it were taken over, the worst it could send is a wrong judgement:
the server checks the size, shape and types of every frame.

    job       {"verifier", "item"}
    done      {"judgement"} or {"fault"}
    parcel    "P", 4 bytes, the length of what follows up to the texts
              {"verifiers": names, "items": [[place among the names, item, bytes of its text], ...]}
              the responses' texts, UTF-8, because as JSON they would cost more than all the rest
    done      {"looks": [[as above, or null for an item that is left open, seconds], ...]}

An item on the way has what differs from an empty one, and its parameters where they are no default.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from assay.kit.pool.frames import FrameError
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Message,
    Outcome,
    ParameterValue,
    Span,
    ToolCall,
    VerifierItem,
    VerifierSpec,
)

PARCEL = b"P"
MAX_JOB_BYTES = 64 * 2**20
MAX_DONE_BYTES = 16 * 2**20
_HEAD = struct.Struct("!I")
_RARE = {  # fields of an item that are mostly empty, and their values then
    "anchor": None,
    "group_id": "",
    "response_token_count": None,
    "truncated": False,
    "data": None,
    "task": "",
}


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
    """All that makes an item equal to another, as JSON."""
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


def pack_item(item: VerifierItem, spec: VerifierSpec) -> dict[str, Any]:
    """An item as it goes to a worker."""
    candidate = item.candidate
    body: dict[str, Any] = {"text": candidate.text, "references": item.references}
    if item.parameters is not spec.defaults:
        body["parameters"] = dict(item.parameters)
    if candidate.calls:
        body["calls"] = _calls_to_json(candidate.calls)
    if candidate.turns:
        body["turns"] = [_message_to_json(turn) for turn in candidate.turns]
    if item.prompt:
        body["prompt"] = [_message_to_json(message) for message in item.prompt]
    for name, empty in _RARE.items():
        if (value := getattr(item, name)) is not empty and value != empty:
            body[name] = value
    return body


def read_item(body: dict[str, Any], spec: VerifierSpec) -> VerifierItem:
    """The item again. Trusts its input: the server wrote it."""
    given = body.get("parameters")
    parameters: Mapping[str, ParameterValue] = spec.defaults or {}
    if given is not None:
        parameters = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
    return VerifierItem(
        Candidate(
            body["text"],
            tuple(_message_from_json(turn) for turn in body.get("turns", ())),
            _calls_from_json(body.get("calls", [])),
        ),
        references=tuple(body["references"]),
        prompt=tuple(_message_from_json(message) for message in body.get("prompt", ())),
        parameters=parameters,
        **{name: body[name] for name in _RARE if name in body},
    )


def pack_parcel(items: Iterable[tuple[VerifierSpec, VerifierItem]]) -> bytes:
    """A parcel as bytes.

    Raises:
        FrameError: it would be too long.
    """
    names: dict[str, int] = {}
    entries: list[tuple[int, dict[str, Any], int]] = []
    texts: list[bytes] = []
    for spec, item in items:
        body = pack_item(item, spec)
        text = body.pop("text")
        data = b"" if text is None else text.encode("utf-8", "surrogatepass")
        place = names.setdefault(spec.name, len(names))
        entries.append((place, body, -1 if text is None else len(data)))
        texts.append(data)
    head = pack({"verifiers": list(names), "items": entries}, MAX_JOB_BYTES)
    packed = b"".join((PARCEL, _HEAD.pack(len(head)), head, *texts))
    if len(packed) > MAX_JOB_BYTES:
        raise FrameError("a parcel is too long")
    return packed


def read_parcel(packed: bytes) -> tuple[list[str], list[tuple[int, dict[str, Any]]]]:
    """The names of a parcel's verifiers, and of each item its place there and its `pack_item`.

    Trusts its input: the server wrote it.
    """
    end = len(PARCEL) + _HEAD.size
    start = end + _HEAD.unpack_from(packed, len(PARCEL))[0]
    head = json.loads(packed[end:start])
    items = []
    for place, body, size_bytes in head["items"]:
        body["text"] = None
        if size_bytes >= 0:
            data = packed[start : start + size_bytes]
            body["text"] = data.decode("utf-8", "surrogatepass")
            start += size_bytes
        items.append((place, body))
    return head["verifiers"], items


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


def looks_from_json(body: dict[str, Any], count: int) -> list[tuple[Outcome | None, float]]:
    """The outcome of each item of a parcel, None where it is left open, and its seconds.

    Raises:
        FrameError: the body is not of the agreed shape, or has another number of items.
    """
    try:
        looks = [
            (None if told is None else outcome_from_json(told), max(0.0, _number(took_s)))
            for told, took_s in body["looks"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FrameError("a worker's answer is not of the agreed shape") from error
    if len(looks) != count:
        raise FrameError(f"a worker answered {len(looks)} of {count} items")
    return looks


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
