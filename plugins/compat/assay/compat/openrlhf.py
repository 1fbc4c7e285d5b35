"""OpenRLHF's remote reward model: POST /get_reward.

Request:  {"query": [text], "prompts": [text], "labels": [any]}; `query` is prompt and response,
          decoded with special tokens.
Answer:   {"rewards": [n], "scores": [n], "extra_logs": {name: [n]}}, lists as its serve_rm.py has.

The verifier comes from the URL: /get_reward?verifier=math. The response is what follows the prompt
in the query, without the end-of-turn tokens behind it. A query that does not hold its prompt is
refused, because an answer read from the prompt would be paid. Where a tokenizer changes the prompt,
say where the response begins (behind the last occurrence):
&response_after=<|im_start|>assistant%0A.

A fault is never a number: the call fails with a status (429, 500, 503, 504, ...) and a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.clients.trainers.common.queries import response_of
from assay.compat.items import fault_of, make_item
from assay.kit.http import operations as op
from assay.kit.http.codec import check_count, malformed, read_object
from assay.kit.http.faces import Face
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.operations import TASK, VERIFIER


def read(
    body: dict[str, Any], chosen: tuple[str, str], response_after: str = ""
) -> list[reward_pb2.Item]:
    """The items of a request.

    `chosen` is verifier and task. The response follows the last `response_after`, or the prompt
    where that is empty.

    Raises:
        BadRequestError: BATCH_TOO_LARGE. MALFORMED_REQUEST: lists are missing or of different
            lengths, or a response cannot be told from its prompt.
    """
    queries = _list(body, "query")
    prompts, labels = _list(body, "prompts"), _list(body, "labels")
    if not queries:
        raise malformed("query must be a list with at least one text")
    check_count(len(queries))
    for name, found in (("prompts", prompts), ("labels", labels)):
        if found and len(found) != len(queries):
            raise malformed(f"{name} has {len(found)} entries, query has {len(queries)}")
    items: list[reward_pb2.Item] = []
    for index, query in enumerate(queries):
        prompt = prompts[index] if prompts else None
        if not isinstance(query, str) or not isinstance(prompt, str | None):
            raise malformed("query and prompts must be lists of texts")
        response = response_of(query, prompt or "", response_after)
        if response is None:
            raise malformed(
                "a query does not hold the text of response_after"
                if response_after
                else "a query does not hold its prompt, so its response is not known: "
                "add ?response_after=MARK to the URL"
            )
        label = labels[index] if labels else None
        items.append(make_item(str(index), response, chosen, prompt=prompt, label=label))
    return items


def answer(judgements: Sequence[reward_pb2.Judgement]) -> dict[str, Any]:
    """The answer; a component is logged where every item has it."""
    rewards = [judgement.reward for judgement in judgements]
    parts = [{part.name: part.score for part in one.components} for one in judgements]
    shared = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    logs = {name: [part[name] for part in parts] for name in shared}
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}


def routes(front: RewardFront) -> list[Route]:
    """/get_reward."""

    async def get_reward(request: Request) -> Response:
        after = request.query_params.get("response_after", "")
        items = read(await read_object(request), front.chosen(request), after)
        results = await front.score(request, items)
        error = fault_of(results)
        if error is not None:
            raise error
        return JSONResponse(answer([result.judgement for result in results]))

    return [Route("/get_reward", get_reward, methods=["POST"])]


def _list(body: dict[str, Any], name: str) -> list[Any]:
    found = body.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise malformed(f"{name} must be a list")
    return found


OPERATIONS: op.Json = {
    "/get_reward": op.post(
        "OpenRLHF",
        "OpenRLHF's remote reward model.",
        op.body(
            op.object_of(["query"], query=op.TEXTS, prompts=op.TEXTS, labels={"type": "array"})
        ),
        op.answers(
            op.object_of(
                ["rewards", "scores"],
                rewards=op.NUMBERS,
                scores=op.NUMBERS,
                extra_logs={"type": "object", "additionalProperties": op.NUMBERS},
            ),
            "Rewards of all queries.",
        ),
        VERIFIER,
        TASK,
        op.query("response_after", "The response follows the last occurrence of this."),
    ),
}

FACE = Face("OpenRLHF", routes, OPERATIONS)
