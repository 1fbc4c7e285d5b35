"""The contract itself over HTTP: reward.proto as JSON (protobuf's own mapping).

Field names are those of the proto, as in `judgement.reward`; lowerCamelCase names are read too.
Zeros and empty lists are written, so that a reward of 0 is there to be read. A result holds either
`judgement` or `fault`.

The stream answers NDJSON: a line for each result, as it is ready. If it has to end early its last
line is {"error": PROBLEM}.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.kit.calls import add_faults, request_id_var
from assay.kit.errors import CallError, outstayed
from assay.kit.http.codec import JSON, as_dict
from assay.kit.http.problems import problem
from assay.kit.http.streams import Stream
from assay.reward_server.http.codec import read_batch, result_as_dict, write, write_results
from assay.reward_server.http.front import RewardFront

NDJSON = "application/x-ndjson"


def answer(result: reward_pb2.Result) -> bytes:
    """A result as one line of JSON in UTF-8."""
    return write(result_as_dict(result))


def routes(front: RewardFront) -> list[Route]:
    """/v1/score, /v1/score:stream, /v1/verifiers."""

    async def score(request: Request) -> Response:
        results = await front.score(request, read_batch(await request.body()).items)
        return Response(write_results(results), media_type=JSON)

    async def stream(request: Request) -> Response:
        batch = read_batch(await request.body())
        lines = _lines(front, batch, front.timeout_s(request))
        first = await anext(lines, b"")  # what refuses the whole call is a status, not a line
        return Stream(_joined(first, lines), NDJSON)

    async def verifiers(request: Request) -> Response:
        message = await front.scorer.list_verifiers(
            reward_pb2.ListVerifiersRequest(), timeout_s=front.timeout_s(request)
        )
        return Response(write(as_dict(message)), media_type=JSON)

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
            yield _last_line(error)
        except asyncio.CancelledError:  # a drain; a caller who went away reads no line
            yield _last_line(outstayed())
            raise


def _last_line(error: CallError) -> bytes:
    return json.dumps({"error": problem(error, request_id_var.get())}).encode() + b"\n"


async def _lines(
    front: RewardFront, batch: reward_pb2.BatchScoreRequest, timeout_s: float
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
