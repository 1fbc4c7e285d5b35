"""The contract itself over HTTP: reward.proto as JSON (protobuf's own mapping).

Field names are those of the proto, as in `judgement.reward`; the lowerCamelCase names of the
mapping are read too. Zeros and empty lists are written, so that a reward of 0 is there to be read.
A result holds `judgement` or `fault`, never both and never neither.

The stream answers NDJSON: a result a line, as they are ready. If it has to end early its last line
is {"error": PROBLEM}.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.http.front import Front, malformed, parse_json
from assay.reward_server.http.problems import problem
from assay.reward_server.http.streams import Stream
from assay.rpc.calls import add_faults, request_id_var
from assay.rpc.errors import CallError

JSON = "application/json"
NDJSON = "application/x-ndjson"


def read(body: bytes) -> reward_pb2.BatchScoreRequest:
    """The batch of a request's body.

    Raises:
        BadRequestError: MALFORMED_REQUEST: not JSON, or not of the message.
    """
    found = parse_json(body)
    request = reward_pb2.BatchScoreRequest()
    try:
        json_format.ParseDict(found, request)
    except (json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        raise malformed(f"the body is no BatchScoreRequest: {error}") from None
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    return request


def as_dict(message: Message) -> dict[str, Any]:
    """A message as JSON has it, zeros and empty lists included."""
    found: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def answer(message: Message) -> bytes:
    """A message as one line of JSON in UTF-8."""
    return json.dumps(as_dict(message), ensure_ascii=False).encode("utf-8", "replace")


def routes(front: Front) -> list[Route]:
    """/v1/score, /v1/score:stream, /v1/verifiers."""

    async def score(request: Request) -> Response:
        results = await front.score(request, read(await request.body()).items)
        return Response(answer(reward_pb2.BatchScoreResponse(results=results)), media_type=JSON)

    async def stream(request: Request) -> Response:
        batch = read(await request.body())
        lines = _lines(front, batch, front.timeout_s(request))
        first = await anext(lines, b"")  # what refuses the whole call is a status, not a line
        return Stream(_joined(first, lines), NDJSON)

    async def verifiers(request: Request) -> Response:
        message = await front.scorer.list_verifiers(
            reward_pb2.ListVerifiersRequest(), timeout_s=front.timeout_s(request)
        )
        return Response(answer(message), media_type=JSON)

    return [
        Route("/v1/score", score, methods=["POST"]),
        Route("/v1/score:stream", stream, methods=["POST"]),
        Route("/v1/verifiers", verifiers),
    ]


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async with aclosing(rest):
        try:
            async for line in rest:
                yield line
        except CallError as error:
            yield json.dumps({"error": problem(error, request_id_var.get())}).encode() + b"\n"


async def _lines(
    front: Front, batch: reward_pb2.BatchScoreRequest, timeout_s: float
) -> AsyncGenerator[bytes, None]:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        yield reward_pb2.StreamScoreRequest(items=batch.items)

    results = front.scorer.stream_score(chunks(), timeout_s=timeout_s)
    with front.charged(len(batch.items)) as meter:
        async with aclosing(results):
            async for response in results:
                meter.answered(response)
                add_faults(response.results)
                yield b"".join(answer(result) + b"\n" for result in response.results)
