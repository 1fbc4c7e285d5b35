"""reward.proto as JSON: protobuf's own mapping, with a fast path for what is sent by the thousand.

The fast path reads items of texts, whose shape msgspec checks while it parses, and writes
judgements without spans, appeal and usage of judges. Protobuf does all else, and gives the error
messages. Both give the same, which a property test holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from msgspec import UNSET, Struct, UnsetType

from assay.api.reward.v1 import reward_pb2
from assay.kit.http.codec import MAX_CONTAINERS, as_dict, check_count, malformed, parse_json
from assay.reward_server.http.natural import in_contract

_Json = dict[str, Any]
_Text = str | UnsetType


class _Message(Struct, forbid_unknown_fields=True, gc=False):
    role: _Text = UNSET
    content: _Text = UNSET


class _Reference(Struct, forbid_unknown_fields=True, gc=False):
    text: str


class _Item(Struct, forbid_unknown_fields=True, gc=False):
    """An item of texts alone: the fields whose mapping msgspec and protobuf share."""

    id: _Text = UNSET
    verifier: _Text = UNSET
    task: _Text = UNSET
    prompt: list[_Message] | UnsetType = UNSET
    response: _Text = UNSET
    reference: _Reference | UnsetType = UNSET
    group_id: _Text = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class _Batch(Struct, forbid_unknown_fields=True, gc=False):
    items: list[_Item]


_read_texts = msgspec.json.Decoder(_Batch).decode


def read_batch(body: bytes) -> reward_pb2.BatchScoreRequest:
    """The batch of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: not JSON, or not of the message. BATCH_TOO_LARGE.
    """
    # A body of so few braces holds no more objects than that, whatever stands in its texts.
    if body.count(b"{") <= MAX_CONTAINERS:
        try:
            batch = _read_texts(body)
            check_count(len(batch.items))
            if any(item.id is UNSET for item in batch.items):
                raise ValueError
            return reward_pb2.BatchScoreRequest(**msgspec.to_builtins(batch))
        except (ValueError, TypeError, RecursionError):  # what it is, the long road says
            pass
    return _read_any(body)


def _read_any(body: bytes) -> reward_pb2.BatchScoreRequest:
    found = parse_json(body)
    if isinstance(found, dict) and isinstance(found.get("items"), list):
        check_count(len(found["items"]))
    request = reward_pb2.BatchScoreRequest()
    try:
        json_format.ParseDict(in_contract(found), request)
    except (json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        raise malformed(f"the body is no BatchScoreRequest: {error}") from None
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    return request


def result_as_dict(result: reward_pb2.Result) -> _Json:
    """A result in JSON's shapes: equal to `as_dict` of it."""
    judgement = result.judgement
    if (
        result.WhichOneof("outcome") != "judgement"
        or judgement.spans
        or judgement.HasField("judge_usage")
        or judgement.HasField("appeal")
    ):
        return as_dict(result)
    reward = told = judgement.reward
    parts: list[_Json] = []
    components = judgement.components
    for index in range(len(components)):  # protobuf's iterator costs more than its index
        part = components[index]
        score, weight = part.score, part.weight
        told += score * weight
        parts.append({"name": part.name, "score": score, "weight": weight})
    if not math.isfinite(told):
        return as_dict(result)
    suspicions = judgement.suspicions
    said: _Json = {
        "reward": reward,
        "verdict": judgement.verdict,
        "components": parts,
        "spans": [],
        "explanation": judgement.explanation,
        "suspicions": [*suspicions] if suspicions else [],
    }
    if judgement.HasField("extracted_answer"):
        said["extracted_answer"] = judgement.extracted_answer
    if judgement.HasField("verifier"):
        verifier = judgement.verifier
        said["verifier"] = {"name": verifier.name, "version": verifier.version}
    found: _Json = {
        "id": result.id,
        "judgement": said,
        "from_cache": result.from_cache,
        "labels": dict(result.labels),
    }
    if result.HasField("timings"):
        timings = result.timings
        spent: _Json = {}
        if timings.HasField("queue"):
            spent["queue"] = _duration(timings.queue)
        if timings.HasField("execution"):
            spent["execution"] = _duration(timings.execution)
        found["timings"] = spent
    return found


def write(found: _Json) -> bytes:
    """A dict as one line of JSON in UTF-8."""
    return msgspec.json.encode(found)


def write_results(results: Iterable[reward_pb2.Result]) -> bytes:
    """A BatchScoreResponse, built result by result to keep its peak memory low."""
    return b'{"results":[' + b",".join([write(result_as_dict(one)) for one in results]) + b"]}"


def _duration(duration: Duration) -> str:
    """As `Duration.ToJsonString`, in a sixth of its time."""
    seconds, nanos = duration.seconds, duration.nanos
    if seconds < 0 or nanos < 0:
        return str(duration.ToJsonString())
    if not nanos:
        return f"{seconds}s"
    if nanos % 1_000:
        return f"{seconds}.{nanos:09d}s"
    if nanos % 1_000_000:
        return f"{seconds}.{nanos // 1_000:06d}s"
    return f"{seconds}.{nanos // 1_000_000:03d}s"
