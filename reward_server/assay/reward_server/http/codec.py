"""reward.proto as JSON: protobuf's own mapping, with a short road for what is sent by the thousand.

The short road reads items of texts alone, and writes judgements without spans and usage of judges;
all else is protobuf's. Both give the same, which is a property that tests hold: the short one only
saves the walk over descriptors, two thirds of what an item costs.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.http.front import check_count, malformed, parse_json

_Json = dict[str, Any]
_TEXTS = frozenset({"id", "verifier", "task", "response", "group_id"})


def read_batch(body: bytes) -> reward_pb2.BatchScoreRequest:
    """The batch of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: not JSON, or not of the message. BATCH_TOO_LARGE.
    """
    found = parse_json(body)
    if isinstance(found, dict) and isinstance(found.get("items"), list):
        check_count(len(found["items"]))
    request = reward_pb2.BatchScoreRequest()
    try:
        if (
            isinstance(found, dict)
            and found.keys() == {"items"}
            and isinstance(found["items"], list)
        ):
            for item in found["items"]:
                _read_item(item, request.items.add())
        else:
            json_format.ParseDict(found, request)
    except (json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        raise malformed(f"the body is no BatchScoreRequest: {error}") from None
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    return request


def as_dict(message: Message) -> _Json:
    """A message as JSON has it, zeros and empty lists included."""
    found: _Json = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def result_as_dict(result: reward_pb2.Result) -> _Json:
    """A result as JSON has it: equal to `as_dict` of it."""
    judgement = result.judgement
    if (
        result.WhichOneof("outcome") != "judgement"
        or judgement.spans
        or judgement.HasField("judge_usage")
    ):
        return as_dict(result)
    said: _Json = {
        "reward": judgement.reward,
        "verdict": judgement.verdict,
        "components": [
            {"name": part.name, "score": part.score, "weight": part.weight}
            for part in judgement.components
        ],
        "spans": [],
        "explanation": judgement.explanation,
        "suspicions": list(judgement.suspicions),
    }
    if judgement.HasField("extracted_answer"):
        said["extracted_answer"] = judgement.extracted_answer
    if judgement.HasField("verifier"):
        verifier = judgement.verifier
        said["verifier"] = {"name": verifier.name, "version": verifier.version}
    found: _Json = {"id": result.id, "judgement": said, "from_cache": result.from_cache}
    if result.HasField("timings"):
        timings = result.timings
        found["timings"] = {
            name: getattr(timings, name).ToJsonString()
            for name in ("queue", "execution")
            if timings.HasField(name)
        }
    return found


def write(found: _Json) -> bytes:
    """One line of JSON in UTF-8."""
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")


def _read_item(found: Any, item: reward_pb2.Item) -> None:
    if isinstance(found, dict):
        reference = found.get("reference")
        known = found.keys() - {"reference"} <= _TEXTS
        if known and isinstance(reference, dict) and reference.keys() == {"text"}:
            texts = [*(value for name, value in found.items() if name != "reference"),
                     reference["text"]]  # fmt: skip
            if all(isinstance(text, str) for text in texts):
                for name in found.keys() & _TEXTS:
                    setattr(item, name, found[name])
                item.reference.text = reference["text"]
                return
    json_format.ParseDict(found, item)
