"""slime's remote reward model: POST /slime, for `--rm-type remote_rm --rm-url URL`.

Request:  {"prompt": text or messages, "response": text, "label": any}
Answer:   a number; with ?as=dict {"reward": n, "score": n, "verdict": ..., "components": {...}},
          to be read with slime's --reward-key.

The verifier comes from the URL: /slime?verifier=math. A fault is never a number: the call fails
with a status and a problem; slime tries ten times, with waits up to 30 s, and raises then.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.compat.items import fault_of, make_item
from assay.kit.http import operations as op
from assay.kit.http.codec import malformed, read_object
from assay.kit.http.faces import Face
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.operations import TASK, VERIFIER


def read(body: dict[str, Any], chosen: tuple[str, str]) -> reward_pb2.Item:
    """The item of a request.

    Raises:
        BadRequestError: MALFORMED_REQUEST.
    """
    response = body.get("response")
    if not isinstance(response, str):
        raise malformed("response must be a text")
    label = body.get("label")
    return make_item("0", response, chosen, prompt=body.get("prompt"), label=label)


def answer(judgement: reward_pb2.Judgement, *, as_dict: bool) -> float | dict[str, Any]:
    """The number or the dictionary."""
    if not as_dict:
        return judgement.reward
    return {
        "reward": judgement.reward,
        "score": judgement.reward,
        "verdict": judgement.verdict,
        "components": {part.name: part.score for part in judgement.components},
        "suspicions": list(judgement.suspicions),
    }


def routes(front: RewardFront) -> list[Route]:
    """/slime."""

    async def reward(request: Request) -> Response:
        wanted = request.query_params.get("as", "number")
        if wanted not in ("number", "dict"):
            raise malformed("?as must be number or dict")
        results = await front.score(
            request, [read(await read_object(request), front.chosen(request))]
        )
        error = fault_of(results)
        if error is not None:
            raise error
        return JSONResponse(answer(results[0].judgement, as_dict=wanted == "dict"))

    return [Route("/slime", reward, methods=["POST"])]


OPERATIONS: op.Json = {
    "/slime": op.post(
        "slime",
        "slime's remote reward model.",
        op.body(op.object_of(["response"], prompt=op.ANY, response=op.TEXT, label=op.ANY)),
        op.answers({"type": ["number", "object"]}, "The reward, or with as=dict an object."),
        VERIFIER,
        TASK,
        op.query("as", "What is answered.", enum=["number", "dict"], default="number"),
    ),
}

FACE = Face("slime", routes, OPERATIONS)
